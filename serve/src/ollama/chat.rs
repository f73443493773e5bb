//! `POST /api/chat`.

use axum::response::Response;
use serde_json::{Map, Value};

use super::answer::{AnswerWriter, Kind, loaded, question};
use super::target;
use crate::endpoint::{Endpoint, Opened, Question, Target};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::openai::messages;
use crate::tools;

/// Answers a conversation.
pub(crate) struct Chat;

impl Endpoint for Chat {
    type Writer = AnswerWriter;

    fn target(fields: &mut Fields) -> Result<Target, ApiError> {
        target(fields)
    }

    fn without_text(opened: &Opened<'_>) -> Option<Response> {
        let is_none = |sent: &Value| sent.is_null() || sent.as_array().is_some_and(Vec::is_empty);
        let loads = opened.fields.peek("messages").is_none_or(is_none);
        loads.then(|| loaded(&opened.target, Kind::Chat))
    }

    async fn read(mut opened: Opened<'_>) -> Result<Question<AnswerWriter>, ApiError> {
        let sent: Vec<Map<String, Value>> = opened.fields.need("messages")?;
        let has_images = |message: &Map<String, Value>| {
            message.get("images").and_then(Value::as_array).is_some_and(|images| !images.is_empty())
        };
        if sent.iter().any(has_images) {
            return Err(ApiError::field("images", "this server reads only text, no images"));
        }
        let messages = messages::read(sent)?;
        let template = opened.lease.engine.chat_template();
        let tools = tools::read(opened.fields.take("tools")?, None)?;
        let end = messages::end_after(&messages)?;
        let request = tools::request(tools.as_ref(), messages, template).prompt_end(end);
        question(opened, request, tools, Kind::Chat)
    }
}
