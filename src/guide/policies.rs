//! Queue policies: whose request is computed next.
//!
//! By default requests are admitted in the order of arrival (`fcfs`). With many clients a policy that treats them apart
//! is fairer: a client is a name that the program gives its requests.
//!
//! ```no_run
//! use lapwing::{Engine, Request};
//!
//! async fn fair() -> Result<(), lapwing::Error> {
//!     let engine = Engine::builder().model("model.gguf").policy("vtc:weight.alice=2").build().await?;
//!     let first = engine.generate(Request::ask("What is gravity?").client("alice")).await?;
//!     let second = engine.generate(Request::ask("What is light?").client("bob")).await?;
//!     # drop((first, second));
//!     for client in engine.stats().await?.clients {
//!         println!("{}: {} tokens", client.client, client.work.generated_tokens);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A policy is chosen by its name with parameters, or is a value of one's own that implements
//! [`QueuePolicy`](crate::policy::QueuePolicy):
//!
//! ```
//! use lapwing::policy;
//!
//! for entry in policy::known() {
//!     println!("{}: {}", entry.name(), entry.about());
//! }
//! assert!(policy::by_name("mlfq:quantum=32").is_ok());
//! assert!(policy::by_name("mlfq:quantums=32").is_err());
//! ```
//!
//! A policy decides when a request is computed, and never what: tokens are the same with each.
//!
//! # Urgency
//!
//! ```
//! use std::time::Duration;
//!
//! use lapwing::Request;
//!
//! // A stream waits for a token for at most a quarter of a second while other prompts are computed.
//! let stream = Request::ask("Tell me a story.").token_gap(Duration::from_millis(250));
//! // It gives way to other requests with every policy.
//! let nightly = Request::text("Summarise: …").background();
//! // For the policy `edf`.
//! let due = Request::ask("Yes or no?").deadline(Duration::from_secs(2)).priority(1);
//! # assert!(stream.urgency != nightly.urgency && nightly.urgency != due.urgency);
//! ```
//!
//! [policies](super::documents::policies) has the rule, the parameters and the guarantee of each; [load](super::documents::load)
//! compares them in virtual time. `examples/custom_policy.rs` writes one.
