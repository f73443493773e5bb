//! What a template may contain, checked before it is compiled, and the calls that measure its work.
//!
//! A template is a program from an untrusted file. The template engine limits its steps, but neither
//! the time nor the memory of a step, and its compiler recurses for every operator. So tags are bounded
//! in length and nesting, only the tags that chat templates use are accepted, and calls are inserted
//! into the source: one that counts a pass at the start of each loop body and macro
//! ([`STEP`](super::names::STEP)), and one that measures each value that a variable keeps ([`BOUND`](super::names::BOUND), [`KEPT`](super::names::KEPT)). Operators of which the
//! engine has another meaning, or no limit, become calls as well ([`operators`]).

mod blocks;
mod operators;

use minijinja::machinery::{Span, Token, Tokenizer};

use self::blocks::Blocks;
use super::checked::Checked;
use super::environment;
use super::error::ChatError;
use super::names::{NAME, OWN};

/// Longest source in bytes; the longest of 71 published templates has 18 096.
const SOURCE_BYTES_MAX: usize = 128 << 10;
/// Most tokens of a tag; the longest published has 56.
const TAG_TOKENS_MAX: usize = 256;

/// Length of `%}` and `}}`.
const DELIMITER_BYTES: usize = 2;

/// A tag's tokens, between its delimiters.
struct Tag<'a> {
    tokens: Vec<(Token<'a>, Span)>,
    /// End of the opening delimiter.
    start: usize,
    /// End of the closing delimiter.
    end: usize,
    /// The delimiter's sign, which says how the white space after it is treated: `-`, `+` or nothing.
    sign: &'a str,
    line: usize,
}

/// Text to be inserted at a position of the source, perhaps in place of some of it.
struct Insertion {
    at: usize,
    /// Bytes of the source that it replaces.
    replaced: usize,
    text: String,
    /// Order among insertions at the same position; those of equal rank keep their order.
    rank: i32,
}

/// Checks `source`.
pub(super) fn check(source: &str) -> Result<Checked, ChatError> {
    if source.len() > SOURCE_BYTES_MAX {
        let what = format!("it has {} bytes, more than {SOURCE_BYTES_MAX}", source.len());
        return Err(ChatError::too_complex(what, 1));
    }
    let source = &environment::without_training_marks(source);
    let mut blocks = Blocks::new(source);
    let mut literals = Vec::new();
    let mut tokenizer = Tokenizer::new(source, NAME, false, environment::syntax()?);
    while let Some((token, span)) = tokenizer.next_token().map_err(ChatError::invalid)? {
        let is_block = match token {
            Token::TemplateData(text) => {
                blocks.emit(text.len());
                continue;
            }
            Token::BlockStart => true,
            Token::VariableStart => false,
            // The parser reports anything else.
            _ => continue,
        };
        let tag = Tag::read(&mut tokenizer, span)?;
        literals.extend(tag.tokens.iter().filter_map(|(token, _)| match token {
            Token::Str(text) => Some((*text).to_owned()),
            Token::String(text) => Some(text.to_string()),
            _ => None,
        }));
        blocks.add_work(tag.work());
        blocks.insert_all(operators::calls(&tag, is_block));
        if is_block {
            blocks.statement(&tag)?;
        }
    }
    let (source, work) = blocks.finish();
    Ok(Checked { source, literals, work })
}

impl<'a> Tag<'a> {
    /// Reads the tokens up to the end of the tag that starts at `start`.
    fn read(tokenizer: &mut Tokenizer<'a>, start: Span) -> Result<Self, ChatError> {
        let line = usize::from(start.start_line);
        let mut tokens = Vec::new();
        let mut last = start.end_offset as usize;
        while let Some((token, span)) = tokenizer.next_token().map_err(ChatError::invalid)? {
            match token {
                Token::BlockEnd | Token::VariableEnd => break,
                Token::Ident(name) if name.starts_with(OWN) => {
                    return Err(ChatError::too_complex(format!("it uses the name {name}"), line));
                }
                _ if tokens.len() == TAG_TOKENS_MAX => {
                    let what = format!("a tag has more than {TAG_TOKENS_MAX} tokens");
                    return Err(ChatError::too_complex(what, line));
                }
                token => {
                    last = span.end_offset as usize;
                    tokens.push((token, span));
                }
            }
        }
        let rest = tokenizer.source().get(last..).unwrap_or_default();
        let delimiter = rest.trim_start();
        let sign = delimiter.get(..1).filter(|sign| matches!(*sign, "-" | "+")).unwrap_or_default();
        let end = last + (rest.len() - delimiter.len()) + sign.len() + DELIMITER_BYTES;
        Ok(Self { tokens, start: start.end_offset as usize, end, sign, line })
    }

    /// The identifier at `index`.
    fn ident(&self, index: usize) -> Option<&'a str> {
        match self.tokens.get(index)? {
            (Token::Ident(name), _) => Some(name),
            _ => None,
        }
    }

    /// Index of the first token outside of brackets, from `from` on, for which `wanted` holds.
    fn find(&self, from: usize, wanted: impl Fn(&Token<'a>) -> bool) -> Option<usize> {
        let mut depth = 0_usize;
        for (index, (token, _)) in self.tokens.iter().enumerate() {
            match token {
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                    depth = depth.saturating_sub(1);
                }
                token if depth == 0 && index >= from && wanted(token) => return Some(index),
                _ => {}
            }
        }
        None
    }

    /// End of the token at `index`, in bytes.
    fn end_of(&self, index: usize) -> usize {
        self.tokens.get(index).map_or(self.start, |(_, span)| span.end_offset as usize)
    }

    /// Work of the operators whose time depends on the size of their operands. Values within a tag may
    /// grow with each of them, so it is the square of their number.
    fn work(&self) -> u64 {
        let is_heavy = |token: &Token<'_>| {
            matches!(
                token,
                Token::Plus
                    | Token::Tilde
                    | Token::Mul
                    | Token::Eq
                    | Token::Ne
                    | Token::Gt
                    | Token::Gte
                    | Token::Lt
                    | Token::Lte
                    | Token::BracketOpen
                    | Token::Ident("in" | "is")
            )
        };
        let count = |wanted: &dyn Fn(&Token<'_>) -> bool| {
            self.tokens.iter().filter(|(token, _)| wanted(token)).count() as u64
        };
        // A colon may be that of a slice, which copies character by character.
        let heavy = count(&is_heavy) + count(&|token| matches!(token, Token::Colon));
        heavy * heavy
    }
}
