//! Functions of the program that the model may call.
//!
//! A request names its functions with [`tools`](crate::Request::tools). The answer is text, or has calls. The program runs
//! them, and sends the conversation again with the calls and their results. The feature is `structured`; functions whose
//! arguments are Rust types need `schemars`.
//!
//! ```no_run
//! use lapwing::{Engine, Error, Message, Request, Tool, ToolCall, ToolChoice, Tools};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Place {
//!     /// Name of the city.
//!     #[schemars(length(max = 40))]
//!     city: String,
//! }
//!
//! /// What the model gets: the weather, or what is wrong with its call.
//! fn get_weather(call: &ToolCall) -> String {
//!     match call.arguments_as::<Place>() {
//!         Ok(place) => format!("12 °C and rain in {}", place.city),
//!         Err(error) => error.to_string(),
//!     }
//! }
//!
//! /// Most answers to one question.
//! const TURNS: usize = 4;
//!
//! async fn ask(engine: &Engine, question: &str) -> Result<String, Error> {
//!     let weather =
//!         Tool::new("get_weather").description("The weather of a city.").parameters_of::<Place>();
//!     let mut messages = vec![Message::user(question)];
//!     for turn in 1..=TURNS {
//!         // The last answer is a text.
//!         let choice = if turn == TURNS { ToolChoice::None } else { ToolChoice::Auto };
//!         let tools = Tools::new([weather.clone()]).choice(choice);
//!         let request = Request::chat(messages.clone()).tools(tools).max_tokens(300);
//!         let answer = engine.generate(request).await?.into_answer().await?;
//!         if answer.calls.is_empty() {
//!             return Ok(answer.text);
//!         }
//!         messages.push(answer.message());
//!         for call in &answer.calls {
//!             messages.push(Message::result(call, get_weather(call)));
//!         }
//!     }
//!     Ok(String::new())
//! }
//! ```
//!
//! - [`parameters_of`](crate::Tool::parameters_of) describes the arguments by the schema of a type, and
//!   [`parameters`](crate::Tool::parameters) by one that is written out. Comments on fields are descriptions, which the model
//!   sees.
//! - [`arguments_as`](crate::ToolCall::arguments_as) reads the arguments. Its error says what is wrong; as the result of the
//!   call, it lets the model correct itself. With `?` it becomes an [`Error`](crate::Error).
//! - [`Answer::message`](crate::Answer::message) is the model's message, with its calls and thoughts.
//!   [`Message::result`](crate::Message::result) belongs to a call by its id.
//! - Limit the turns: a small model may call for ever.
//!
//! # Calls that have to be
//!
//! ```
//! use lapwing::{Tool, ToolChoice, Tools};
//!
//! let tools = || [Tool::new("get_weather"), Tool::new("get_time")];
//! let one_of_them = Tools::new(tools()).choice(ToolChoice::Required);
//! let this_one = Tools::new(tools()).choice(ToolChoice::Named("get_time".to_owned()));
//! let one_call = Tools::new(tools()).parallel(false);
//! let some_of_them = Tools::new(tools()).allowed(["get_time"]);
//! # assert!(one_of_them.requires_call() && this_one.requires_call());
//! # assert!(!one_call.is_parallel() && some_of_them.may_call());
//! ```
//!
//! With `Required` and `Named` the answer is a valid call, as its grammar is the schema of the arguments. Then choose `Auto`
//! for the next turn, or the model calls again. With `Auto` the arguments are valid if the function is
//! [`strict`](crate::Tool::strict). A name that no function has is an error of the request.
//!
//! A limit may cut an answer inside of a call; [`Answer::is_cut`](crate::Answer::is_cut) says so, and `arguments_as` refuses
//! what there is. [structured](super::documents::structured#calls-of-functions) has the rest, and `examples/tools.rs` is a whole
//! program.
