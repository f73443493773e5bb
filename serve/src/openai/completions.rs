//! `POST /v1/completions`.

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

use super::chunks::{Chunks, failed};
use super::logprobs::TOP_MAX;
use super::prompt_scores::{Pieces, prompt_pieces};
use super::{Head, Inputs, StreamOptions, TimingsJson, UsageJson};
use crate::answer::{Answers, Complete, Usage};
use crate::app::Call;
use crate::body::{JsonBody, name_ignored};
use crate::constraint;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::models::ModelLease;
use crate::sampling;
use crate::streaming::{Writer, stream};
use lapwing_engine::{Prompt, Request};
use lapwing_engine::{PromptProgress, Summary, Token};

/// Most prompts of a request.
const PROMPTS_MAX: usize = 128;

/// What the answer is to contain.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    stream: StreamOptions,
    echo: bool,
    /// Alternatives of each token; `None` without log-probabilities.
    logprobs: Option<usize>,
    /// Choices of each prompt.
    n: usize,
    /// Nothing is to be generated: the prompt is scored.
    only_prompt: bool,
}

/// Continues texts.
pub(crate) async fn completions(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    let lease = call.model(name.as_deref(), None).await?;
    let prompts = fields.need::<Inputs>("prompt")?.into_prompts();
    if prompts.is_empty() || prompts.len() > PROMPTS_MAX {
        let message =
            format!("prompt has {} texts, but must have 1 to {PROMPTS_MAX}", prompts.len());
        return Err(ApiError::field("prompt", message));
    }
    let (requests, wanted, user) = read(&mut fields, &lease, &prompts)?;
    let mut ignored = fields.rest();
    let echoed = match wanted.echo {
        true => prompt_pieces(&call, &lease.engine, &prompts, wanted.logprobs).await?,
        false => Vec::new(),
    };
    let mut answers = Answers::start(call.clone(), lease, user, requests, wanted.n).await?;
    ignored.extend_from_slice(answers.ignored_keywords());
    let mut response = if wanted.stream.stream {
        answers.begun().await?;
        let head = Head::new("cmpl-", "text_completion", &answers);
        let chunks = Chunks::new(head, wanted.stream);
        stream(answers, CompletionWriter { chunks, wanted, echoed, offsets: Vec::new() })
    } else {
        let head = Head::new("cmpl-", "text_completion", &answers);
        let complete = answers.complete().await?;
        Json(Whole::new(head, wanted, complete, &echoed, &answers)).into_response()
    };
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}

fn read(
    fields: &mut Fields,
    lease: &ModelLease,
    prompts: &[Prompt],
) -> Result<(Vec<Request>, Wanted, Option<String>), ApiError> {
    let echo = fields.take("echo")?.unwrap_or(false);
    let logprobs: Option<usize> = fields.take("logprobs")?;
    if logprobs.is_some_and(|top| top > TOP_MAX) {
        return Err(ApiError::field("logprobs", format!("logprobs must be at most {TOP_MAX}")));
    }
    let mut request = sampling::apply(fields, lease.spec(), Request::text(""))?;
    // Scores of a prompt are asked for with max_tokens 0.
    let only_prompt = echo && fields.peek("max_tokens").and_then(Value::as_f64) == Some(0.0);
    request.max_tokens = match only_prompt {
        true => {
            fields.take::<Value>("max_tokens")?;
            Some(1)
        }
        false => sampling::max_tokens(fields)?.or(Some(DEFAULT_TOKENS)),
    };
    request.top_logprobs = logprobs.unwrap_or(0);
    let stream = StreamOptions::take(fields)?;
    request.prompt_progress = stream.prompt_progress;
    let request = constraint::apply(fields, None, request)?;
    let one = sampling::choices(request, fields.take("n")?)?;
    let n = one.len();
    // As many answers as are returned, so that there is nothing to choose.
    fields.drop_if("best_of", &[n.into()]);
    fields.drop_if("suffix", &["".into()]);
    let requests = prompts.iter().flat_map(|prompt| {
        one.iter().map(|request| {
            let mut request = request.clone();
            request.prompt = prompt.clone();
            request
        })
    });
    let wanted = Wanted { stream, echo, logprobs, n, only_prompt };
    Ok((requests.collect(), wanted, fields.take("user")?))
}

/// Tokens that are generated if a request names no number, as OpenAI's interface has it.
const DEFAULT_TOKENS: usize = 16;

/// The tokens of a text with their log-probabilities.
#[derive(Clone, Debug, Default, Serialize)]
struct LogprobsJson {
    tokens: Vec<String>,
    token_logprobs: Vec<Option<f32>>,
    top_logprobs: Vec<Option<serde_json::Map<String, serde_json::Value>>>,
    text_offset: Vec<usize>,
}

impl LogprobsJson {
    /// Those of pieces that begin at `offset` of the text, in characters; moves the offset on.
    fn of(pieces: Pieces, offset: &mut usize) -> LogprobsJson {
        let mut json = LogprobsJson::default();
        for piece in pieces.0 {
            json.text_offset.push(*offset);
            *offset += piece.text.chars().count();
            json.tokens.push(piece.text);
            json.token_logprobs.push(piece.logprob);
            json.top_logprobs.push(piece.top.map(|top| {
                top.into_iter().map(|(text, logprob)| (text, logprob.into())).collect()
            }));
        }
        json
    }
}

#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    head: Head,
    choices: Vec<ChoiceJson>,
    usage: UsageJson,
    timings: TimingsJson,
}

#[derive(Serialize)]
struct ChoiceJson {
    index: usize,
    text: String,
    logprobs: Option<LogprobsJson>,
    finish_reason: Option<&'static str>,
}

impl Whole {
    fn new(
        head: Head,
        wanted: Wanted,
        complete: Vec<Complete>,
        echoed: &[Pieces],
        answers: &Answers,
    ) -> Whole {
        let tokenizer = answers.lease().engine.tokenizer();
        let choice = |(index, choice): (usize, Complete)| {
            let reason = if wanted.only_prompt { "length" } else { choice.reason() };
            let prompt = echoed.get(index / wanted.n).cloned().unwrap_or_default();
            let mut text = prompt.text();
            let mut pieces = prompt;
            if !wanted.only_prompt {
                text.push_str(&choice.text);
                pieces.0.extend(Pieces::of(&choice.tokens, tokenizer).0);
            }
            let logprobs = wanted.logprobs.map(|_| LogprobsJson::of(pieces, &mut 0));
            ChoiceJson { index, text, logprobs, finish_reason: Some(reason) }
        };
        let choices = complete.into_iter().enumerate().map(choice).collect();
        let mut usage = answers.usage();
        if wanted.only_prompt {
            usage = Usage { generated: 0, ..usage };
        }
        Whole { head, choices, usage: usage.into(), timings: TimingsJson::of(answers) }
    }
}

struct CompletionWriter {
    chunks: Chunks,
    wanted: Wanted,
    echoed: Vec<Pieces>,
    /// Characters of each choice so far.
    offsets: Vec<usize>,
}

impl CompletionWriter {
    /// Sends the echoed prompts of all choices up to `index` that have not begun.
    fn begun(&mut self, index: usize, answers: &Answers, out: &mut String) {
        while self.offsets.len() <= index {
            let index = self.offsets.len();
            let mut offset = 0;
            if let Some(prompt) = self.echoed.get(index / self.wanted.n).cloned() {
                let text = prompt.text();
                let logprobs = self.wanted.logprobs.map(|_| LogprobsJson::of(prompt, &mut offset));
                offset = text.chars().count();
                self.chunks.choice(
                    ChoiceJson { index, text, logprobs, finish_reason: None },
                    answers,
                    out,
                );
            }
            self.offsets.push(offset);
        }
    }
}

impl Writer for CompletionWriter {
    fn begin(&mut self, answers: &Answers, out: &mut String) {
        if self.wanted.echo {
            self.begun(0, answers, out);
        }
    }

    fn prompt(
        &mut self,
        index: usize,
        progress: PromptProgress,
        answers: &Answers,
        out: &mut String,
    ) {
        self.begun(index, answers, out);
        let choice = ChoiceJson { index, text: String::new(), logprobs: None, finish_reason: None };
        self.chunks.prompt(choice, progress, out);
    }

    fn token(&mut self, index: usize, token: Token, answers: &Answers, out: &mut String) {
        self.begun(index, answers, out);
        let has_logprobs = self.wanted.logprobs.is_some() && !token.is_end;
        if self.wanted.only_prompt || (token.text.is_empty() && !has_logprobs) {
            return;
        }
        let tokenizer = answers.lease().engine.tokenizer();
        let logprobs = has_logprobs.then(|| {
            let pieces = Pieces::of(std::slice::from_ref(&token), tokenizer);
            LogprobsJson::of(pieces, &mut self.offsets[index])
        });
        let choice = ChoiceJson { index, text: token.text, logprobs, finish_reason: None };
        self.chunks.choice(choice, answers, out);
    }

    fn end(&mut self, index: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        self.begun(index, answers, out);
        let reason = if self.wanted.only_prompt { "length" } else { summary.reason.name() };
        let (text, finish_reason) = (String::new(), Some(reason));
        self.chunks.choice(ChoiceJson { index, text, logprobs: None, finish_reason }, answers, out);
    }

    fn finish(&mut self, answers: &Answers, out: &mut String) {
        self.chunks.finish(answers, out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        failed(error, out);
    }
}
