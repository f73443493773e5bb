//! Models over HTTP, to the clients of OpenAI, Ollama, Anthropic and llama.cpp.
//!
//! # A server of its own
//!
//! ```no_run
//! use lapwing::Engine;
//! use lapwing::serve::Server;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let small = Engine::builder().model("model.gguf");
//!     let server = Server::builder().model("small", small).bind().await?;
//!     println!("http://{}", server.address());
//!     server.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
//!     Ok(())
//! }
//! ```
//!
//! Each model is loaded when a request asks for it, and unloaded when it is idle.
//! [`ServeConfig`](crate::serve::ServeConfig) has the address, the keys, the limits and the queue policy.
//!
//! # Beside paths of a program
//!
//! [`mount`](crate::serve::ServerBuilder::mount) gives a router of axum 0.8, which a program nests below a prefix or merges with
//! its own. With [`engine`](crate::serve::ServerBuilder::engine), the program's own calls and the server's share one
//! engine, with its queue and its prefix cache.
//!
//! ```no_run
//! use std::net::SocketAddr;
//!
//! use axum::Router;
//! use axum::extract::State;
//! use axum::http::StatusCode;
//! use axum::routing::get;
//! use lapwing::serve::{PathGroup, Server};
//! use lapwing::{Engine, Error, Request};
//!
//! async fn write(engine: Engine) -> Result<String, Error> {
//!     let request = Request::ask("Write a haiku.").client("haiku").max_tokens(48);
//!     engine.generate(request).await?.into_text().await
//! }
//!
//! async fn haiku(State(engine): State<Engine>) -> (StatusCode, String) {
//!     match write(engine).await {
//!         Ok(text) => (StatusCode::OK, text),
//!         Err(error) => {
//!             let status = StatusCode::from_u16(error.http_status()).expect("a status of HTTP");
//!             (status, error.for_clients())
//!         }
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Engine::builder().model("model.gguf").build().await?;
//!     let server = Server::builder()
//!         .engine("small", engine.clone())
//!         .paths([PathGroup::OpenAi, PathGroup::Operation, PathGroup::Page]);
//!     let mounted = server.mount().await?;
//!     let haiku = get(haiku).with_state(engine);
//!     let app = Router::new().route("/haiku", haiku).nest("/llm", mounted.router());
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//!     let stop = async move {
//!         drop(tokio::signal::ctrl_c().await);
//!         mounted.close().await;
//!     };
//!     let service = app.into_make_service_with_connect_info::<SocketAddr>();
//!     axum::serve(listener, service).with_graceful_shutdown(stop).await?;
//!     Ok(())
//! }
//! ```
//!
//! [`Mounted`](crate::serve::Mounted) says what is the program's and what is the server's; [serve](super::documents::serve)
//! describes the interfaces. [web_service](super::web_service) is a service without them, with paths of its own alone.
