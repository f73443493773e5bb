//! Turns operators into calls of functions: `a % b` into `lapwing_remainder(a, b)`, and so `*`, `**`, `~` and `+`.
//!
//! Follows the grammar of expressions as far as operands need it: signs, brackets, attributes, filters and tests bind
//! more tightly than `**`, then come `*` and its kin, `~`, and `+` with `-`. Everything else ends an operand.

use minijinja::machinery::Token;

use super::{Insertion, Tag};
use crate::chat::names::{CONCAT, POWER, PRODUCT, REMAINDER, SLICE, SUM};

/// Words that are no operands.
const KEYWORDS: [&str; 8] = ["if", "else", "and", "or", "not", "in", "is", "recursive"];

/// Walks through the tokens of a tag.
struct Walk<'t, 'a> {
    tag: &'t Tag<'a>,
    at: usize,
    calls: Vec<Insertion>,
}

/// The insertions for the operators of a tag. A statement begins with a word that is no operand.
pub(super) fn calls(tag: &Tag<'_>, is_statement: bool) -> Vec<Insertion> {
    let mut walk = Walk { tag, at: usize::from(is_statement), calls: Vec::new() };
    while walk.token().is_some() {
        walk.expressions();
        // A closing bracket without an opening one, which the parser reports.
        walk.at += 1;
    }
    walk.calls
}

impl<'a> Walk<'_, 'a> {
    fn token(&self) -> Option<&Token<'a>> {
        self.tag.tokens.get(self.at).map(|(token, _)| token)
    }

    fn is(&self, wanted: impl Fn(&Token<'a>) -> bool) -> bool {
        self.token().is_some_and(wanted)
    }

    fn is_keyword(&self) -> bool {
        self.is(|token| matches!(token, Token::Ident(name) if KEYWORDS.contains(name)))
    }

    fn starts_operand(&self) -> bool {
        let is_operand = |token: &Token<'a>| {
            matches!(
                token,
                Token::Ident(_)
                    | Token::Str(_)
                    | Token::String(_)
                    | Token::Int(_)
                    | Token::Int128(_)
                    | Token::Float(_)
                    | Token::ParenOpen
                    | Token::BracketOpen
                    | Token::BraceOpen
            )
        };
        self.is(is_operand) && !self.is_keyword()
    }

    /// Start of the next token in the source.
    fn start(&self) -> usize {
        self.tag.tokens.get(self.at).map_or(0, |(_, span)| span.start_offset as usize)
    }

    /// All expressions up to the end, or to the closing bracket, with what is between them.
    fn expressions(&mut self) {
        let is_close = |token: &Token<'a>| {
            matches!(token, Token::ParenClose | Token::BracketClose | Token::BraceClose)
        };
        while self.token().is_some() && !self.is(is_close) {
            self.step();
        }
    }

    /// An expression, or what is between two.
    fn step(&mut self) {
        match self.starts_operand() || self.is(|t| matches!(t, Token::Minus | Token::Plus)) {
            true => self.sum(),
            false => self.at += 1,
        }
    }

    fn sum(&mut self) {
        let start = self.start();
        let mut operators = Vec::new();
        self.concat();
        while self.is(|token| matches!(token, Token::Plus | Token::Minus)) {
            match self.is(|token| matches!(token, Token::Plus)) {
                true => operators.push(self.at),
                false => self.sum_of(start, &mut operators),
            }
            self.at += 1;
            self.concat();
        }
        self.sum_of(start, &mut operators);
    }

    /// Makes one call of the operators `+` so far, if there are any.
    fn sum_of(&mut self, start: usize, operators: &mut Vec<usize>) {
        if !operators.is_empty() {
            self.call(SUM, start, operators);
            operators.clear();
        }
    }

    fn concat(&mut self) {
        let start = self.start();
        self.product();
        let mut operators = Vec::new();
        while self.is(|token| matches!(token, Token::Tilde)) {
            operators.push(self.at);
            self.at += 1;
            self.product();
        }
        if !operators.is_empty() {
            self.call(CONCAT, start, &operators);
        }
    }

    fn product(&mut self) {
        let start = self.start();
        self.power();
        loop {
            let function = match self.token() {
                Some(Token::Mul) => Some(PRODUCT),
                Some(Token::Mod) => Some(REMAINDER),
                Some(Token::Div | Token::FloorDiv) => None,
                _ => return,
            };
            let operator = self.at;
            self.at += 1;
            self.power();
            if let Some(function) = function {
                self.call(function, start, &[operator]);
            }
        }
    }

    fn power(&mut self) {
        let start = self.start();
        self.operand();
        while self.is(|token| matches!(token, Token::Pow)) {
            let operator = self.at;
            self.at += 1;
            self.operand();
            self.call(POWER, start, &[operator]);
        }
    }

    /// An operand with its signs, filters and tests. The sign `+` has no effect, and the engine lacks it.
    fn operand(&mut self) {
        while self.is(|token| matches!(token, Token::Minus | Token::Plus)) {
            if self.is(|token| matches!(token, Token::Plus)) {
                self.replace(self.at, "");
            }
            self.at += 1;
        }
        if !self.starts_operand() {
            return;
        }
        self.primary();
        loop {
            match self.token() {
                Some(Token::Pipe) => {
                    self.at += 2;
                    self.group();
                }
                Some(Token::Ident("is")) => self.test(),
                _ => return,
            }
        }
    }

    /// `is test`, `is not test`, and its argument.
    fn test(&mut self) {
        self.at += 1;
        if self.is(|token| matches!(token, Token::Ident("not"))) {
            self.at += 1;
        }
        self.at += 1;
        if self.starts_operand() {
            self.primary();
        }
    }

    /// A name, a value or brackets, with attributes, items and calls.
    fn primary(&mut self) {
        let start = self.start();
        if !self.group() {
            let is_text = self.is(|token| matches!(token, Token::Str(_) | Token::String(_)));
            self.at += 1;
            while is_text && self.is(|token| matches!(token, Token::Str(_) | Token::String(_))) {
                self.at += 1;
            }
        }
        loop {
            match self.token() {
                Some(Token::Dot) => self.at += 2,
                Some(Token::ParenOpen) => _ = self.group(),
                Some(Token::BracketOpen) => self.item(start),
                _ => return,
            }
        }
    }

    /// Passes an item or a slice of what began at `start`. `a[b:c]` becomes `lapwing_slice(a,b,c)`.
    fn item(&mut self, start: usize) {
        let open = self.at;
        let mut borders = vec![open];
        self.at += 1;
        let is_close = |token: &Token<'a>| matches!(token, Token::BracketClose);
        let is_colon = |token: &Token<'a>| matches!(token, Token::Colon);
        let mut parts = vec![false];
        while self.token().is_some() && !self.is(is_close) {
            match self.is(is_colon) {
                true => {
                    borders.push(self.at);
                    parts.push(false);
                    self.at += 1;
                }
                false => {
                    let before = self.at;
                    self.part();
                    // A bracket that fits nothing, which the parser reports.
                    self.at = self.at.max(before + 1);
                    parts.last_mut().into_iter().for_each(|part| *part = true);
                }
            }
        }
        let close = self.at;
        self.at += 1;
        if borders.len() == 1 {
            return;
        }
        for (border, is_given) in borders.into_iter().zip(parts) {
            self.replace(border, if is_given { "," } else { ",none" });
        }
        self.open_call(SLICE, start);
        self.replace(close, ")");
    }

    /// Expressions up to the next colon or bracket.
    fn part(&mut self) {
        let is_end = |token: &Token<'a>| {
            matches!(
                token,
                Token::ParenClose | Token::BracketClose | Token::BraceClose | Token::Colon
            )
        };
        while self.token().is_some() && !self.is(is_end) {
            self.step();
        }
    }

    /// Passes brackets, if they are next.
    fn group(&mut self) -> bool {
        let opens = |token: &Token<'a>| {
            matches!(token, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen)
        };
        if !self.is(opens) {
            return false;
        }
        self.at += 1;
        self.expressions();
        self.at += 1;
        true
    }

    fn open_call(&mut self, function: &str, start: usize) {
        let rank = i32::MAX - i32::try_from(self.calls.len()).unwrap_or(i32::MAX);
        let text = format!("{function}(");
        self.calls.push(Insertion { at: start, replaced: 0, text, rank });
    }

    fn replace(&mut self, operator: usize, text: &str) {
        let Some((_, span)) = self.tag.tokens.get(operator) else { return };
        let (at, end) = (span.start_offset as usize, span.end_offset as usize);
        self.calls.push(Insertion { at, replaced: end - at, text: text.into(), rank: 0 });
    }

    /// Makes a call of what began at `start` and ended before the next token. Outer calls are found after inner ones,
    /// and begin before them.
    fn call(&mut self, function: &str, start: usize, operators: &[usize]) {
        for operator in operators {
            self.replace(*operator, ",");
        }
        self.open_call(function, start);
        let end = self.tag.end_of(self.at.min(self.tag.tokens.len()).saturating_sub(1));
        self.calls.push(Insertion { at: end, replaced: 0, text: ")".into(), rank: 0 });
    }
}
