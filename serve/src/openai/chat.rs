//! `POST /v1/chat/completions`.

mod writer;

use serde_json::{Map, Value, json};

use super::logprobs::TOP_MAX;
use super::token_ids::IdOptions;
use super::{StreamOptions, messages};
use crate::answer::Answers;
use crate::constraint;
use crate::endpoint::{Endpoint, Opened, Question};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::sampling;
use crate::thinking;
use crate::tools;
use lapwing_engine::parts::AnswerForm;
use writer::{ChatWriter, Wanted};

/// Answers a conversation.
pub(crate) struct Chat;

impl Endpoint for Chat {
    type Writer = ChatWriter;

    async fn read(
        Opened { lease, mut fields, .. }: Opened<'_>,
    ) -> Result<Question<ChatWriter>, ApiError> {
        let template = lease.engine.chat_template();
        let sent: Vec<Map<String, Value>> = fields.need("messages")?;
        let messages = messages::read(sent)?;
        refuse(&fields)?;
        let tools = tools::take(&mut fields)?;
        let end = messages::prompt_end(&mut fields, &messages)?;
        let request = tools::request(tools.as_ref(), messages, template).prompt_end(end);
        let (request, ignored) = thinking::apply(&mut fields, template, request)?;
        let mut request = sampling::apply(&mut fields, lease.spec(), request)?;
        request.max_tokens = sampling::max_tokens(&mut fields)?;
        let logprobs = fields.take("logprobs")?.unwrap_or(false);
        let top: Option<usize> = fields.take("top_logprobs")?;
        if top.is_some_and(|top| top > TOP_MAX) {
            return Err(ApiError::field(
                "top_logprobs",
                format!("top_logprobs must be at most {TOP_MAX}"),
            ));
        }
        if !logprobs && top.is_some_and(|top| top > 0) {
            return Err(ApiError::field("top_logprobs", "top_logprobs needs logprobs to be true"));
        }
        request.top_logprobs = top.unwrap_or(0);
        let ids = IdOptions::take(&mut fields, logprobs)?;
        let stream = StreamOptions::take(&mut fields)?;
        request.prompt_progress = stream.prompt_progress;
        let request = constraint::apply(&mut fields, tools.as_ref(), template, request)?;
        let form = AnswerForm::new(tools.as_ref(), template);
        let requests = sampling::choices(request, fields.take("n")?)?;
        let user = fields.take_any(&["user", "safety_identifier"])?;
        fields.name_ignored(ignored);
        drop_defaults(&mut fields);
        let (choices, is_streamed, ignored) = (requests.len(), stream.stream, fields.rest());
        let wanted = Wanted { stream, logprobs, ids };
        let writer = Box::new(move |answers: &Answers| ChatWriter::new(wanted, answers));
        Ok(Question { requests, choices, form, user, is_streamed, ignored, writer })
    }
}

/// Refuses what would change the kind of the answer.
fn refuse(fields: &Fields) -> Result<(), ApiError> {
    let given = |name: &str| fields.peek(name).filter(|value| !value.is_null());
    if given("modalities").is_some_and(|kinds| *kinds != json!(["text"])) {
        return Err(ApiError::field("modalities", "this server answers with text only"));
    }
    let is_list = |value: &Value| value.as_array().is_some_and(|functions| !functions.is_empty());
    if given("functions").is_some_and(is_list) {
        let message = "functions is the older form of tools; send tools and tool_choice";
        return Err(ApiError::field("functions", message));
    }
    Ok(())
}

/// Drops fields that ask for what happens anyway: nothing is stored, and there is one tier of service.
fn drop_defaults(fields: &mut Fields) {
    fields.drop_if("store", &[json!(false)]);
    fields.drop_if("service_tier", &[json!("auto"), json!("default")]);
    fields.drop_if("modalities", &[json!(["text"])]);
    fields.drop_if("metadata", &[json!({})]);
    fields.drop_if("functions", &[json!([])]);
}
