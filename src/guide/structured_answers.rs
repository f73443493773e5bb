//! Answers of a certain form: JSON of a schema, a regular expression, a grammar.
//!
//! At each position only tokens are sampled that the [`Grammar`](crate::structured::Grammar) allows, so the answer
//! follows it whatever the model would have preferred.
//!
//! ```no_run
//! use lapwing::structured::Grammar;
//! use lapwing::{Engine, Request, serde_json};
//!
//! async fn cat(engine: &Engine) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
//!     let schema = serde_json::json!({
//!         "type": "object",
//!         "properties": { "name": { "type": "string" }, "age": { "type": "integer" } },
//!         "required": ["name", "age"],
//!     });
//!     let request = Request::ask("Describe a cat as JSON with its name and its age.")
//!         .grammar(Grammar::json_schema(schema))
//!         .max_tokens(200);
//!     let answer = engine.generate(request).await?;
//!     for keyword in answer.ignored_keywords() {
//!         eprintln!("{keyword} cannot be followed");
//!     }
//!     Ok(serde_json::from_str(&answer.into_text().await?)?)
//! }
//! ```
//!
//! Other forms:
//!
//! ```
//! use lapwing::structured::Grammar;
//!
//! let verdict = Grammar::choice(["yes", "no", "unknown"]);
//! let date = Grammar::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}");
//! let moves = Grammar::gbnf("root ::= [a-h] [1-8] [a-h] [1-8]");
//! # assert_ne!(verdict, date);
//! # assert_ne!(date, moves);
//! ```
//!
//! # Values of Rust types
//!
//! With the feature `schemars`, which has `structured` in it, [`generate_as`](crate::Engine::generate_as) answers with a
//! [`Typed`](crate::Typed) value. The JSON schema of the type is the grammar. The dependencies are:
//!
//! ```toml
//! lapwing = { version = "0.1", default-features = false, features = ["schemars"] }
//! schemars = "1"
//! serde = { version = "1", features = ["derive"] }
//! ```
//!
//! ```no_run
//! use lapwing::{Engine, Error, Request};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Debug, Deserialize, JsonSchema)]
//! enum Sky {
//!     Sun,
//!     Clouds,
//!     Rain,
//! }
//!
//! #[derive(Debug, Deserialize, JsonSchema)]
//! struct Report {
//!     #[schemars(length(max = 40))]
//!     city: String,
//!     sky: Sky,
//!     #[schemars(range(min = -60, max = 60))]
//!     celsius: i32,
//!     #[schemars(range(max = 100))]
//!     humidity: u32,
//! }
//!
//! async fn report(engine: &Engine, text: &str) -> Result<Report, Error> {
//!     let question = format!("{text}\nWrite city, sky, celsius and humidity in percent as JSON.");
//!     let answer = engine.generate_as::<Report>(Request::ask(question).max_tokens(200)).await?;
//!     println!("{} tokens", answer.summary.times.generated_tokens);
//!     Ok(answer.value)
//! }
//! ```
//!
//! - `lapwing::schemars` is the same crate. A type that derives its trait from there needs
//!   `#[schemars(crate = "lapwing::schemars")]`, and the program no dependency on schemars.
//! - Give numbers a `range` and texts and lists a `length`. A small model fills a free `u64` with up to 20 digits, and a free
//!   text until `max_tokens` cuts it.
//! - An answer that is cut, or that the type refuses, is a [`TypedError`](crate::TypedError) with its text.
//!
//! # What a grammar does not do
//!
//! - The model does not see the grammar: a prompt that says what is expected gives better answers.
//! - [`max_tokens`](crate::Request::max_tokens) may cut an answer. Then [`Summary::reason`](crate::Summary::reason) is
//!   `Length`, and the text is a beginning of one that follows the grammar.
//! - An invalid grammar is an error of the request, and names the place.
//!
//! [structured](super::documents::structured) says which keywords of a schema are followed, and what grammars cost.
