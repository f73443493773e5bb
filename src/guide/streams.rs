//! Streams: tokens as they are generated.
//!
//! [`generate`](crate::Engine::generate) returns a [`TokenStream`](crate::TokenStream). It is a
//! [`Stream`](crate::Stream) of `Result<Token, Error>`, and its own `next` needs no extension trait.
//!
//! ```no_run
//! use std::io::Write;
//!
//! use lapwing::{Engine, Request};
//!
//! async fn show(engine: &Engine) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut answer = engine.generate(Request::ask("What is gravity?").max_tokens(200)).await?;
//!     while let Some(token) = answer.next().await {
//!         print!("{}", token?.text);
//!         std::io::stdout().flush()?;
//!     }
//!     if let Some(summary) = answer.summary() {
//!         println!("\n{:?}, {:.0} tokens/s", summary.reason, summary.tokens_per_second());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! - The text of a token lags behind its id while a character or a possible stop text is incomplete. So it may be empty.
//! - A failure is the last item. What was generated before it stays valid.
//! - A [`Summary`](crate::Summary) follows the last token: why the answer ended, and its times.
//! - [`into_text`](crate::TokenStream::into_text) waits for the whole text, and loses the summary.
//!   [`into_answer`](crate::TokenStream::into_answer) keeps the reason of the end.
//! - A slow reader does not block the engine or other requests: its tokens are buffered.
//!
//! # Errors before the stream, and in it
//!
//! `generate` reads the prompt before it returns the stream. An invalid request is its own error: a prompt without tokens or
//! with too many for the context, a setting out of range, a grammar that cannot be followed, too many requests at once.
//! [`is_prompt_too_long`](crate::Error::is_prompt_too_long) tells which. The prompt is computed after that.
//!
//! Other errors are known later only, and are the last item of the stream: the limit of requests per minute of a
//! [queue policy](super::policies), a sequence for which the KV cache is too small, and a failure of the engine.
//!
//! # Progress of a long prompt
//!
//! With [`prompt_progress`](crate::Request::prompt_progress), the stream tells how much of the prompt is computed:
//!
//! ```no_run
//! use lapwing::{Engine, Request, TokenEvent};
//!
//! async fn show(engine: &Engine, long: String) -> Result<(), lapwing::Error> {
//!     let mut answer = engine.generate(Request::text(long).prompt_progress(true)).await?;
//!     while let Some(event) = answer.next_event().await {
//!         match event? {
//!             TokenEvent::Prompt(progress) => {
//!                 eprintln!("{} of {} tokens", progress.computed, progress.tokens);
//!             }
//!             TokenEvent::Token(token) => print!("{}", token.text),
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Several answers at once
//!
//! Requests of one engine are computed together, and each has the tokens that it would have alone.
//!
//! ```no_run
//! use lapwing::{Engine, Request};
//!
//! async fn both(engine: &Engine) -> Result<(String, String), lapwing::Error> {
//!     let first = engine.generate(Request::ask("What is gravity?").greedy()).await?;
//!     let second = engine.generate(Request::ask("What is light?").greedy()).await?;
//!     Ok((first.into_text().await?, second.into_text().await?))
//! }
//! ```
