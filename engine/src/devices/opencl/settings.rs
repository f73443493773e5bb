//! Which processor an OpenCL device is, and how it is used.

/// A processor of this machine with an OpenCL driver, and how it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenClSettings {
    /// A number of the list of `lapwing devices`, or a part of a device's or driver's name; empty for the first GPU.
    pub which: String,
    /// How values, keys and values cross the border between host and device; `None` for in place where the device can.
    pub memory: Option<OpenClMemory>,
    /// Whether no persistent kernel computes runs of few rows: each op is launched, also where one kernel would be
    /// faster.
    pub no_persistent: bool,
}

/// How values, keys and values cross the border between the host and an OpenCL device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenClMemory {
    /// Host and device share their memory. A device without shared memory is refused.
    Shared,
    /// By explicit copies.
    Copied,
}

impl OpenClMemory {
    /// All of them.
    pub const ALL: [OpenClMemory; 2] = [OpenClMemory::Shared, OpenClMemory::Copied];

    /// Its name in text.
    pub fn name(self) -> &'static str {
        match self {
            OpenClMemory::Shared => "shared",
            OpenClMemory::Copied => "copied",
        }
    }
}
