//! Follows a stream of tokens and prints it, for `run` and `chat`.

use lapwing_engine::{RequestTimes, Summary, Token, TokenStream};
use serde::Serialize;

use super::failure::Failure;
use super::interrupts::Claim;
use super::output::AnswerOutput;
use super::session::Session;

/// Times of a request, as printed by `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct Timings {
    queued_ms: f64,
    ttft_ms: f64,
    prefill_ms: f64,
    decode_ms: f64,
    prompt_tokens: usize,
    cached_tokens: usize,
    recomputed_tokens: usize,
    generated_tokens: usize,
    prefill_tokens_per_second: f64,
    decode_tokens_per_second: f64,
}

impl Timings {
    /// The figures of `times`.
    pub(crate) fn new(times: &RequestTimes) -> Timings {
        let ms = |span: std::time::Duration| span.as_secs_f64() * 1e3;
        Timings {
            queued_ms: ms(times.queued()),
            ttft_ms: ms(times.ttft()),
            prefill_ms: ms(times.prefill()),
            decode_ms: ms(times.decode()),
            prompt_tokens: times.prompt_tokens,
            cached_tokens: times.cached_tokens,
            recomputed_tokens: times.recomputed_tokens,
            generated_tokens: times.generated_tokens,
            prefill_tokens_per_second: times.prefill_tokens_per_second(),
            decode_tokens_per_second: times.decode_tokens_per_second(),
        }
    }

    /// The times on one line.
    pub(crate) fn line(&self) -> String {
        let cached = match (self.cached_tokens, self.recomputed_tokens) {
            (0, 0) => String::new(),
            (cached, 0) => format!(" ({cached} cached)"),
            (cached, again) => {
                format!(" ({cached} cached, {again} known but computed again for want of states)")
            }
        };
        format!(
            "[{} prompt tokens{cached}, {:.1} tok/s; first token after {:.0} ms; {} generated, {:.1} tok/s]",
            self.prompt_tokens,
            self.prefill_tokens_per_second,
            self.ttft_ms,
            self.generated_tokens,
            self.decode_tokens_per_second,
        )
    }
}

/// The result of a stream.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Generated ids, without the model's end token.
    pub(crate) ids: Vec<u32>,
    /// Log-probability of each.
    pub(crate) logprobs: Vec<f32>,
    /// The text.
    pub(crate) text: String,
    /// How it ended; `None` if it was interrupted.
    pub(crate) summary: Option<Summary>,
}

impl Answer {
    /// Adds a token.
    pub(crate) fn push(&mut self, token: Token) {
        self.text.push_str(&token.text);
        if !token.is_end {
            self.ids.push(token.id);
            self.logprobs.push(token.logprob);
        }
    }

    /// Whether it was interrupted by Ctrl-C or another signal.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.summary.is_none()
    }
}

/// Why there is no complete answer.
#[derive(Debug)]
pub(crate) enum AnswerError {
    /// The engine failed.
    Engine(lapwing_engine::Error),
    /// The text could not be printed.
    Output(Failure),
}

impl From<lapwing_engine::Error> for AnswerError {
    fn from(error: lapwing_engine::Error) -> AnswerError {
        AnswerError::Engine(error)
    }
}

impl From<Failure> for AnswerError {
    fn from(failure: Failure) -> AnswerError {
        AnswerError::Output(failure)
    }
}

impl From<AnswerError> for Failure {
    fn from(unanswered: AnswerError) -> Failure {
        match unanswered {
            AnswerError::Engine(error) => error.into(),
            AnswerError::Output(failure) => failure,
        }
    }
}

/// Follows a stream to its end, or to a signal if there is a `claim`, and prints the text as it
/// arrives unless JSON is requested.
pub(crate) async fn follow(
    stream: TokenStream,
    mut output: AnswerOutput,
    session: &Session,
    claim: Option<&Claim<'_>>,
) -> Result<Answer, AnswerError> {
    let answer = follow_to_end(stream, &mut output, session, claim).await;
    if !session.json {
        output.finish()?;
        session.set_mid_line(output.is_mid_line());
    }
    answer
}

async fn follow_to_end(
    mut stream: TokenStream,
    output: &mut AnswerOutput,
    session: &Session,
    claim: Option<&Claim<'_>>,
) -> Result<Answer, AnswerError> {
    let mut answer = Answer::default();
    let mut interrupted = std::pin::pin!(async {
        match claim {
            Some(claim) => drop(claim.interrupted().await),
            None => std::future::pending().await,
        }
    });
    loop {
        let item = tokio::select! {
            biased;
            () = &mut interrupted => return Ok(answer),
            item = stream.next() => item,
        };
        let token = match item {
            None => break,
            Some(token) => token?,
        };
        if !session.json && !token.text.is_empty() {
            output.push(&token.text)?;
            session.set_mid_line(output.is_mid_line());
        }
        answer.push(token);
    }
    answer.summary = stream.summary().cloned();
    Ok(answer)
}
