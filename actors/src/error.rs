//! Errors of the runtime. Each ends the stream that it concerns.

use std::time::Duration;

use lapwing_plan::PlanError;

use crate::policy::ClientId;

/// Why a request, or the whole engine, ended without its result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The prompt is empty.
    #[error("the prompt has no tokens; give at least one")]
    EmptyPrompt,
    /// The prompt leaves no room for a single token.
    #[error(
        "the prompt has {tokens} tokens, but the context holds {context}; shorten it or set a larger context"
    )]
    PromptTooLong {
        /// Prompt tokens.
        tokens: usize,
        /// Tokens that fit.
        context: usize,
    },
    /// The model is an encoder, and the request is for tokens or for scores.
    #[error(
        "the model is an encoder: it makes embeddings only, no text and no scores; send the text to an \
         embedding interface (on the command line: lapwing embed), or use a model that generates"
    )]
    Encoder,
    /// The request has drafts of a model whose layers keep a state of the rows before.
    #[error(
        "layers of the draft model keep a state of the rows before, so its drafts cannot be rolled back; choose another draft model, or a \
         drafter without a model (on the command line: --draft lookup)"
    )]
    Drafts,
    /// A token id is outside the vocabulary.
    #[error(
        "token id {id} is outside the model's vocabulary of {vocab}; use this model's own tokenizer"
    )]
    TokenId {
        /// The id.
        id: u32,
        /// Vocabulary size.
        vocab: usize,
    },
    /// The engine does not run this model.
    #[error("the engine has {models} models, numbered from 0, and no model {model}")]
    UnknownModel {
        /// The number.
        model: usize,
        /// Models of the engine.
        models: usize,
    },
    /// The KV cache is too small for this one sequence.
    #[error(
        "out of KV pages: the sequence needs {wanted} pages and {capacity} can be used; set a larger cache, or restart if a device was lost"
    )]
    OutOfKvPages {
        /// Pages the sequence needs.
        wanted: usize,
        /// Pages of the whole cache, without those that a lost device may still write.
        capacity: usize,
    },
    /// Too many requests wait or run.
    #[error("{limit} requests wait or run already, which is the limit; try again later")]
    QueueFull {
        /// Requests allowed at once.
        limit: usize,
    },
    /// The client has sent as many requests as the queue policy lets it send in a minute.
    #[error(
        "client '{client}' has sent as many requests in a minute as it may; try again in {} s",
        retry_after.as_secs_f64().ceil()
    )]
    RateLimited {
        /// The client.
        client: ClientId,
        /// Time after which there is room for a request.
        retry_after: Duration,
    },
    /// A device could not run a stage.
    #[error("device '{device}' failed: {reason}")]
    Device {
        /// Device name.
        device: String,
        /// Its error message.
        reason: String,
    },
    /// The grammar of a request allows no further token, or exceeds a limit.
    #[error("the answer cannot go on as its grammar requires: {reason}")]
    Constraint {
        /// Reason.
        reason: String,
    },
    /// No route fits the chunk.
    #[error("no plan for this request: {source}")]
    Plan {
        /// The planner's error.
        source: PlanError,
    },
    /// An actor died; the engine has ended.
    #[error("actor '{actor}' died: {reason}; build a new engine")]
    ActorDied {
        /// Actor name.
        actor: String,
        /// Panic message or cause.
        reason: String,
    },
    /// A mailbox overflowed, which the permits rule out: a defect in the engine.
    #[error("mailbox of actor '{actor}' is full, which must never happen; please report this")]
    MailboxFull {
        /// Receiver.
        actor: String,
    },
    /// The engine is shutting down.
    #[error("the engine is shutting down")]
    ShuttingDown,
}
