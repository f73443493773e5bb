//! Why a plan cannot be used.

use std::ops::Range;

use lapwing_kernels::device::DeviceKind;

/// Why a plan cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The stages leave out, repeat or reorder nodes.
    #[error(
        "the stages of a plan must cover all nodes once and in order: found nodes {found:?} where node {expected} must come next"
    )]
    Coverage {
        /// Nodes of the stage at fault.
        found: Range<usize>,
        /// Node that must come next.
        expected: usize,
    },
    /// The plan names a device that does not exist.
    #[error(
        "the plan names device {device}, but the engine has {devices} device(s), numbered from 0"
    )]
    NoDevice {
        /// Device number.
        device: usize,
        /// Number of devices.
        devices: usize,
    },
    /// Transfers or sampling are missing from a route.
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
    /// The parts of a stage do not tile its rows and output channels.
    #[error("the parts of nodes {nodes:?} must tile {rows} rows × all output channels: {problem}")]
    Parts {
        /// Nodes of the stage.
        nodes: Range<usize>,
        /// Rows of the chunk.
        rows: usize,
        /// Reason.
        problem: &'static str,
    },
    /// A device cannot run its part.
    #[error("nodes {nodes:?} cannot run on device '{device}': {problem}")]
    Device {
        /// Nodes of the stage.
        nodes: Range<usize>,
        /// Device name.
        device: String,
        /// Reason.
        problem: String,
    },
    /// The graphs of a route exceed the budget of their device.
    #[error(
        "device '{device}' needs {graphs} prepared graphs with {bytes} bytes in total, but its budget is {budget} bytes; raise the budget, or use smaller chunks"
    )]
    Budget {
        /// Device name.
        device: String,
        /// Number of graphs of the route.
        graphs: usize,
        /// Total bytes of the graphs.
        bytes: u64,
        /// Budget of the device, in bytes.
        budget: u64,
    },
    /// What a route places on a device does not fit into the device's own memory.
    #[error(
        "device '{device}' needs {weights} bytes of weights and {kv} bytes of keys, values and states within the {room} bytes that its memory \
         has for them; choose a strategy that places within the memory, such as auto or auto-place, or make the context smaller"
    )]
    Memory {
        /// Device name.
        device: String,
        /// Bytes of weights.
        weights: u64,
        /// Bytes of keys, values and states.
        kv: u64,
        /// Bytes that there are for all of them.
        room: u64,
    },
    /// A route uses weights on a device that are not among those that the device keeps for all routes.
    #[error(
        "device '{device}' would compute {op}, whose weights, keys or values are not among those that fit into its memory for prompts and decode steps \
         together; choose a strategy that places within the memory, such as auto or auto-place"
    )]
    NotKept {
        /// Device name.
        device: String,
        /// Path of the first such op.
        op: String,
    },
    /// The engine lacks a kind of device that the strategy needs.
    #[error(
        "strategy '{strategy}' needs {} of kind {}, but the engine has: {found}; add one with --device",
        if *count == 1 { "a device".to_owned() } else { format!("{count} devices") },
        kind.name()
    )]
    Needs {
        /// Strategy.
        strategy: String,
        /// Kind of device that it needs.
        kind: DeviceKind,
        /// Number of devices that it needs.
        count: usize,
        /// Devices of the engine.
        found: String,
    },
    /// The engine lacks a second kind of device to divide work with.
    #[error(
        "strategy '{strategy}' needs devices of two kinds out of npu, gpu and cpu, but the engine has: {found}; add one \
         with --device"
    )]
    NeedsTwoKinds {
        /// Strategy.
        strategy: String,
        /// Devices of the engine.
        found: String,
    },
    /// The strategy panicked.
    #[error(
        "strategy '{strategy}' panicked: {reason}; where it has no route, it should return an error"
    )]
    Panicked {
        /// Strategy.
        strategy: String,
        /// Text of the panic.
        reason: String,
    },
    /// The text of a manual placement is malformed.
    #[error(
        "placement '{text}' must have the form PATTERN=DEVICE, such as 'layers.*.ffn=npu': {problem}"
    )]
    Placement {
        /// The text.
        text: String,
        /// Reason.
        problem: &'static str,
    },
    /// A manual placement puts ops on a device without a kernel for them.
    #[error(
        "device '{device}' has no kernel for the ops placed on it: {ops}; place only ops that it runs, such as layers.*.attn.q, .k, .v, .output or layers.*.ffn"
    )]
    PlacedOps {
        /// Paths of the ops.
        ops: String,
        /// Device name.
        device: String,
    },
    /// The pattern of a manual placement matches no op.
    #[error("placement '{pattern}' matches no op of the model; a path of this model is {example}")]
    NoMatch {
        /// The pattern.
        pattern: String,
        /// Path of an op of this model.
        example: String,
    },
    /// A manual placement names an unknown device.
    #[error("placement '{pattern}' names unknown device '{device}'; devices here: {known}")]
    UnknownDevice {
        /// The pattern.
        pattern: String,
        /// The name.
        device: String,
        /// Names of the engine's devices.
        known: String,
    },
}
