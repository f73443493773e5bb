//! Splits text into the words within which BPE may merge.
//!
//! Each named set of rules is a chain of patterns: the first splits the text, each next one splits
//! every piece that the one before left. All patterns run on a finite automaton, so any text takes
//! linear time; what needs a look ahead is implemented by hand: white space up to the last before a
//! word, and digits in groups that are counted from the last.

mod rules;

use std::ops::Range;

use regex_automata::meta::Regex;
use regex_automata::{Input, PatternID};

use super::error::TokenizerError;
pub(super) use rules::{Begin, Spelling, Whole, WordRules};
use rules::{Cut, Step};

/// Compiled rules.
pub(super) struct WordSplitter {
    steps: Vec<Splitter>,
}

/// A compiled step.
struct Splitter {
    regex: Regex,
    cut: Cut,
}

/// The second pattern of a step, if it has one.
const SPACES: PatternID = PatternID::new_unchecked(1);

/// Most characters of white space in a word of [`Cut::WordsAndSpacesByPowers`].
const POWER_MAX: usize = 512;

/// Characters in a group of digits.
const GROUP: usize = 3;

impl WordSplitter {
    /// Compiles `rules`.
    pub(super) fn new(rules: &WordRules) -> Result<Self, TokenizerError> {
        let steps = rules.steps.iter().map(Splitter::new).collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }

    /// Byte ranges of the words of `text`; they cover it without gaps.
    pub(super) fn split(&self, text: &str) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        if !text.is_empty() {
            pieces.push(0..text.len());
        }
        for step in &self.steps {
            let mut words = Words { text, ranges: Vec::with_capacity(pieces.len()) };
            pieces.into_iter().for_each(|piece| step.cut(piece, &mut words));
            pieces = words.ranges;
        }
        pieces
    }
}

/// Restricts the general categories in `pattern` to the characters they contain in Unicode 15.1,
/// which llama.cpp's tables follow; newer characters belong to no category there.
fn as_of_unicode_15_1(pattern: &str) -> String {
    const CATEGORIES: [&str; 10] = ["L", "Lu", "Ll", "Lt", "Lm", "Lo", "N", "P", "S", "M"];
    CATEGORIES.iter().fold(pattern.to_owned(), |pattern, category| {
        let category = format!(r"\p{{{category}}}");
        pattern.replace(&category, &format!(r"[{category}&&\p{{Age=15.1}}]"))
    })
}

impl Splitter {
    fn new(step: &Step) -> Result<Self, TokenizerError> {
        let pattern = as_of_unicode_15_1(step.pattern);
        let patterns = [pattern.as_str(), r"\s+"];
        let count = match step.cut {
            Cut::Words | Cut::Thousands => 1,
            Cut::WordsAndSpaces | Cut::WordsAndSpacesByPowers => 2,
        };
        let regex = Regex::new_many(&patterns[..count])
            .map_err(|source| TokenizerError::WordPattern { source: Box::new(source) })?;
        Ok(Self { regex, cut: step.cut })
    }

    /// Appends the words of the piece `whole`, and the text between them.
    fn cut(&self, whole: Range<usize>, words: &mut Words<'_>) {
        let piece = &words.text[whole.clone()];
        let mut done = 0;
        while done < piece.len() {
            let Some(found) = self.regex.find(Input::new(piece).range(done..)) else {
                break;
            };
            let spaces = found.pattern() == SPACES;
            let end = if spaces { before_a_word(piece, found.range()) } else { found.end() };
            if end == done {
                break;
            }
            words.push(whole.start + done, whole.start + found.start());
            let word = whole.start + found.start()..whole.start + end;
            match self.cut {
                Cut::Thousands => words.push_thousands(word),
                Cut::WordsAndSpacesByPowers if spaces => words.push_powers(word),
                _ => words.push(word.start, word.end),
            }
            done = end;
        }
        words.push(whole.start + done, whole.end);
    }
}

/// The end of the white space `spaces` without its last character, which belongs to the word that follows. Without such
/// a word, or where this is all white space, its own end.
fn before_a_word(piece: &str, spaces: Range<usize>) -> usize {
    if spaces.end == piece.len() {
        return spaces.end;
    }
    let last = piece[spaces.clone()].chars().next_back().map_or(0, char::len_utf8);
    if spaces.end - last > spaces.start { spaces.end - last } else { spaces.end }
}

/// Words that were found.
struct Words<'t> {
    text: &'t str,
    ranges: Vec<Range<usize>>,
}

impl Words<'_> {
    /// Appends a word, unless it is empty.
    fn push(&mut self, start: usize, end: usize) {
        if start < end {
            self.ranges.push(start..end);
        }
    }

    /// Appends groups of three characters, of which the first may be shorter.
    fn push_thousands(&mut self, number: Range<usize>) {
        let mut left = self.text[number.clone()].chars().count();
        let mut start = number.start;
        while start < number.end {
            let group = (left - 1) % GROUP + 1;
            start = self.push_chars(start, group);
            left -= group;
        }
    }

    /// Appends runs of 512, 256 and so on down to 1 characters, the longest first.
    fn push_powers(&mut self, spaces: Range<usize>) {
        let mut left = self.text[spaces.clone()].chars().count();
        let mut start = spaces.start;
        while start < spaces.end {
            let run = POWER_MAX.min(1 << left.ilog2());
            start = self.push_chars(start, run);
            left -= run;
        }
    }

    /// Appends the next `count` characters as a word. Returns its end.
    fn push_chars(&mut self, start: usize, count: usize) -> usize {
        let rest = &self.text[start..];
        let end = rest.char_indices().nth(count).map_or(self.text.len(), |(at, _)| start + at);
        self.push(start, end);
        end
    }
}
