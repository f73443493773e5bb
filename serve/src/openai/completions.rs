//! `POST /v1/completions`.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use super::chunks::{Chunks, failed};
use super::logprobs::TOP_MAX;
use super::prompt_scores::{Pieces, prompt_pieces};
use super::token_ids::IdOptions;
use super::{Head, Inputs, StreamOptions};
use crate::answer::{Answers, Complete, Usage};
use crate::constraint;
use crate::endpoint::{Endpoint, Opened, Question};
use crate::error::ApiError;
use crate::sampling;
use crate::streaming::Writer;
use lapwing_engine::parts::{Answer, AnswerForm};
use lapwing_engine::{PromptProgress, Request, Summary, Token};

/// Most prompts of a request.
const PROMPTS_MAX: usize = 128;

/// What the answer is to contain.
#[derive(Debug)]
struct Wanted {
    stream: StreamOptions,
    /// The prompts, if the answer begins with them.
    echoed: Vec<Pieces>,
    /// Alternatives of each token; `None` without log-probabilities.
    logprobs: Option<usize>,
    /// Token ids.
    ids: IdOptions,
    /// Choices of each prompt.
    n: usize,
    /// Nothing is to be generated: the prompt is scored.
    only_prompt: bool,
}

impl Wanted {
    /// The prompt that a choice begins with.
    fn echo(&self, choice: usize) -> Option<Pieces> {
        self.echoed.get(choice / self.n).cloned()
    }
}

/// Continues texts.
pub(crate) struct Completions;

impl Endpoint for Completions {
    type Writer = CompletionWriter;

    async fn read(
        Opened { call, lease, mut fields, .. }: Opened<'_>,
    ) -> Result<Question<CompletionWriter>, ApiError> {
        let prompts = fields.need::<Inputs>("prompt")?.into_prompts();
        if prompts.is_empty() || prompts.len() > PROMPTS_MAX {
            let message =
                format!("prompt has {} texts, but must have 1 to {PROMPTS_MAX}", prompts.len());
            return Err(ApiError::field("prompt", message));
        }
        let has_echo = fields.take("echo")?.unwrap_or(false);
        let logprobs: Option<usize> = fields.take("logprobs")?;
        if logprobs.is_some_and(|top| top > TOP_MAX) {
            return Err(ApiError::field("logprobs", format!("logprobs must be at most {TOP_MAX}")));
        }
        let ids = IdOptions::take(&mut fields, logprobs.is_some())?;
        let mut request = sampling::apply(&mut fields, lease.spec(), Request::text(""))?;
        // Scores of a prompt are asked for with max_tokens 0.
        let only_prompt =
            has_echo && fields.peek("max_tokens").and_then(Value::as_f64) == Some(0.0);
        request.max_tokens = match only_prompt {
            true => {
                fields.take::<Value>("max_tokens")?;
                Some(1)
            }
            false => sampling::max_tokens(&mut fields)?.or(Some(DEFAULT_TOKENS)),
        };
        request.top_logprobs = logprobs.unwrap_or(0);
        let stream = StreamOptions::take(&mut fields)?;
        request.prompt_progress = stream.prompt_progress;
        let request = constraint::apply(&mut fields, None, None, request)?;
        let one = sampling::choices(request, fields.take("n")?)?;
        let n = one.len();
        // As many answers as are returned, so that there is nothing to choose.
        fields.drop_if("best_of", &[n.into()]);
        fields.drop_if("suffix", &["".into()]);
        let requests: Vec<Request> = prompts
            .iter()
            .flat_map(|prompt| {
                one.iter().map(|request| {
                    let mut request = request.clone();
                    request.prompt = prompt.clone();
                    request
                })
            })
            .collect();
        let user = fields.take("user")?;
        let echoed = match has_echo {
            true => prompt_pieces(call, &lease.engine, &prompts, logprobs, ids).await?,
            false => Vec::new(),
        };
        let (is_streamed, ignored) = (stream.stream, fields.rest());
        let wanted = Wanted { stream, echoed, logprobs, ids, n, only_prompt };
        let writer = Box::new(move |answers: &Answers| CompletionWriter::new(wanted, answers));
        // They are the text as it is.
        let form = AnswerForm::default();
        Ok(Question { requests, choices: n, form, user, is_streamed, ignored, writer })
    }
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
            json.tokens.push(piece.name.unwrap_or(piece.text));
            json.token_logprobs.push(piece.logprob);
            json.top_logprobs.push(piece.top.map(|top| {
                top.into_iter().map(|(text, logprob)| (text, logprob.into())).collect()
            }));
        }
        json
    }
}

/// A choice, or a part of one.
#[derive(Serialize)]
struct ChoiceJson {
    index: usize,
    text: String,
    logprobs: Option<LogprobsJson>,
    finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<Vec<u32>>,
    /// In the first part of a choice only.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_token_ids: Option<Vec<u32>>,
}

/// Writes an answer.
pub(crate) struct CompletionWriter {
    chunks: Chunks,
    wanted: Wanted,
    /// Characters of each choice so far.
    offsets: Vec<usize>,
    /// Choices of which a part was sent.
    sent: HashSet<usize>,
}

impl CompletionWriter {
    fn new(wanted: Wanted, answers: &Answers) -> CompletionWriter {
        let head = Head::new("cmpl-", "text_completion", answers);
        let chunks = Chunks::new(head, wanted.stream);
        CompletionWriter { chunks, wanted, offsets: Vec::new(), sent: HashSet::new() }
    }

    /// A part of a choice without text, which has these tokens.
    fn part(&mut self, index: usize, ids: &[u32], answers: &Answers) -> ChoiceJson {
        let is_first = self.sent.insert(index);
        let prompt = if is_first { Some(answers.prompt_ids(index)) } else { None };
        ChoiceJson {
            index,
            text: String::new(),
            logprobs: None,
            finish_reason: None,
            token_ids: self.wanted.ids.returned(ids),
            prompt_token_ids: prompt.and_then(|prompt| self.wanted.ids.returned(prompt)),
        }
    }

    /// Sends the echoed prompts of all choices up to `index` that have not begun.
    fn begun(&mut self, index: usize, answers: &Answers, out: &mut String) {
        while self.offsets.len() <= index {
            let index = self.offsets.len();
            let mut offset = 0;
            if let Some(prompt) = self.wanted.echo(index) {
                let text = prompt.text();
                let logprobs = self.wanted.logprobs.map(|_| LogprobsJson::of(prompt, &mut offset));
                offset = text.chars().count();
                let choice = ChoiceJson { text, logprobs, ..self.part(index, &[], answers) };
                self.chunks.choice(choice, answers, out);
            }
            self.offsets.push(offset);
        }
    }
}

impl Writer for CompletionWriter {
    fn whole(&mut self, choices: Vec<Complete>, answers: &Answers) -> impl Serialize {
        let wanted = &self.wanted;
        let names = wanted.ids.names(answers.lease().engine.tokenizer());
        let choice = |(index, choice): (usize, Complete)| {
            let reason = if wanted.only_prompt { "length" } else { choice.reason() };
            let mut pieces = wanted.echo(index).unwrap_or_default();
            let mut text = pieces.text();
            let mut ids = Vec::new();
            if !wanted.only_prompt {
                text.push_str(&Answer::of(choice.parts).text);
                pieces.0.extend(Pieces::of(&choice.tokens, names).0);
                ids = choice.ids;
            }
            let logprobs = wanted.logprobs.map(|_| LogprobsJson::of(pieces, &mut 0));
            ChoiceJson {
                index,
                text,
                logprobs,
                finish_reason: Some(reason),
                token_ids: wanted.ids.returned(&ids),
                prompt_token_ids: wanted.ids.returned(answers.prompt_ids(index)),
            }
        };
        let choices = choices.into_iter().enumerate().map(choice).collect();
        let usage = answers.usage();
        let usage = match wanted.only_prompt {
            true => Usage { generated: 0, ..usage },
            false => usage,
        };
        self.chunks.whole(choices, usage, answers)
    }

    fn begin(&mut self, answers: &Answers, out: &mut String) {
        if !self.wanted.echoed.is_empty() {
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
        let choice = self.part(index, &[], answers);
        self.chunks.prompt(choice, progress, out);
    }

    fn token(&mut self, index: usize, token: &Token, answers: &Answers, out: &mut String) {
        self.begun(index, answers, out);
        let has_logprobs = self.wanted.logprobs.is_some() && !token.is_end;
        let has_content = !token.text.is_empty() || has_logprobs || self.wanted.ids.is_returned;
        if self.wanted.only_prompt || !has_content {
            return;
        }
        let names = self.wanted.ids.names(answers.lease().engine.tokenizer());
        let logprobs = has_logprobs.then(|| {
            let pieces = Pieces::of(std::slice::from_ref(token), names);
            LogprobsJson::of(pieces, &mut self.offsets[index])
        });
        let text = token.text.clone();
        let choice = ChoiceJson { text, logprobs, ..self.part(index, &[token.id], answers) };
        self.chunks.choice(choice, answers, out);
    }

    fn end(&mut self, index: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        self.begun(index, answers, out);
        let reason = if self.wanted.only_prompt { "length" } else { summary.reason.name() };
        let part = self.part(index, &[], answers);
        self.chunks.choice(ChoiceJson { finish_reason: Some(reason), ..part }, answers, out);
    }

    fn finish(&mut self, answers: &Answers, out: &mut String) {
        self.chunks.finish(answers, out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        failed(error, out);
    }
}
