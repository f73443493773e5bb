//! The parts of a GBNF grammar.

use crate::structured::GrammarError;

/// A place in the text; lines and columns count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    /// An error at this place.
    pub(super) fn error(self, reason: String) -> GrammarError {
        GrammarError::Gbnf { line: self.line, column: self.column, reason }
    }
}

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) body: Expr,
}

/// What a part of a rule derives.
#[derive(Debug)]
pub(super) enum Expr {
    Text(String),
    /// A character within one of the ranges, or within none.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    /// Any character.
    Any,
    Rule(String, Place),
    Sequence(Vec<Expr>),
    Choice(Vec<Expr>),
    /// At least and at most so many times.
    Repeat(Box<Expr>, u32, Option<u32>),
}

impl Expr {
    /// Whether it is an empty sequence.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Expr::Sequence(parts) if parts.is_empty())
    }
}
