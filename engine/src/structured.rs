//! Structured output: answers that follow a grammar, such as JSON of a given schema.
//!
//! A [`Grammar`] goes into [`Request::grammar`](crate::Request::grammar). At each position only tokens are sampled
//! that the grammar allows, and the answer ends when it is complete. `docs/structured.md` says what the
//! grammars can express, and what it costs.

use std::fmt;

use serde_json::Value;

mod compile;
mod constraint;
mod gbnf;
mod parts;
mod pieces;
mod regex;
mod schema;
mod source;
mod thoughts;

pub(crate) use compile::{Followed, Grammars};
pub use parts::{CallForm, Function, Tag};
pub(crate) use pieces::ObjectForm;
use pieces::Piece;
pub(crate) use thoughts::{ThoughtTokens, ThoughtsFirst};

/// What an answer must look like.
///
/// A grammar is checked when a request uses it: an invalid one is an error of
/// [`Engine::generate`](crate::Engine::generate).
///
/// ```
/// use lapwing::Request;
/// use lapwing::structured::Grammar;
///
/// let schema = serde_json::json!({
///     "type": "object",
///     "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
///     "required": ["name", "age"],
///     "additionalProperties": false,
/// });
/// let request = Request::ask("Who discovered gravity?").grammar(Grammar::json_schema(schema));
/// # assert!(request.grammar.is_some());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Grammar {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    JsonObject,
    JsonSchema(Value),
    Regex(String),
    Lark(String),
    Gbnf(String),
    Choice(Vec<String>),
    Calls(CallForm),
    Sequence(Vec<Grammar>),
    OneOf(Vec<Grammar>),
    Tagged(Vec<Tag>),
    Piece(Piece),
}

impl Grammar {
    /// Any JSON object.
    pub fn json_object() -> Grammar {
        Kind::JsonObject.into()
    }

    /// JSON that is valid for a schema of the draft 2020-12. Properties come in the order of the schema, and an object
    /// has no other ones unless the schema says so. Keywords that only narrow what is valid and cannot be followed are left
    /// out; [`TokenStream::ignored_keywords`](crate::TokenStream::ignored_keywords) names them. `docs/structured.md` has the lists.
    pub fn json_schema(schema: Value) -> Grammar {
        Kind::JsonSchema(schema).into()
    }

    /// Text that a regular expression matches as a whole, in the syntax of the crate `regex` without
    /// look-around, word boundaries and lazy repetition. `^` at its begin and `$` at its end are allowed.
    pub fn regex(pattern: impl Into<String>) -> Grammar {
        Kind::Regex(pattern.into()).into()
    }

    /// Text that a context-free grammar in the Lark syntax of `llguidance` derives from its rule `start`.
    pub fn lark(grammar: impl Into<String>) -> Grammar {
        Kind::Lark(grammar.into()).into()
    }

    /// Text that a grammar in llama.cpp's format GBNF derives from its rule `root`. Tokens (`<…>`) are not
    /// supported.
    pub fn gbnf(grammar: impl Into<String>) -> Grammar {
        Kind::Gbnf(grammar.into()).into()
    }

    /// One of several texts.
    pub fn choice(texts: impl IntoIterator<Item = impl Into<String>>) -> Grammar {
        Kind::Choice(texts.into_iter().map(Into::into).collect()).into()
    }
}

impl From<Kind> for Grammar {
    fn from(kind: Kind) -> Grammar {
        Grammar { kind }
    }
}

impl fmt::Display for Grammar {
    /// Its kind, such as `JSON schema`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::JsonObject | Kind::JsonSchema(_) => "JSON schema",
            Kind::Calls(_) => "schema of the calls",
            Kind::Piece(ref piece) if piece.schemas().is_some() => "schema of the calls",
            Kind::Sequence(_) | Kind::OneOf(_) | Kind::Tagged(_) | Kind::Piece(_) => {
                "grammar of several parts"
            }
            Kind::Regex(_) => "regular expression",
            Kind::Lark(_) => "Lark grammar",
            Kind::Gbnf(_) => "GBNF grammar",
            Kind::Choice(_) => "list of choices",
        })
    }
}

/// Why a grammar cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// A GBNF grammar has an error at this place; lines and columns count from 1.
    #[error("GBNF grammar, line {line}, column {column}: {reason}")]
    Gbnf {
        /// Line.
        line: usize,
        /// Column, in characters.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// It is invalid, has a feature that is not supported, or exceeds a limit.
    #[error("the {grammar} cannot be used: {reason}")]
    Refused {
        /// Kind of grammar, such as `JSON schema`.
        grammar: String,
        /// Reason.
        reason: String,
    },
    /// The request ignores end tokens, but a grammar decides where its answer ends.
    #[error(
        "a request with a grammar cannot ignore end tokens: the grammar decides where the answer ends"
    )]
    IgnoresEnds,
}
