//! The guide: from a first program to strategies of one's own, and the documents of the repository.
//!
//! Every example is compiled with the tests of this crate. Those that need a model name the file `model.gguf`, which
//! may be any model in GGUF; `Engine::builder().model_named("smollm2")` fetches a small one.
//!
//! | page | for a program that |
//! |---|---|
//! | [`first_program`] | answers a first question |
//! | [`streams`] | shows tokens as they come, with or without an async runtime |
//! | [`cancellation`] | gives up on an answer |
//! | [`chat`] | holds a conversation |
//! | [`structured_answers`] | needs an answer of a certain form, such as JSON of a schema |
//! | [`functions`] | lets the model call its functions |
//! | [`embeddings`] | compares texts |
//! | [`policies`] | has several clients, or work of different urgency |
//! | [`strategies`] | has several processors |
//! | [`tracing`] | wants to know where the time goes |
//! | [`server`] | serves models over HTTP, alone or beside paths of its own |
//! | [`web_service`] | answers over HTTP with paths of its own alone |
//! | [`documents`] | wants to know more: all documents of the repository |
//!
//! The crate has the engine alone with `default-features = false`. Its features are in the table of the
//! [crate's page](crate).

pub mod cancellation;
pub mod chat;
pub mod documents;
pub mod embeddings;
pub mod first_program;
pub mod functions;
pub mod policies;
pub mod server;
pub mod strategies;
pub mod streams;
pub mod structured_answers;
pub mod tracing;
pub mod web_service;
