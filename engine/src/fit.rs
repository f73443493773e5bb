//! What a model needs on this machine and how fast it would run, from its header alone: before it is fetched.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use lapwing::Engine;
//! use lapwing::fit::{FitOptions, ModelHeader};
//!
//! # async fn example() -> Result<(), lapwing::Error> {
//! let header = ModelHeader::of_name(&"hf:Qwen/Qwen3-0.6B-GGUF:Q8_0".parse()?).await?;
//! // On a thread of its own in an async program: it takes some seconds.
//! let fit = Engine::builder().fit_here(&header, &FitOptions::default(), &mut |step| {
//!     println!("{} of {}: {}", step.done, step.of, step.what);
//!     ControlFlow::Continue(())
//! })?;
//! println!("needs {} bytes, and generates {:?} tokens a second", fit.needed(), fit.tokens_per_second());
//! # Ok(())
//! # }
//! ```
//!
//! # Where the times come from
//! An engine predicts times from the measured times of each op ([`profile`](crate::profile)). For a model whose weights are not
//! here, the ops are measured with a stand-in: matrices of zeros, in the shapes and formats of the model's own, in as many of its
//! layers as a gigabyte holds, bound to the same devices with the same settings. A layer of a decoder is like the others, so the
//! times of a few layers give those of all. Choosing a token takes time, too, and is timed.
//! [`EngineBuilder::profile`](crate::EngineBuilder::profile) takes the place of this measurement. Devices that are throttled to
//! stated rates have the times of these rates.

mod free;
mod header;
mod report;
pub(crate) mod sample;

use std::time::Duration;

pub use free::free_memory;
pub(crate) use header::identity;
pub use header::{ModelHeader, OtherModel};
use lapwing_actors::drive::measure::Limits;
pub use report::{Fit, MemoryNeed, Speed};

/// What is predicted, and how long devices are measured for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitOptions {
    /// Tokens of the prompt whose time is predicted; at most as many as the context holds are used.
    pub prompt: usize,
    /// Limits of the measurement.
    pub limits: Limits,
}

impl Default for FitOptions {
    /// A prompt of 512 tokens, and a few points of each op: until their times agree, 61 runs or 160 ms, at most 30 s for each device.
    fn default() -> FitOptions {
        let (per_op, per_device) = (Duration::from_millis(160), Duration::from_secs(30));
        FitOptions { prompt: 512, limits: Limits { runs: 61, per_op, per_device } }
    }
}
