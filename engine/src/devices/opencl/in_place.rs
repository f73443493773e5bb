//! Memory of one device that all devices of an engine use in place.

use std::sync::Arc;

use lapwing_kernels::device::{CacheBytes, SlotSource};
use lapwing_kernels::kv::{KvLayout, KvSize, KvStore, KvTooLarge};
#[cfg(feature = "opencl")]
use lapwing_kernels::opencl::OpenClInfo;

use crate::devices::DeviceSpec;
use crate::error::Error;

/// Part of a device's memory that keys, values and states may take in place.
const KV_SHARE: f64 = 0.5;

/// Memory of one OpenCL device for values at borders, keys, values and states. The others of an engine are copied to and from:
/// memory belongs to the context of one driver.
#[derive(Clone, Debug, Default)]
pub(crate) struct InPlace {
    #[cfg(feature = "opencl")]
    found: Option<(usize, Arc<lapwing_kernels::opencl::SharedMemory>)>,
    /// Why a device has none, by its number.
    #[cfg(feature = "opencl")]
    why: Vec<(usize, String)>,
    /// The processor of each OpenCL device, by its number.
    #[cfg(feature = "opencl")]
    processors: Vec<(usize, OpenClInfo)>,
}

#[cfg(feature = "opencl")]
impl InPlace {
    /// The memory of the first device that is to have it and can.
    ///
    /// # Errors
    /// When a device is not there, or one with `memory=shared` cannot.
    pub(crate) fn open<'a>(
        devices: impl Iterator<Item = &'a DeviceSpec>,
    ) -> Result<InPlace, Error> {
        use crate::devices::OpenClMemory::{Copied, Shared};
        let mut in_place = InPlace::default();
        let settings =
            devices.enumerate().filter_map(|(at, spec)| Some((at, spec, spec.opencl_settings()?)));
        let mut all: Vec<_> = settings.collect();
        // Those that insist come first.
        all.sort_by_key(|(.., settings)| settings.memory != Some(Shared));
        for (number, spec, settings) in all {
            let device = lapwing_kernels::opencl::find(&settings.which)?;
            in_place.processors.push((number, device.clone()));
            let why = match (settings.memory, &in_place.found) {
                (Some(Copied), _) => "as memory=copied says".to_owned(),
                (_, Some(_)) => "another device's memory is used in place".to_owned(),
                (_, None) => match lapwing_kernels::opencl::SharedMemory::open(&device)? {
                    Ok(memory) => {
                        in_place.found = Some((number, memory));
                        continue;
                    }
                    Err(why) => why,
                },
            };
            if settings.memory == Some(Shared) {
                let expected = format!("a device whose memory is used in place ({why})");
                return Err(Error::config("device", spec, &expected));
            }
            in_place.why.push((number, why));
        }
        Ok(in_place)
    }

    /// The memory, as a source for pools and caches.
    pub(crate) fn source(&self) -> Option<Arc<dyn SlotSource>> {
        self.found.as_ref().map(|(_, memory)| Arc::clone(memory) as Arc<dyn SlotSource>)
    }

    /// The memory, if it is that of a device.
    pub(super) fn of(&self, device: usize) -> Option<&Arc<lapwing_kernels::opencl::SharedMemory>> {
        self.found.as_ref().filter(|(of, _)| *of == device).map(|(_, memory)| memory)
    }

    /// Whether the memory is that of a device.
    pub(crate) fn is_of(&self, device: usize) -> bool {
        self.of(device).is_some()
    }

    /// Bytes of the memory, and of the largest piece of it that is allocated.
    fn bytes(&self) -> (u64, u64) {
        let memory = self.found.as_ref().map(|(_, memory)| memory);
        memory.map_or((0, 0), |memory| (memory.device_bytes(), memory.largest_bytes()))
    }

    /// What is used of a device, to which its measurements belong. The specification has the choices that were made for it,
    /// and does not say how the processor was selected. The text has the processor and its driver, and whether keys and
    /// values of a cache of that size are copied although other values are in place.
    pub(crate) fn used(
        &self,
        number: usize,
        spec: &DeviceSpec,
        layout: &KvLayout,
        size: KvSize,
    ) -> (DeviceSpec, String) {
        use crate::devices::OpenClMemory::{Copied, Shared};
        let mut spec = spec.clone();
        let processor = self.processors.iter().find(|(of, _)| *of == number);
        let (Some((_, device)), Some(settings)) = (processor, spec.opencl_settings_mut()) else {
            return (spec, String::new());
        };
        let is_in_place = self.is_of(number);
        settings.which = String::new();
        settings.memory = Some(if is_in_place { Shared } else { Copied });
        settings.no_persistent &= device.may_be_persistent();
        let copied = is_in_place && !self.has_room(layout, size);
        let copied = if copied { ", keys and values copied" } else { "" };
        let OpenClInfo { name, platform, driver, .. } = device;
        (spec, format!("{copied}, {name} ({platform}, driver {driver})"))
    }

    /// How values cross the border of a device, and why.
    pub(super) fn about(&self, device: usize) -> String {
        match self.of(device) {
            Some(memory) => format!("values in place ({})", memory.kind()),
            None => {
                let why = self.why.iter().find(|(of, _)| *of == device);
                format!("values copied ({})", why.map_or("no shared memory", |(_, why)| why))
            }
        }
    }
}

impl InPlace {
    /// A store of keys, values and states in the memory, or in the host's own where they would take most of it: the memory is
    /// written at once, and whether the layers of the device fit is found out later.
    pub(crate) fn kv_store(&self, layout: KvLayout, size: KvSize) -> Result<KvStore, KvTooLarge> {
        let source = self.source().filter(|_| self.has_room(&layout, size));
        KvStore::in_memory_of(layout, size, source.as_deref())
    }

    fn has_room(&self, layout: &KvLayout, size: KvSize) -> bool {
        let (all, largest) = self.bytes();
        let cache = CacheBytes::new(layout, size);
        let parts = || cache.layers.iter().chain(&*cache.states);
        let bytes = parts().fold(0, |bytes: u64, part| bytes.saturating_add(*part));
        bytes as f64 <= KV_SHARE * all as f64 && parts().all(|part| *part <= largest)
    }
}

/// No device of this build has such memory.
#[cfg(not(feature = "opencl"))]
impl InPlace {
    pub(crate) fn open<'a>(_: impl Iterator<Item = &'a DeviceSpec>) -> Result<InPlace, Error> {
        Ok(InPlace::default())
    }

    pub(crate) fn source(&self) -> Option<Arc<dyn SlotSource>> {
        None
    }

    pub(crate) fn is_of(&self, _: usize) -> bool {
        false
    }

    fn bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    pub(crate) fn used(
        &self,
        _: usize,
        spec: &DeviceSpec,
        _: &KvLayout,
        _: KvSize,
    ) -> (DeviceSpec, String) {
        (spec.clone(), String::new())
    }
}
