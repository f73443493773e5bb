//! Why a simulated run has no outcome.

use lapwing_traces::Nanos;

use crate::error::RunError;
use crate::policy::UnknownPolicy;
use lapwing_plan::PlanError;

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SocRunError {
    /// The strategy finds no route on these processors.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no policy of that name.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// A request without rows, or with more than the model takes.
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
    /// A device could not be made.
    #[error("a device could not be made: {reason}")]
    Device {
        /// Why.
        reason: String,
    },
    /// The request failed.
    #[error("the request failed after {at} of virtual time: {error}")]
    Failed {
        /// When.
        at: Nanos,
        /// Why.
        error: RunError,
    },
    /// The run would go on for too long.
    #[error(
        "the run had not ended after {at} of virtual time and {frames} frames; raise the rates, \
         shorten the times, or leave the renderer out"
    )]
    TooLong {
        /// When it was given up.
        at: Nanos,
        /// Frames until then.
        frames: usize,
    },
    /// Something that only processors without values can do.
    #[error("{what} does not go with true values; leave one of both out")]
    Values {
        /// Which option.
        what: &'static str,
    },
    /// The caller left before the first token.
    #[error("the caller left before the first token")]
    Cancelled,
    /// Nothing can happen any more, and the request has not ended: an error of the runtime.
    #[error("the engine stands still with {sequences} requests and {chunks} chunks inside")]
    Stuck {
        /// Requests inside.
        sequences: usize,
        /// Chunks in flight.
        chunks: usize,
    },
    /// The engine is empty, but not everything came back: an error of the runtime.
    #[error(
        "{pages} KV pages, {tickets} tickets, {chunks} chunks and {slots} slots did not come back, \
         and {left} events or chunks are left"
    )]
    Leak {
        /// KV pages.
        pages: usize,
        /// Tickets.
        tickets: usize,
        /// Chunks.
        chunks: usize,
        /// Slots with values.
        slots: usize,
        /// Events to come, and chunks and parts in workers.
        left: usize,
    },
}
