//! A first program: one question, one answer.
//!
//! ```no_run
//! use lapwing::{Engine, Request};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), lapwing::Error> {
//!     let engine = Engine::builder().model("model.gguf").build().await?;
//!     let request = Request::ask("Why is the sky blue?").max_tokens(64);
//!     let answer = engine.generate(request).await?.into_text().await?;
//!     println!("{answer}");
//!     Ok(())
//! }
//! ```
//!
//! An [`Engine`](crate::Engine) is one model on the devices of this machine. It is cheap to clone, may be called from
//! any thread and any async runtime, and answers many requests at once. It has threads of its own and never blocks
//! its caller's. Building one reads the weights, so a program keeps it.
//!
//! A [`Request`](crate::Request) is a value: it can be stored, cloned and sent again. By default its tokens are drawn,
//! and differ from call to call; [`greedy`](crate::Request::greedy) always takes the likeliest token, and
//! [`seed`](crate::Request::seed) repeats a draw.
//!
//! ```
//! use lapwing::Request;
//!
//! let plain = Request::text("Once upon a time").greedy();
//! let drawn = Request::ask("Tell me a story.").temperature(0.7).top_p(0.9).seed(7).stop("###");
//! assert_eq!((plain.sampling.temperature, drawn.sampling.seed), (0.0, Some(7)));
//! ```
//!
//! # A model by name
//!
//! [`model_named`](crate::EngineBuilder::model_named) takes a model from the cache, or fetches it:
//! `Engine::builder().model_named("smollm2")`. The names are those of `lapwing models`, `hf:owner/repository` and
//! `hf:owner/repository/file.gguf`.
//!
//! # Without an async runtime
//!
//! Every call that waits has a blocking form:
//!
//! ```no_run
//! use lapwing::{Engine, Request};
//!
//! fn main() -> Result<(), lapwing::Error> {
//!     let engine = Engine::builder().model("model.gguf").build_blocking()?;
//!     let mut answer = engine.generate_blocking(Request::ask("Why is the sky blue?"))?;
//!     for token in answer.blocking() {
//!         print!("{}", token?.text);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Errors
//!
//! Everything fails with one type, [`Error`](crate::Error), or with one that becomes it with `?`, as
//! [`TypedError`](crate::TypedError) and [`ArgumentsError`](crate::tools::ArgumentsError). Its
//! [`kind`](crate::Error::kind) says who has to do something; its text says what. The `Debug` form is the same text, so
//! that a `main` may return it.
//!
//! | [`ErrorKind`](crate::ErrorKind) | what to do | [`http_status`](crate::Error::http_status) |
//! |---|---|---|
//! | `Model` | use another file, or fetch it again | 500 |
//! | `Fetch` | check the name, the network and the disk | 500 |
//! | `Config` | change the setting that the text names | 500 |
//! | `Request` | change the request: its prompt, its limits or its grammar | 400 |
//! | `Busy` | send the same request later | 429 |
//! | `Answer` | send the request again, or allow more tokens | 500 |
//! | `Engine` | read the text; build another engine if this one has failed | 500, or 503 after a shutdown |
//!
//! ```
//! use lapwing::{Engine, ErrorKind};
//!
//! let missing = Engine::builder().model("no-such-file.gguf").build_blocking();
//! let error = missing.expect_err("there is no such file");
//! assert_eq!(error.kind(), ErrorKind::Model);
//! assert!(error.to_string().contains("no-such-file.gguf"));
//! ```
