//! A web service of one's own: streams, calls of functions and typed answers as paths of an axum router.
//!
//! The engine is the state of the router. It is cheap to clone, needs no lock, and answers all clients at once.
//! [server](super::server) is the way to the interfaces of OpenAI, Ollama and Anthropic.
//!
//! ```toml
//! axum = "0.8"
//! futures-util = "0.3"
//! lapwing = { version = "0.1", default-features = false, features = ["schemars"] }
//! schemars = "1"
//! serde = { version = "1", features = ["derive"] }
//! tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//! ```
//!
//! ```no_run
//! use axum::extract::{Json, State};
//! use axum::http::StatusCode;
//! use axum::response::{IntoResponse, Response, Sse, sse::Event};
//! use axum::{Router, routing::post};
//! use futures_util::stream;
//! use lapwing::{Engine, Message, Request, Tool, ToolChoice, TokenStream, Tools};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! type Chat = Json<Vec<Message>>;
//!
//! struct Failure(lapwing::Error);
//!
//! impl<E: Into<lapwing::Error>> From<E> for Failure {
//!     fn from(error: E) -> Failure {
//!         Failure(error.into())
//!     }
//! }
//!
//! impl IntoResponse for Failure {
//!     fn into_response(self) -> Response {
//!         let status = StatusCode::from_u16(self.0.http_status()).expect("a status of HTTP");
//!         (status, self.0.for_clients()).into_response()
//!     }
//! }
//!
//! async fn next(tokens: Option<TokenStream>) -> Option<(Result<Event, axum::Error>, Option<TokenStream>)> {
//!     let mut tokens = tokens?;
//!     let event = match tokens.next().await {
//!         Some(Ok(token)) => Event::default().json_data(token.text),
//!         Some(Err(error)) => Event::default().event("error").json_data(error.for_clients()),
//!         None => {
//!             let reason = tokens.summary().map_or("error", |summary| summary.reason.name());
//!             return Some((Event::default().event("end").json_data(reason), None));
//!         }
//!     };
//!     Some((event, Some(tokens)))
//! }
//!
//! async fn chat(State(engine): State<Engine>, Json(chat): Chat) -> Result<impl IntoResponse, Failure> {
//!     let tokens = engine.generate(Request::chat(chat).max_tokens(512)).await?;
//!     Ok(Sse::new(stream::unfold(Some(tokens), next)))
//! }
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Place {
//!     #[schemars(length(max = 40))]
//!     city: String,
//! }
//!
//! async fn ask(State(engine): State<Engine>, Json(mut chat): Chat) -> Result<Chat, Failure> {
//!     let weather = Tool::new("get_weather").description("The weather of a city.");
//!     let weather = weather.parameters_of::<Place>();
//!     for choice in [ToolChoice::Auto, ToolChoice::Auto, ToolChoice::None] {
//!         let tools = Tools::new([weather.clone()]).choice(choice);
//!         let request = Request::chat(chat.clone()).tools(tools).max_tokens(256);
//!         let answer = engine.generate(request).await?.into_answer().await?;
//!         chat.push(answer.message());
//!         for call in &answer.calls {
//!             let result = match call.arguments_as::<Place>() {
//!                 Ok(place) => format!("12 °C and rain in {}", place.city),
//!                 Err(error) => error.to_string(),
//!             };
//!             chat.push(Message::result(call, result));
//!         }
//!         if answer.calls.is_empty() {
//!             break;
//!         }
//!     }
//!     Ok(Json(chat))
//! }
//!
//! #[derive(Deserialize, JsonSchema, Serialize)]
//! struct City {
//!     #[schemars(length(max = 40))]
//!     city: String,
//!     #[schemars(range(max = 50_000_000))]
//!     population: u64,
//! }
//!
//! async fn city(State(engine): State<Engine>, Json(chat): Chat) -> Result<Json<City>, Failure> {
//!     let answer = engine.generate_as::<City>(Request::chat(chat).max_tokens(100)).await?;
//!     Ok(Json(answer.value))
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Engine::builder().model("model.gguf").require_chat().build().await?;
//!     let app = Router::new().route("/chat", post(chat)).route("/ask", post(ask));
//!     let app = app.route("/city", post(city)).with_state(engine);
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//!     Ok(axum::serve(listener, app).await?)
//! }
//! ```
//!
//! - **Bodies.** A body is a list of messages as OpenAI's clients write them, since a [`Message`](crate::Message) is
//!   `Deserialize`. axum refuses other bodies.
//! - **Statuses.** `generate` refuses what is wrong with a request before the stream begins
//!   ([streams](super::streams#errors-before-the-stream-and-in-it)), so a prompt that is too long has the status 400.
//!   [`http_status`](crate::Error::http_status) has the status of each error, and
//!   [`for_clients`](crate::Error::for_clients) a text without paths and options of this machine.
//! - **Streams.** A later failure has the event `error`. The last event says why the answer has ended: `stop` or `length`. The
//!   text of a token may be empty, and has line feeds and white space that matter; as JSON it keeps them.
//! - **Disconnects.** axum drops the body or the handler when its client disconnects. That cancels the request, also while
//!   its prompt is computed; [cancellation](super::cancellation) says why. Nothing is to be done.
//! - **Slow readers.** A client that does not read delays no other client. Its answer is still generated to the end. Limit it with
//!   [`max_tokens`](crate::Request::max_tokens).
//! - **Many clients.** [`client`](crate::Request::client) tells them apart for a [queue policy](super::policies).
