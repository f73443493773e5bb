//! Characters of a GBNF grammar, with their places.

use std::iter::Peekable;
use std::str::Chars;

use super::ast::Place;
use crate::structured::GrammarError;

/// Reads a text character by character.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    place: Place,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Reader<'a> {
        Reader { chars: text.chars().peekable(), place: Place { line: 1, column: 1 } }
    }

    /// The place of the next character.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let char = self.chars.next()?;
        match char {
            '\n' => self.place = Place { line: self.place.line + 1, column: 1 },
            _ => self.place.column += 1,
        }
        Some(char)
    }

    /// Takes the next character if it is this one.
    pub(super) fn take(&mut self, char: char) -> bool {
        let is_it = self.peek() == Some(char);
        if is_it {
            self.next();
        }
        is_it
    }

    /// Takes characters while they satisfy a condition.
    pub(super) fn take_while(&mut self, holds: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(char) = self.peek().filter(|char| holds(*char)) {
            text.push(char);
            self.next();
        }
        text
    }

    /// Skips spaces and comments, and line ends if `lines` says so.
    pub(super) fn skip_space(&mut self, lines: bool) {
        while let Some(char) = self.peek() {
            match char {
                '#' => drop(self.take_while(|char| char != '\n' && char != '\r')),
                ' ' | '\t' => drop(self.next()),
                '\n' | '\r' if lines => drop(self.next()),
                _ => return,
            }
        }
    }

    /// Takes the `|` before a further alternative, which may stand at the begin of a later line.
    pub(super) fn take_next_alternative(&mut self) -> bool {
        let mut ahead = self.clone();
        ahead.skip_space(true);
        let follows = ahead.take('|');
        if follows {
            *self = ahead;
        }
        follows
    }

    /// An error at the next character, which is not what is expected.
    pub(super) fn expected(&mut self, what: &str) -> GrammarError {
        let found = match self.peek() {
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(char) => format!("'{}'", char.escape_debug()),
            None => "the end of the grammar".to_owned(),
        };
        self.place.error(format!("expected {what}, found {found}"))
    }

    /// A character of a literal or a class, which may be escaped.
    pub(super) fn char(&mut self, within: &str) -> Result<char, GrammarError> {
        let at = self.place;
        let unclosed = || at.error(format!("{within} is not closed"));
        let char = self.next().ok_or_else(unclosed)?;
        if char != '\\' {
            return Ok(char);
        }
        match self.next().ok_or_else(unclosed)? {
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'x' => self.code_point(2, at),
            'u' => self.code_point(4, at),
            'U' => self.code_point(8, at),
            char @ ('\\' | '"' | '[' | ']' | '-' | '^' | '/') => Ok(char),
            char => Err(at.error(format!("unknown escape '\\{}'", char.escape_debug()))),
        }
    }

    fn code_point(&mut self, digits: usize, at: Place) -> Result<char, GrammarError> {
        let mut value = 0;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|char| char.to_digit(16)) else {
                return Err(self.expected(&format!("{digits} hexadecimal digits")));
            };
            value = value << 4 | digit;
            self.next();
        }
        char::from_u32(value).ok_or_else(|| at.error(format!("{value:#X} is no character")))
    }
}
