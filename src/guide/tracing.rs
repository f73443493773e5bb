//! Timelines: where the time of an answer goes.
//!
//! A [`Recorder`](crate::traces::Recorder) takes what the actors of an engine do. It is off until a
//! [`Scope`](crate::traces::Scope) is set; then it is on for everything, or for single requests that are
//! [`traced`](crate::Request::traced).
//!
//! ```no_run
//! use lapwing::traces::html::{PageRun, page};
//! use lapwing::traces::{Analysis, Report, Scope, Timeline};
//! use lapwing::{Engine, Request, Shutdown};
//!
//! async fn record(engine: Engine) -> Result<(), Box<dyn std::error::Error>> {
//!     engine.recorder().set_scope(Scope::Marked);
//!     let request = Request::ask("What is gravity?").max_tokens(64).traced();
//!     println!("{}", engine.generate(request).await?.into_text().await?);
//!     // The actors record their last events before they end.
//!     engine.shutdown(Shutdown::Drain).await?;
//!
//!     let recording = engine.recorder().recording();
//!     recording.save("run.lwt")?; // for `lapwing timeline run.lwt`
//!     let timeline = Timeline::new(&recording);
//!     let analysis = Analysis::new(&timeline);
//!     let report = Report::new(&timeline, &analysis);
//!     for lane in &report.lanes {
//!         println!("{}: busy {:.0} % of the time", lane.name, 100.0 * lane.utilization);
//!     }
//!     let run = PageRun { title: "one answer", timeline: &timeline, analysis: &analysis, report: &report };
//!     std::fs::write("run.html", page(&[run])?)?;
//!     Ok(())
//! }
//! ```
//!
//! Recording takes no lock and never waits; events that do not fit are counted. A program that records for days keeps
//! the latest ones:
//!
//! ```
//! use std::sync::Arc;
//!
//! use lapwing::Engine;
//! use lapwing::traces::{OsClock, Recorder, RecorderConfig, Scope};
//!
//! let config = RecorderConfig { events_max: 1 << 17, keep_latest: true, ..RecorderConfig::default() };
//! let recorder = Recorder::new(Arc::new(OsClock::start()), config);
//! recorder.set_scope(Scope::All);
//! let builder = Engine::builder().model("model.gguf").recorder(recorder);
//! # drop(builder);
//! ```
//!
//! # Without a recording
//!
//! A [`Summary`](crate::Summary) has the times of an answer, and [`stats`](crate::Engine::stats) those of all requests, by
//! client. What the engine logs goes through the crate `tracing`.
//!
//! # Spans of a program
//!
//! The crate `lapwing-traces` can be used alone: its layer puts the spans of a program that uses `tracing` on the same
//! timeline, or on one without any model (`examples/timeline.rs`, `examples/trace_any_tokio_app.rs`).
//! [timeline](super::documents::timeline) defines every number.
