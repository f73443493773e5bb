//! Which device of OpenVINO computes.

/// A device of Intel OpenVINO.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenVinoSettings {
    /// OpenVINO's name of it; empty for the NPU of this machine, or for its CPU as a stand-in.
    pub device: String,
}
