//! Splits text into the words within which byte-level BPE may merge.
//!
//! Each named set of rules is a chain of patterns: the first splits the text, each next one splits
//! every piece that the one before left. All patterns run on a finite automaton, so any text takes
//! linear time; the one look-ahead that the rules need, "white space up to the last before a
//! word", is implemented by hand.

mod rules;

use std::ops::Range;

use regex_automata::meta::Regex;
use regex_automata::{Input, PatternID};

use super::error::TokenizerError;
use rules::Step;
pub(super) use rules::WordRules;

/// Compiled rules.
pub(super) struct WordSplitter {
    steps: Vec<Regex>,
}

/// The second pattern of a step, if it has one.
const SPACES: PatternID = PatternID::new_unchecked(1);

impl WordSplitter {
    /// Compiles `rules`.
    pub(super) fn new(rules: &WordRules) -> Result<Self, TokenizerError> {
        let compile = |step: &Step| {
            let pattern = as_of_unicode_15_1(step.pattern);
            let patterns = [pattern.as_str(), r"\s+"];
            Regex::new_many(if step.spaces { &patterns } else { &patterns[..1] })
                .map_err(|source| TokenizerError::WordPattern { source: Box::new(source) })
        };
        let steps = rules.steps.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }

    /// Byte ranges of the words of `text`; they cover it without gaps.
    pub(super) fn split(&self, text: &str) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        if !text.is_empty() {
            pieces.push(0..text.len());
        }
        for regex in &self.steps {
            let mut words = Vec::with_capacity(pieces.len());
            for piece in pieces {
                cut(regex, &text[piece.clone()], piece.start, &mut words);
            }
            pieces = words;
        }
        pieces
    }
}

/// Restricts the general categories in `pattern` to the characters they contain in Unicode 15.1,
/// which llama.cpp's tables follow; newer characters belong to no category there.
fn as_of_unicode_15_1(pattern: &str) -> String {
    ["L", "N", "P", "S", "M"].iter().fold(pattern.to_owned(), |pattern, category| {
        let category = format!(r"\p{{{category}}}");
        pattern.replace(&category, &format!(r"[{category}&&\p{{Age=15.1}}]"))
    })
}

/// Appends the words of `piece`, and the text between them, as ranges shifted by `offset`.
fn cut(regex: &Regex, piece: &str, offset: usize, words: &mut Vec<Range<usize>>) {
    let mut done = 0;
    while done < piece.len() {
        let Some(found) = regex.find(Input::new(piece).range(done..)) else {
            break;
        };
        let mut end = found.end();
        if found.pattern() == SPACES && end < piece.len() {
            let last = piece[found.range()].chars().next_back().map_or(0, char::len_utf8);
            if end - last > found.start() {
                end -= last;
            }
        }
        if end == done {
            break;
        }
        if found.start() > done {
            words.push(offset + done..offset + found.start());
        }
        words.push(offset + found.start()..offset + end);
        done = end;
    }
    if done < piece.len() {
        words.push(offset + done..offset + piece.len());
    }
}
