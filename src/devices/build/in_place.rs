//! Memory of one device that all devices of an engine use in place.

use std::sync::Arc;

use lapwing_kernels::device::SlotSource;
use lapwing_kernels::kv::{KvLayout, KvStore, KvTooLarge};

use crate::devices::DeviceSpec;
use crate::error::Error;

/// Part of a device's memory that keys and values may take in place.
const KV_SHARE: f64 = 0.5;

/// Memory of one OpenCL device for values at borders, keys and values. The others of an engine are copied to and from:
/// memory belongs to the context of one driver.
#[derive(Clone, Debug, Default)]
pub(crate) struct InPlace {
    #[cfg(feature = "opencl")]
    found: Option<(usize, Arc<lapwing_kernels::opencl::SharedMemory>)>,
    /// Why a device has none, by its number.
    #[cfg(feature = "opencl")]
    why: Vec<(usize, String)>,
}

#[cfg(feature = "opencl")]
impl InPlace {
    /// The memory of the first device that is to have it and can.
    ///
    /// # Errors
    /// When a device with `memory=shared` cannot, or is not there.
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
            let why = match (settings.memory, &in_place.found) {
                (Some(Copied), _) => "as memory=copied says".to_owned(),
                (_, Some(_)) => "another device's memory is used in place".to_owned(),
                (_, None) => {
                    let device = lapwing_kernels::opencl::find(&settings.which)?;
                    match lapwing_kernels::opencl::SharedMemory::open(&device)? {
                        Ok(memory) => {
                            in_place.found = Some((number, memory));
                            continue;
                        }
                        Err(why) => why,
                    }
                }
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

    fn bytes(&self) -> u64 {
        self.found.as_ref().map_or(0, |(_, memory)| memory.device_bytes())
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
    /// A store of keys and values in the memory, or in the host's own where they would take most of it: the memory is
    /// written at once, and whether the layers of the device fit is found out later.
    pub(crate) fn kv_store(&self, layout: KvLayout, pages: u32) -> Result<KvStore, KvTooLarge> {
        let bytes = (layout.page_bytes() as u64).saturating_mul(u64::from(pages));
        let source = self.source().filter(|_| bytes as f64 <= KV_SHARE * self.bytes() as f64);
        KvStore::in_memory_of(layout, pages, source.as_deref())
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

    fn bytes(&self) -> u64 {
        0
    }
}
