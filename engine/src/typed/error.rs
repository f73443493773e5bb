//! Why there is no value of a type.

use crate::error::Error;
use crate::stream::EndReason;
use crate::structured::GrammarError;

/// Why a request has no answer of its type. With `?` it becomes an [`Error`]: of the kind
/// [`Answer`](crate::ErrorKind::Answer) if the answer is at fault, and otherwise of [`Request`](crate::ErrorKind::Request) or of the
/// engine's own kind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypedError {
    /// The schema of the type cannot be a grammar.
    #[error(
        "answers cannot have the type {type_name}: {source}; give the type a schema that docs/structured.md lists (#[schemars(…)])"
    )]
    Schema {
        /// The type.
        type_name: &'static str,
        /// What is wrong with its schema.
        source: GrammarError,
    },
    /// The request has a grammar.
    #[error(
        "the request has a grammar, but that of a typed answer is made of the type; leave the grammar out"
    )]
    HasGrammar,
    /// The request has tools.
    #[error(
        "the request has tools, but a typed answer calls none; leave them out, choose ToolChoice::None, or use Engine::generate"
    )]
    HasTools,
    /// The answer has not come to its end.
    #[error("the answer was cut after {tokens} tokens ({}): {text}", limit(reason))]
    Cut {
        /// What there is of it.
        text: String,
        /// Why it has ended.
        reason: EndReason,
        /// Number of tokens.
        tokens: usize,
    },
    /// The text of the answer is valid for the schema, but the type does not accept it.
    #[error("the answer is no {type_name}: {source}; it is: {text}")]
    NoValue {
        /// The type.
        type_name: &'static str,
        /// The answer.
        text: String,
        /// Why the type does not accept it.
        source: serde_json::Error,
    },
    /// The generation has failed.
    #[error(transparent)]
    Engine(#[from] Error),
}

/// What has cut an answer, and what to do.
fn limit(reason: &EndReason) -> String {
    match reason {
        EndReason::StopText(stop) => {
            format!("by the stop text '{stop}'; leave stop texts out that an answer may contain")
        }
        EndReason::Length | EndReason::EndToken => {
            "by max_tokens or the context; raise it, or bound the texts and lists of the type (#[schemars(length(max = N))])"
                .to_owned()
        }
    }
}
