//! Breaks lines between words at the width of a terminal: those of a model's text, as it arrives, and those of notes.

use std::borrow::Cow;
use std::io::{stderr, stdout};

use terminal_size::{Height, Width, terminal_size_of};
use textwrap::core::{Word, display_width};
use textwrap::{Options, WordSeparator, WordSplitter};

/// Columns of the terminal behind stdout; `None` if it is no terminal, or one that does not say.
pub(crate) fn stdout_columns() -> Option<usize> {
    columns(terminal_size_of(stdout()))
}

/// As [`stdout_columns`], of stderr.
pub(crate) fn stderr_columns() -> Option<usize> {
    columns(terminal_size_of(stderr()))
}

fn columns(size: Option<(Width, Height)>) -> Option<usize> {
    size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}

/// Breaks the long lines of a note, behind the indent that they begin with. Words stay whole, so that a path can be
/// copied.
pub(crate) fn note(text: &str, width: usize) -> Cow<'_, str> {
    if text.lines().all(|line| display_width(line) <= width) {
        return Cow::Borrowed(text);
    }
    let lines = text.split('\n').map(|line| {
        let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
        let options = Options::new(width)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(false)
            .subsequent_indent(indent);
        if display_width(line) <= width { line.to_owned() } else { textwrap::fill(line, options) }
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// Breaks a text that arrives in pieces. It holds back the last word, which may go on. Code, tables and indented lines
/// stay as they are; later lines of an item of a list begin under its text.
#[derive(Debug, Default)]
pub(crate) struct Wrap {
    /// What is not written yet.
    pending: String,
    /// White space before the next word.
    space: String,
    /// Columns that the present line has.
    column: usize,
    /// Columns before the text of further lines of the paragraph or item.
    indent: usize,
    line: LineKind,
    /// Whether the lines are those of a list.
    in_list: bool,
    /// The mark that ends a block of code.
    fence: Option<String>,
    /// Whether the next word continues one that is written in part.
    continues: bool,
}

/// What is known of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineKind {
    /// No word of it is written.
    #[default]
    Begins,
    /// It is broken between words.
    Prose,
    /// It stays as it is.
    AsIs,
}

impl Wrap {
    /// Takes a piece, and returns what can be written now on a terminal of `width` columns.
    pub(crate) fn push(&mut self, piece: &str, width: usize) -> String {
        self.pending.push_str(piece);
        let mut out = String::new();
        while let Some(end) = self.pending.find('\n') {
            let rest = self.pending.split_off(end + 1);
            let line = std::mem::replace(&mut self.pending, rest);
            self.words(line.trim_end_matches('\n'), width, &mut out);
            self.end_line(&mut out);
        }
        let line = std::mem::take(&mut self.pending);
        let last = words_of(&line).pop();
        // A word that fits on no line is not waited for.
        let held = last.filter(|last| display_width(last.word) <= width);
        let held = held.map_or(0, |last| last.word.len() + last.whitespace.len());
        let (whole, last) = line.split_at(line.len() - held);
        self.words(whole, width, &mut out);
        last.clone_into(&mut self.pending);
        if held == 0 && !line.is_empty() {
            self.continues = self.space.is_empty();
        }
        out
    }

    /// Returns what was held back: the text ends, or pauses.
    pub(crate) fn finish(&mut self, width: usize) -> String {
        let mut out = String::new();
        let line = std::mem::take(&mut self.pending);
        self.words(&line, width, &mut out);
        out.push_str(&std::mem::take(&mut self.space));
        out
    }

    /// Writes words of one line.
    fn words(&mut self, text: &str, width: usize, out: &mut String) {
        for word in words_of(text) {
            if !word.word.is_empty() {
                self.word(word.word, width, out);
            }
            self.space.push_str(word.whitespace);
        }
    }

    fn word(&mut self, word: &str, width: usize, out: &mut String) {
        if self.line == LineKind::Begins {
            self.begin_line(word);
        }
        let (space, columns) = (display_width(&self.space), display_width(word));
        let continues = std::mem::take(&mut self.continues) && space == 0;
        let is_long = self.column + space + columns > width && !continues;
        if self.line == LineKind::Prose && is_long && self.column > self.indent {
            self.space.clear();
            // An indent that leaves no room for words would make lines longer.
            let indent = if self.indent * 2 < width { self.indent } else { 0 };
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            self.column = indent;
        } else {
            out.push_str(&std::mem::take(&mut self.space));
            self.column += space;
        }
        out.push_str(word);
        self.column += columns;
        if self.column > width {
            // The terminal has broken the word.
            self.column %= width;
        }
    }

    /// Decides by its first word how a line is treated.
    fn begin_line(&mut self, word: &str) {
        let indent = display_width(&self.space);
        self.line = LineKind::AsIs;
        if let Some(fence) = &self.fence {
            if word.starts_with(fence.as_str()) {
                self.fence = None;
            }
            return;
        }
        self.fence = fence_of(word).map(str::to_owned);
        if self.fence.is_some() {
            return;
        }
        let is_item = is_marker(word);
        self.in_list = is_item || (self.in_list && indent > 0);
        if word.starts_with(['|', '\t']) || (indent >= 4 && !self.in_list) {
            return;
        }
        self.line = LineKind::Prose;
        self.indent = if is_item { indent + display_width(word) + 1 } else { indent };
    }

    fn end_line(&mut self, out: &mut String) {
        out.push_str(&std::mem::take(&mut self.space));
        out.push('\n');
        (self.column, self.indent, self.line) = (0, 0, LineKind::Begins);
        self.continues = false;
    }
}

/// The parts of a line between which it may be broken: at spaces, and between the characters of languages that are
/// written without them. Addresses and words with hyphens stay whole.
fn words_of(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = line;
    for word in WordSeparator::AsciiSpace.find_words(line) {
        let (mut part, after) = rest.split_at(word.word.len() + word.whitespace.len());
        rest = after;
        while let Some(at) = first_break(part) {
            let (first, others) = part.split_at(at);
            words.push(Word::from(first));
            part = others;
        }
        words.push(Word::from(part));
    }
    words
}

/// Where a word may be broken first: beside a wide character, but not before a mark that closes and not after one that
/// opens.
fn first_break(word: &str) -> Option<usize> {
    let is_wide = |c: char| display_width(c.encode_utf8(&mut [0; 4])) > 1;
    let mut characters = word.char_indices().zip(word.chars().skip(1));
    let found = characters.find(|((_, c), next)| {
        let is_beside = is_wide(*c) || is_wide(*next);
        is_beside && !OPENING.contains(*c) && !CLOSING.contains(*next) && *next != ' '
    });
    found.map(|((at, c), _)| at + c.len_utf8())
}

/// Marks that stay with the text after them, also the one that joins emoji.
const OPENING: &str = "([{「『（【《〈“‘\u{200d}";
/// Marks that stay with the text before them, also those that join emoji or change their colour.
const CLOSING: &str = ")]}.,;:!?、。，．：；！？」』）】》〉”’ーぁぃぅぇぉっゃゅょ\u{200d}\u{fe0f}\u{1f3fb}\u{1f3fc}\u{1f3fd}\u{1f3fe}\u{1f3ff}";

/// The mark that begins a block of code: three or more of a kind.
fn fence_of(word: &str) -> Option<&str> {
    let first = word.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let end = word.find(|c| c != first).unwrap_or(word.len());
    (end >= 3).then(|| &word[..end])
}

/// Whether a word begins an item of a list: `-`, `*`, `+`, `•`, or a number with a point or bracket.
fn is_marker(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']);
    let is_number = number.is_some_and(|number| {
        !number.is_empty() && number.len() <= 3 && number.bytes().all(|b| b.is_ascii_digit())
    });
    is_number || matches!(word, "-" | "*" | "+" | "•")
}

#[cfg(test)]
mod tests;
