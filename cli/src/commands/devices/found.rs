//! What is found of devices and drivers.

use lapwing_engine::drivers::DriverFault;
use serde::Serialize;

/// A driver that failed.
#[derive(Clone, Serialize)]
pub(super) struct Failed {
    pub(super) kind: &'static str,
    pub(super) driver: String,
    what: String,
    said: Option<String>,
    /// All of it in words, with what to do.
    #[serde(skip)]
    pub(super) text: String,
}

impl Failed {
    /// What happened, and the last line that the driver wrote.
    pub(super) fn parts(&self) -> (String, Option<String>) {
        (self.what.clone(), self.said.clone())
    }
}

impl From<DriverFault> for Failed {
    fn from(fault: DriverFault) -> Failed {
        let text = fault.to_string();
        let DriverFault { kind, driver, what, said, .. } = fault;
        Failed { kind, driver, what, said, text }
    }
}

/// What the drivers of a kind have listed.
pub(super) struct Found<T> {
    pub(super) devices: Vec<T>,
    /// Why there is no device.
    pub(super) why_none: Option<String>,
    pub(super) failed: Vec<Failed>,
}

/// A kind of device, and whether this machine has it.
#[derive(Serialize)]
pub(super) struct Device {
    pub(super) kind: &'static str,
    pub(super) present: bool,
    pub(super) why: String,
    pub(super) libraries: Vec<String>,
}
