//! What a back end is to an engine.

use lapwing_kernels::device::{DeviceInfo, DeviceKind, MemoryDomain, Room};
use lapwing_kernels::npu::array::Array;
use lapwing_kernels::npu::{BackendInfo, Systolic};

use super::DeviceSpec;
use super::build::{Built, Shared, array, with_sizes};
use super::keys::Key;
use crate::config::Threads;
use crate::drivers::DriverKind;
use crate::error::Error;

/// The threads that compute for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadUse {
    /// Threads of the engine, which run the CPU kernels.
    Engine,
    /// Threads of a vendor's library.
    Library,
    /// No CPU threads.
    None,
}

/// A back end with its settings.
pub(super) trait BackEnd {
    /// The form of its devices as text.
    fn form(&self, spec: &DeviceSpec) -> &'static Form;

    /// Its keys, in the order in which they are written.
    fn keys(&self) -> &'static [&'static [Key]];

    /// What selects the processor, as text before the keys.
    fn which(&self) -> &str {
        ""
    }

    /// Checks that the kind and the pace of a device fit it, and its settings each other.
    ///
    /// # Errors
    /// What it must be instead.
    fn check(&self, spec: &DeviceSpec) -> Result<(), &'static str>;

    /// The threads that compute for it.
    fn threads(&self) -> ThreadUse;

    /// Whether all its results have the same bits as those of the CPU kernels.
    fn rounds_as_cpu(&self) -> bool {
        false
    }

    /// Whether it holds weights in memory of its own.
    fn has_memory(&self) -> bool {
        false
    }

    /// The drivers that it opens.
    fn drivers(&self) -> Option<DriverKind> {
        None
    }

    /// Why a device cannot multiply activations that are quantised by row; `None` if it can.
    fn refuses_rows(&self, spec: &DeviceSpec) -> Option<&'static str>;

    /// How it prepares graphs, on a device that runs only prepared ones.
    fn graphs(&self, spec: &DeviceSpec) -> BackendInfo {
        Systolic::backend_info(Array { size: array(spec).size }, 1)
    }

    /// What a device says of itself, for planning without it. One with memory of its own says how large it is, and that values
    /// are in it, as in that of the device of number 0.
    fn info(&self, spec: &DeviceSpec) -> DeviceInfo {
        let info = DeviceInfo::new(&*spec.name, spec.kind);
        match (info.is_static(), spec.memory) {
            (true, _) => {
                with_sizes(spec, self.graphs(spec).device_info(&spec.name, spec.graphs.budget))
            }
            (false, Some(memory)) => info
                .with_queue(MemoryDomain::Device(0), 1)
                .with_room(Room::of_capacity(memory.bytes)),
            (false, None) => info,
        }
    }

    /// Builds a device with these threads. `number` is its number in the engine.
    ///
    /// # Errors
    /// When the device cannot be opened, or cannot hold the model.
    fn build(
        &self,
        number: usize,
        spec: &DeviceSpec,
        threads: &Threads,
        shared: &Shared<'_>,
    ) -> Result<Built, Error>;
}

type Divide = fn(&str) -> (String, Vec<&str>);

/// A form of devices as text: `NAME=FORM:KEY=VALUE,…`.
pub(super) struct Form {
    pub(super) name: &'static str,
    /// Divides the text after the form into what selects the processor, and keys. `None` if there are only keys.
    pub(super) divide: Option<Divide>,
    /// Whether text names the kind of a device.
    pub(super) names_kind: bool,
    /// A device of that name with the defaults of its form and kind.
    pub(super) start: fn(name: &str, kind: KindText, which: &str) -> Result<DeviceSpec, WrongKind>,
}

/// What text says of a device's kind.
#[derive(Clone, Copy)]
pub(super) struct KindText {
    /// The value of the key `kind`.
    pub(super) given: Option<DeviceKind>,
    /// The kind that the device's name begins with.
    pub(super) of_name: Option<DeviceKind>,
}

/// A kind that a form cannot have, and what is expected.
pub(super) struct WrongKind {
    pub(super) kind: DeviceKind,
    pub(super) expected: &'static str,
}

impl KindText {
    /// The value of the key, or else the kind that the name begins with.
    pub(super) fn any(self) -> Option<DeviceKind> {
        self.given.or(self.of_name)
    }

    /// Checks that no other kind than an NPU is given.
    pub(super) fn npu(self, expected: &'static str) -> Result<(), WrongKind> {
        match self.given {
            None | Some(DeviceKind::Npu) => Ok(()),
            Some(kind) => Err(WrongKind { kind, expected }),
        }
    }
}
