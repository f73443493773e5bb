//! Timelines that show where the time of a run went. Independent of tensors and models.
//!
//! ```text
//!  Writers ─► Recorder ─► Recording ─► Timeline ─► Analysis ─► Report ─► text, html, budget
//!  (events)   (rings)     (.lwt file)  (spans)     (causes,    (plain
//!                                         │         path)       numbers)
//!                                         └──────────────────► export
//! ```
//!
//! The crate can be used alone: with the feature `layer`, ten lines put the spans of any program that
//! uses the `tracing` crate on a timeline (`examples/trace_any_tokio_app.rs`). `docs/timeline.md` and
//! the modules of [`analysis`] define every reported number.

pub mod analysis;
pub mod budget;
pub mod clock;
pub mod division;
pub mod event;
pub mod export;
pub mod html;
#[cfg(feature = "layer")]
pub mod layer;
pub mod metrics;
pub mod recorder;
pub mod recording;
pub mod report;
mod sync;
pub mod text;
pub mod timeline;
pub mod whole_file;

pub use analysis::Analysis;
pub use clock::{Clock, Nanos, OsClock};
pub use metrics::{RequestTimes, Spread};
pub use recorder::{Recorder, RecorderConfig, Scope, Writer};
pub use recording::{Recording, RecordingError};
pub use report::Report;
pub use timeline::Timeline;
