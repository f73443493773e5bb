//! OpenAI's `POST /v1/responses`, its text and its calls of functions. Nothing is stored.

mod items;
mod writer;

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::answer::Answers;
use super::app::unix_seconds;
use super::constraint;
use super::endpoint::{Endpoint, Opened, Question, Target};
use super::error::ApiError;
use super::fields::Fields;
use super::models::ModelLease;
use super::openai::messages::read;
use super::sampling;
use super::thinking;
use super::tools;
use items::in_chat_form;
use lapwing_engine::Request;
use lapwing_engine::parts::AnswerForm;
use lapwing_engine::tools::Tools;
use writer::{Echo, ResponseWriter};

/// Answers a conversation.
pub(crate) struct Responses;

impl Endpoint for Responses {
    type Writer = ResponseWriter;

    fn target(fields: &mut Fields) -> Result<Target, ApiError> {
        let name = fields.take("model")?;
        refuse(fields)?;
        Ok(Target { name, keep_alive: None })
    }

    async fn read(
        Opened { lease, mut fields, .. }: Opened<'_>,
    ) -> Result<Question<ResponseWriter>, ApiError> {
        let created = unix_seconds(SystemTime::now());
        let (request, tools) = conversation(&mut fields, lease)?;
        let template = lease.engine.chat_template();
        let form = AnswerForm::new(tools.as_ref(), template);
        let mut request = sampling::apply(&mut fields, lease.spec(), request)?;
        if let Some(tokens) = fields.take::<Value>("max_output_tokens")? {
            fields.put("max_tokens", tokens);
            request.max_tokens = sampling::max_tokens(&mut fields)?;
        }
        let mut text = fields.object("text", "text.")?;
        if let Some(format) = text.take::<Value>("format")? {
            fields.put("text.format", format);
        }
        let request = constraint::apply(&mut fields, tools.as_ref(), template, request)?;
        let is_streamed = fields.take("stream")?.unwrap_or(false);
        let user = fields.take_any(&["user", "safety_identifier"])?;
        let parallel = tools.is_none_or(|tools| tools.is_parallel());
        let echo =
            Echo { created, parallel, metadata: fields.take("metadata")?.unwrap_or_default() };
        drop_defaults(&mut fields);
        fields.name_ignored(text.rest());
        let (requests, ignored) = (vec![request], fields.rest());
        let writer = Box::new(move |answers: &Answers| ResponseWriter::new(echo, answers));
        Ok(Question { requests, choices: 1, form, user, is_streamed, ignored, writer })
    }
}

/// Refuses what needs answers that are stored.
fn refuse(fields: &Fields) -> Result<(), ApiError> {
    for name in ["previous_response_id", "conversation", "background", "prompt"] {
        if fields.peek(name).is_some_and(|value| !value.is_null() && *value != false) {
            let message = format!(
                "{name} is not supported, because nothing is stored; send the whole conversation"
            );
            return Err(ApiError::field(name, message));
        }
    }
    Ok(())
}

/// Drops fields that ask for what happens anyway: there is one tier of service, nothing is stored, and a prompt that is
/// too long is refused.
fn drop_defaults(fields: &mut Fields) {
    fields.drop_if("service_tier", &[json!("auto"), json!("default")]);
    fields.drop_if("store", &[json!(false)]);
    fields.drop_if("background", &[json!(false)]);
    fields.drop_if("truncation", &[json!("disabled")]);
    fields.drop_if("include", &[json!([])]);
    fields.drop_if("stream_options", &[json!({}), json!({ "include_obfuscation": false })]);
}

/// The conversation of a request, and its functions.
fn conversation(
    fields: &mut Fields,
    lease: &ModelLease,
) -> Result<(Request, Option<Tools>), ApiError> {
    let mut sent: Vec<Map<String, Value>> = Vec::new();
    let message = |role: &str, content: Value| {
        Map::from_iter([("role".to_owned(), role.into()), ("content".to_owned(), content)])
    };
    if let Some(instructions) = fields.take::<Value>("instructions")? {
        sent.push(message("system", instructions));
    }
    match fields.need::<Value>("input")? {
        text @ Value::String(_) => sent.push(message("user", text)),
        Value::Array(items) => sent.extend(in_chat_form(items)?),
        _ => return Err(ApiError::field("input", "input is neither a text nor a list of items")),
    }
    let messages = read(sent)?;
    let tools = tools::take(fields)?;
    let template = lease.engine.chat_template();
    let request = tools::request(tools.as_ref(), messages, template);
    let (request, ignored) = thinking::apply(fields, template, request)?;
    fields.name_ignored(ignored);
    Ok((request, tools))
}
