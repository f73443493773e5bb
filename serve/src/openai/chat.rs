//! `POST /v1/chat/completions`.

mod writer;

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::logprobs::{LogprobsJson, TOP_MAX};
use super::{Head, StreamOptions, TimingsJson, UsageJson, messages};
use crate::answer::{Answers, Complete};
use crate::app::Call;
use crate::body::{JsonBody, name_ignored};
use crate::constraint;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::models::ModelLease;
use crate::parts::{AnswerForm, AnswerReader};
use crate::sampling;
use crate::streaming::stream;
use crate::thinking;
use crate::tools::{ToolCall, Tools};
use lapwing_engine::Request;
use writer::ChatWriter;

/// What the answer is to contain.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    stream: StreamOptions,
    logprobs: bool,
    form: AnswerForm,
}

/// Answers a conversation.
pub(crate) async fn chat(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    let lease = call.model(name.as_deref(), None).await?;
    let (requests, wanted, user) = read(&mut fields, &lease)?;
    let mut ignored = fields.rest();
    let n = requests.len();
    let mut answers = Answers::start(call.clone(), lease, user, requests, n).await?;
    ignored.extend_from_slice(answers.ignored_keywords());
    let mut response = if wanted.stream.stream {
        answers.begun().await?;
        let head = Head::new("chatcmpl-", "chat.completion.chunk", &answers);
        stream(answers, ChatWriter::new(head, wanted))
    } else {
        let head = Head::new("chatcmpl-", "chat.completion", &answers);
        let complete = answers.complete().await?;
        Json(Whole::new(head, wanted, complete, &answers)).into_response()
    };
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}

/// The requests of the choices, what the answer is to contain, and the user that it names.
fn read(
    fields: &mut Fields,
    lease: &ModelLease,
) -> Result<(Vec<Request>, Wanted, Option<String>), ApiError> {
    let template = lease.engine.chat_template();
    let sent: Vec<Map<String, Value>> = fields.need("messages")?;
    let messages = messages::read(sent)?;
    refuse(fields)?;
    let mut tools = Tools::new(fields.take("tools")?, fields.take("tool_choice")?, template)?;
    if let Some(tools) = &mut tools {
        tools.parallel = fields.take("parallel_tool_calls")?.unwrap_or(true);
    }
    let end = messages::prompt_end(fields, &messages)?;
    let request = Tools::request(tools.as_ref(), messages, template).prompt_end(end);
    let (request, ignored) = thinking::apply(fields, template, request)?;
    let mut request = sampling::apply(fields, lease.spec(), request)?;
    request.max_tokens = sampling::max_tokens(fields)?;
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
    let stream = StreamOptions::take(fields)?;
    request.prompt_progress = stream.prompt_progress;
    let request = constraint::apply(fields, tools.as_ref(), request)?;
    let form = AnswerForm::new(tools.as_ref(), template);
    let requests = sampling::choices(form.shown(request), fields.take("n")?)?;
    let wanted = Wanted { stream, logprobs, form };
    let user = fields.take_any(&["user", "safety_identifier"])?;
    fields.name_ignored(ignored);
    drop_defaults(fields);
    Ok((requests, wanted, user))
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

/// A whole answer.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    head: Head,
    choices: Vec<WholeChoice>,
    usage: UsageJson,
    timings: TimingsJson,
}

#[derive(Serialize)]
struct WholeChoice {
    index: usize,
    message: WholeMessage,
    logprobs: Option<LogprobsJson>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct WholeMessage {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    refusal: Option<()>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
}

impl Whole {
    fn new(head: Head, wanted: Wanted, complete: Vec<Complete>, answers: &Answers) -> Whole {
        let tokenizer = answers.lease().engine.tokenizer();
        let choice = |(index, choice): (usize, Complete)| {
            let finish = choice.reason();
            let logprobs = wanted.logprobs.then(|| LogprobsJson::of(&choice.tokens, tokenizer));
            let divided = AnswerReader::new(wanted.form, answers).divide(choice.text);
            let (content, tool_calls) = (divided.text, divided.calls);
            let finish_reason = finish_reason(finish, !tool_calls.is_empty());
            let content = (!content.is_empty() || tool_calls.is_empty()).then_some(content);
            let message = WholeMessage {
                role: "assistant",
                content,
                reasoning_content: divided.thoughts,
                refusal: None,
                tool_calls,
            };
            WholeChoice { index, message, logprobs, finish_reason }
        };
        let choices = complete.into_iter().enumerate().map(choice).collect();
        Whole { head, choices, usage: answers.usage().into(), timings: TimingsJson::of(answers) }
    }
}

/// Why an answer ended. One that was cut off is not known to have all its calls.
fn finish_reason(reason: &'static str, has_calls: bool) -> &'static str {
    if has_calls && reason != "length" { "tool_calls" } else { reason }
}
