//! Paths that generate text. Each says what is its own; the way from a request to its answer is the same.

use std::future::Future;
use std::time::Duration;

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};

use super::answer::Answers;
use super::app::Call;
use super::body::{JsonBody, name_ignored};
use super::error::ApiError;
use super::fields::Fields;
use super::models::ModelLease;
use super::streaming::{Writer, stream};
use lapwing_engine::Request;
use lapwing_engine::parts::AnswerForm;

/// A path that generates text: how it reads requests, and what writes the answers.
pub(crate) trait Endpoint {
    /// Writes its answers.
    type Writer: Writer;

    /// Takes the model of a request.
    ///
    /// # Errors
    /// When the request names it in a wrong form, or can have no answer whatever its model is.
    fn target(fields: &mut Fields) -> Result<Target, ApiError> {
        Ok(Target { name: fields.take("model")?, keep_alive: None })
    }

    /// The answer to a request that asks for no text.
    fn without_text(_opened: &Opened<'_>) -> Option<Response> {
        None
    }

    /// What a request asks for.
    ///
    /// # Errors
    /// When it is invalid.
    fn read(
        opened: Opened<'_>,
    ) -> impl Future<Output = Result<Question<Self::Writer>, ApiError>> + Send;
}

/// The model that a request is for.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its name; `None` for the first one.
    pub(crate) name: Option<String>,
    /// Time that it stays loaded without requests, in place of the server's; `Some(None)` for ever.
    pub(crate) keep_alive: Option<Option<Duration>>,
}

/// A request whose model is loaded.
pub(crate) struct Opened<'a> {
    pub(crate) call: &'a Call,
    pub(crate) target: Target,
    pub(crate) lease: &'a ModelLease,
    pub(crate) fields: Fields,
}

/// What a request asks for.
pub(crate) struct Question<W> {
    /// One for each choice of the answer.
    pub(crate) requests: Vec<Request>,
    /// So many requests in a row have the same prompt.
    pub(crate) choices: usize,
    /// The parts of the answer.
    pub(crate) form: AnswerForm,
    /// The user that the request names.
    pub(crate) user: Option<String>,
    pub(crate) is_streamed: bool,
    /// Names of fields without effect.
    pub(crate) ignored: Vec<String>,
    /// Makes the writer of answers that have begun.
    pub(crate) writer: Box<dyn FnOnce(&Answers) -> W + Send>,
}

/// Answers a request.
pub(crate) async fn answer<E: Endpoint>(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let mut target = E::target(&mut fields)?;
    let lease = call.model(target.name.as_deref(), target.keep_alive).await?;
    let overruled = lease.overrules(&mut target.keep_alive).then(|| "keep_alive".to_owned());
    let opened = Opened { call: &call, target, lease: &lease, fields };
    if let Some(mut response) = E::without_text(&opened) {
        name_ignored(&call, &mut response, overruled.as_slice());
        return Ok(response);
    }
    let question = E::read(opened).await?;
    let Question { requests, choices, form, user, is_streamed, mut ignored, writer } = question;
    let requests = requests.into_iter().map(|request| form.shown(request)).collect();
    let mut answers = Answers::start(call.clone(), lease, user, requests, choices).await?;
    ignored.extend(overruled);
    ignored.extend_from_slice(answers.ignored_keywords());
    let mut response = if is_streamed {
        answers.begun().await?;
        let writer = writer(&answers);
        stream(answers, form, writer)
    } else {
        let mut writer = writer(&answers);
        let choices = answers.complete(&form).await?;
        Json(writer.whole(choices, &answers)).into_response()
    };
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}
