//! Cancellation: dropping a stream cancels its request.
//!
//! There is no handle to cancel and no flag to pass: a request lives as long as its stream. What it holds, such as
//! memory for keys and values, is given back within one pass of the model, also while it waits in the queue.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use lapwing::{Engine, Error, Request};
//!
//! /// The answer, or what there is of it after that time.
//! async fn within(engine: &Engine, question: &str, time: Duration) -> Result<String, Error> {
//!     let mut answer = engine.generate(Request::ask(question)).await?;
//!     let mut text = String::new();
//!     let reading = async {
//!         while let Some(token) = answer.next().await {
//!             text.push_str(&token?.text);
//!         }
//!         Ok::<(), Error>(())
//!     };
//!     // Without an end in time the future is dropped, and at the end of the function the stream.
//!     match tokio::time::timeout(time, reading).await {
//!         Ok(ended) => ended?,
//!         Err(_) => text.push('…'),
//!     }
//!     Ok(text)
//! }
//! ```
//!
//! In a `tokio::select!`, a branch that another one overtakes is dropped in the same way. `next` loses no token when its
//! future is dropped: the stream has it for the next call.
//!
//! # In a web service
//!
//! A web framework drops the handler, or the body of the answer, when its client disconnects. Both own the stream, so the
//! request is cancelled, also while its prompt is computed. [web_service](super::web_service) has an example.
//!
//! # Limits
//!
//! A request may also end by itself: after [`max_tokens`](crate::Request::max_tokens), at a
//! [`stop`](crate::Request::stop) text, or where its [grammar](super::structured_answers) is complete.
//!
//! # The end of an engine
//!
//! Dropping the last clone of an [`Engine`](crate::Engine) ends it. [`shutdown`](crate::Engine::shutdown) ends it while
//! clones exist, and waits:
//!
//! ```no_run
//! use lapwing::{Engine, Shutdown};
//!
//! async fn end(engine: Engine) -> Result<(), lapwing::Error> {
//!     // `Shutdown::Now` fails the requests that run.
//!     engine.shutdown(Shutdown::Drain).await
//! }
//! ```
