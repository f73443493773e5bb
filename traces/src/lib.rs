//! Traces tell: clock, events, recorder, timeline and metrics of a run. Knows no tensor.

pub mod analysis;
pub mod budget;
pub mod clock;
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

pub use analysis::Analysis;
pub use clock::{Clock, Nanos, OsClock};
pub use metrics::{Spread, Stations};
pub use recorder::{Recorder, RecorderConfig, Scope, Writer};
pub use recording::{Recording, RecordingError};
pub use report::Report;
pub use timeline::Timeline;
