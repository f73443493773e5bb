//! Why a plan cannot be used.

use std::ops::Range;

use lapwing_kernels::device::DeviceKind;

/// Why a plan cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Nodes are left out, repeated or reordered.
    #[error(
        "the plan's stages must cover all nodes once and in order: nodes {found:?} stand where node {expected} is due"
    )]
    Coverage {
        /// Nodes of the stage at fault.
        found: Range<usize>,
        /// Node that is due.
        expected: usize,
    },
    /// A device that is not there.
    #[error("the plan names device {device}, but there are {devices}")]
    NoDevice {
        /// Device number.
        device: usize,
        /// Number of devices.
        devices: usize,
    },
    /// The logits end in a device's memory, and no device works in host memory.
    #[error("no device works in host memory, where tokens are chosen; add the CPU")]
    NoHost,
    /// Transfers or the choice of tokens are missing from a route.
    #[error("the route's transfers do not fit its devices' memories; make routes with Route::new")]
    Incomplete,
    /// A route was made for another model.
    #[error("the route is for model {found}, but the rows are for model {expected}")]
    OtherModel {
        /// Model of the route.
        found: usize,
        /// Model of the rows.
        expected: usize,
    },
    /// The parts of a stage do not tile its values.
    #[error("the parts of nodes {nodes:?} must tile {rows} rows × all features: {problem}")]
    Parts {
        /// Nodes of the stage.
        nodes: Range<usize>,
        /// Rows of the chunk.
        rows: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// A device is given what it cannot run.
    #[error("nodes {nodes:?} cannot run on device '{device}': {problem}")]
    Device {
        /// Nodes of the stage.
        nodes: Range<usize>,
        /// Device name.
        device: String,
        /// What is wrong.
        problem: String,
    },
    /// A route needs more graphs at the same time than its device may keep.
    #[error(
        "device '{device}' would need {graphs} prepared graphs of {bytes} bytes together, but may keep {budget}; raise its budget, or use smaller chunks"
    )]
    Budget {
        /// Device name.
        device: String,
        /// Graphs of the route.
        graphs: usize,
        /// Bytes of all of them.
        bytes: u64,
        /// Bytes that it may keep.
        budget: u64,
    },
    /// A strategy needs a kind of device that the engine has not.
    #[error(
        "strategy '{strategy}' needs {count} device(s) of kind {}, but the engine has: {found}; add one with --device", kind.name()
    )]
    Needs {
        /// Strategy.
        strategy: String,
        /// Kind that it needs.
        kind: DeviceKind,
        /// How many.
        count: usize,
        /// Devices that there are.
        found: String,
    },
    /// A manual placement that cannot be read.
    #[error("placement '{text}' must read PATTERN=DEVICE, such as 'layers.*.ffn=npu': {problem}")]
    Placement {
        /// What was given.
        text: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A manual placement puts ops on a device that has no kernel for them.
    #[error(
        "device '{device}' has no kernel for {ops}, which are placed on it; place there only what it runs, such as layers.*.attn.q, .k, .v, .output or layers.*.ffn"
    )]
    PlacedOps {
        /// Paths of the ops.
        ops: String,
        /// Device name.
        device: String,
    },
    /// A pattern of a manual placement matches no op.
    #[error("placement '{pattern}' matches no op of the model; paths look like {example}")]
    NoMatch {
        /// The pattern.
        pattern: String,
        /// A path of this model.
        example: String,
    },
    /// A manual placement names a device that is not there.
    #[error("placement '{pattern}' names device '{device}'; devices here: {known}")]
    UnknownDevice {
        /// The pattern.
        pattern: String,
        /// The name.
        device: String,
        /// Devices that there are.
        known: String,
    },
}
