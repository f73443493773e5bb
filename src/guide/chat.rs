//! Conversations, through the chat template of the model's file.
//!
//! [`Request::ask`](crate::Request::ask) is a conversation of one question. [`Request::chat`](crate::Request::chat) takes
//! all messages so far; the model writes the next one.
//!
//! ```no_run
//! use lapwing::{Engine, Message, Request};
//!
//! async fn talk(engine: &Engine, questions: &[&str]) -> Result<(), lapwing::Error> {
//!     let mut messages = vec![Message::system("Answer in one sentence.")];
//!     for question in questions {
//!         messages.push(Message::user(*question));
//!         let answer = engine.generate(Request::chat(messages.clone())).await?.into_text().await?;
//!         println!("{answer}");
//!         messages.push(Message::assistant(answer));
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Each turn sends the whole conversation, but only its new tokens are computed: the turns before are in the
//! [prefix cache](super::documents::prefixes).
//!
//! Control tokens that are written in a message are ordinary text, so that a user cannot end a turn with them. A model
//! without a template refuses messages; [`chat_template`](crate::Engine::chat_template) says whether there is one, and
//! [`Request::text`](crate::Request::text) continues plain text with any model.
//!
//! A [`Message`](crate::Message) is `Serialize` and `Deserialize` in the form of OpenAI's clients, so a `Vec<Message>` can be
//! the body of a service's request. A conversation without messages is an error. [functions](super::functions) shows messages
//! with calls and their results.
//!
//! # What templates know
//!
//! Variables of a template, such as `enable_thinking`, are set by
//! [`template_variable`](crate::Request::template_variable). A model that thinks before it answers is told for how long by
//! [`thoughts`](crate::Request::thoughts). [templates](super::documents::templates) says what templates get.
