//! `POST /api/generate`.

use axum::response::Response;
use serde_json::Value;

use super::answer::{AnswerWriter, Kind, loaded, question};
use super::target;
use crate::endpoint::{Endpoint, Opened, Question, Target};
use crate::error::ApiError;
use crate::fields::Fields;
use lapwing_engine::chat::Message;
use lapwing_engine::{Prompt, Request};

/// Continues a prompt.
pub(crate) struct Generate;

impl Endpoint for Generate {
    type Writer = AnswerWriter;

    fn target(fields: &mut Fields) -> Result<Target, ApiError> {
        target(fields)
    }

    fn without_text(opened: &Opened<'_>) -> Option<Response> {
        let prompt = opened.fields.peek("prompt");
        let loads = prompt.is_none_or(|prompt| prompt.is_null() || prompt == "");
        loads.then(|| loaded(&opened.target, Kind::Text))
    }

    async fn read(mut opened: Opened<'_>) -> Result<Question<AnswerWriter>, ApiError> {
        let fields = &mut opened.fields;
        let prompt = fields.need::<String>("prompt")?;
        if fields.take::<Vec<Value>>("images")?.is_some_and(|images| !images.is_empty()) {
            return Err(ApiError::field("images", "this server reads only text, no images"));
        }
        let system: Option<String> = fields.take("system")?;
        let is_raw = fields.take("raw")?.unwrap_or(false);
        let prompt = match is_raw || opened.lease.engine.chat_template().is_none() {
            true => Prompt::Text(prompt),
            false => {
                let system = system.filter(|text| !text.is_empty()).map(Message::system);
                Prompt::Chat(system.into_iter().chain([Message::user(prompt)]).collect())
            }
        };
        question(opened, Request::new(prompt), None, Kind::Text)
    }
}
