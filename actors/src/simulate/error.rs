//! Errors of simulated runs.

use lapwing_traces::Nanos;

use crate::error::RunError;
use lapwing_plan::PlanError;
use lapwing_plan::registry::ChoiceError;

/// Why a simulated run failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SocRunError {
    /// The strategy finds no route on these processors.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no such policy.
    #[error(transparent)]
    Policy(#[from] ChoiceError),
    /// An option is out of range.
    #[error("{what} is {found}, but must be between {from} and {to}")]
    Option {
        /// Which option.
        what: &'static str,
        /// Its value.
        found: usize,
        /// Least value.
        from: usize,
        /// Greatest value.
        to: usize,
    },
    /// The system has no processor of a kind.
    #[error("the system has no processor of kind '{kind}'; it has gpu, npu and cpu")]
    NoProcessor {
        /// Name of the kind.
        kind: &'static str,
    },
    /// A device of the caller's own has no times for the model.
    #[error("device '{device}' has no times for this model: {reason}")]
    Law {
        /// Name of the device.
        device: String,
        /// What its law says.
        reason: String,
    },
    /// Two devices have the same name.
    #[error("two devices are named '{name}'; give each its own name, or leave one out")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// A number of the run is impossible.
    #[error("{reason}")]
    Number {
        /// Which, and what is possible.
        reason: String,
    },
    /// A device could not be created.
    #[error("cannot create a device: {reason}")]
    Device {
        /// Why.
        reason: String,
    },
    /// The request failed.
    #[error("the request failed after {at} of virtual time: {error}")]
    Failed {
        /// Virtual time of the failure.
        at: Nanos,
        /// The request's error.
        error: RunError,
    },
    /// The run takes too long.
    #[error(
        "the run has not ended after {at} of virtual time and {frames} frames; raise the rates, \
         shorten the times, or disable the renderer"
    )]
    TooLong {
        /// Virtual time at which the run was aborted.
        at: Nanos,
        /// Frames until then.
        frames: usize,
    },
    /// An option that works only without true values.
    #[error("{what} cannot be combined with true values; remove one of them")]
    Values {
        /// Which option.
        what: &'static str,
    },
    /// The caller cancelled before the first token.
    #[error("the caller cancelled before the first token")]
    Cancelled,
    /// No event is left, but the request has not ended: a defect of the runtime.
    #[error(
        "the engine is stuck with {sequences} requests and {chunks} chunks in flight; please report this"
    )]
    Stuck {
        /// Requests in the engine.
        sequences: usize,
        /// Chunks in flight.
        chunks: usize,
    },
    /// The engine is empty, but resources were not released: a defect of the runtime.
    #[error(
        "the engine leaked {pages} KV pages, {admissions} admission permits, {chunks} chunk permits and \
         {slots} slots, and {left} events or chunks are left; please report this"
    )]
    Leak {
        /// Leaked KV pages.
        pages: usize,
        /// Leaked admission permits.
        admissions: usize,
        /// Leaked chunk permits.
        chunks: usize,
        /// Leaked slots.
        slots: usize,
        /// Pending events, and chunks and parts in workers.
        left: usize,
    },
}
