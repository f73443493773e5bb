//! Strategies: which processor computes which part of a prompt.
//!
//! An engine has one device, or several that share its weights. A strategy divides the work between them. It changes the
//! times and no token, as far as the devices round alike.
//!
//! ```no_run
//! use lapwing::devices::DeviceSpec;
//! use lapwing::{Engine, Request};
//!
//! async fn on_both() -> Result<(), Box<dyn std::error::Error>> {
//!     // The GPU and the NPU of this machine as far as there are drivers, and otherwise emulated ones.
//!     let present = DeviceSpec::list_present("cpu+gpu+npu")?;
//!     present.notes.iter().for_each(|note| eprintln!("{note}"));
//!     let builder = Engine::builder().model("model.gguf").devices(present.devices);
//!     let engine = builder.strategy("auto").build().await?;
//!     for chunk in engine.plan(300)? {
//!         println!("{chunk}");
//!     }
//!     let answer = engine.generate(Request::ask("What is gravity?")).await?;
//!     println!("{}", answer.into_text().await?);
//!     Ok(())
//! }
//! ```
//!
//! `auto`, the default with several devices, takes the strategy with the lowest predicted time for each length of a
//! prompt. Predictions are better with a profile of the devices, which `lapwing profile` measures and
//! [`EngineBuilder::profile`](crate::EngineBuilder::profile) takes.
//!
//! ```
//! use lapwing::plan::strategies;
//!
//! let names: Vec<&str> = strategies().iter().map(|entry| entry.name()).collect();
//! assert!(names.contains(&"row-cut") && names.contains(&"chunk-graph"));
//! ```
//!
//! # Compared, live and in virtual time
//!
//! [`Compare`](crate::compare::Compare) measures strategies side by side on the engine's devices. A
//! [`Scenario`](crate::simulate::Scenario) runs one on the modelled processors of a phone: it takes milliseconds, needs no
//! weights, and gives the same figures in every run.
//!
//! ```
//! use lapwing::simulate::Scenario;
//!
//! let mut scenario = Scenario::new("sd8gen3")?;
//! scenario.set("prompt", "256")?;
//! scenario.set("strategy", "tensor-level")?;
//! let divided = scenario.run()?;
//! scenario.set("strategy", "gpu-only")?;
//! assert!(divided.prefill_ms < scenario.run()?.prefill_ms, "two processors are faster than one");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # One of one's own
//!
//! [strategies](super::documents::strategies) writes a strategy in ten minutes: a pure function from the model's ops, the devices
//! and the shape of a chunk to a route. [overlap](super::documents::overlap) describes devices, the built-in strategies and
//! the predictions.
