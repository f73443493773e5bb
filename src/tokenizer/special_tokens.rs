//! Finds special tokens in the text, before any other rule applies.

use aho_corasick::AhoCorasick;

use super::error::TokenizerError;
use super::token_table::TokenTable;

/// A range of text, or a token found in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fragment<'t> {
    /// Text for the word or piece rules; never empty.
    Text(&'t str),
    /// A special token.
    Token(u32),
}

/// One special token to search for.
struct Special {
    id: u32,
    text: String,
    /// Searched for only if the caller allows control tokens in the text.
    on_request: bool,
    strip_left: bool,
    strip_right: bool,
}

/// All special tokens, longest first.
pub(super) struct SpecialTokens {
    specials: Vec<Special>,
    /// Finds in one pass which of `specials` occur; pattern n is `specials[n]`.
    search: AhoCorasick,
}

impl SpecialTokens {
    /// Collects the control, unknown and user-defined tokens of `table`.
    pub(super) fn new(table: &TokenTable) -> Result<Self, TokenizerError> {
        let mut specials: Vec<Special> = (0..table.len())
            .filter(|id| table.traits(*id).is_special())
            .map(|id| {
                let traits = table.traits(id);
                Special {
                    id,
                    text: table.text(id).to_owned(),
                    on_request: traits.control || traits.unknown,
                    strip_left: traits.strip_left,
                    strip_right: traits.strip_right,
                }
            })
            .collect();
        specials.sort_by_key(|special| std::cmp::Reverse(special.text.len()));
        let search = AhoCorasick::new(specials.iter().map(|special| &special.text))
            .map_err(|source| TokenizerError::SpecialTokens { source: source.into() })?;
        Ok(Self { specials, search })
    }

    /// Splits `text` at its special tokens. The longest token takes all its occurrences first, from
    /// left to right, then the next; control and unknown tokens count only if `parse_control`.
    pub(super) fn partition<'t>(&self, text: &'t str, parse_control: bool) -> Vec<Fragment<'t>> {
        let mut fragments = Vec::new();
        if !text.is_empty() {
            fragments.push(Fragment::Text(text));
        }
        for index in self.present(text) {
            let special = &self.specials[index];
            if special.on_request && !parse_control {
                continue;
            }
            let mut cut = Vec::with_capacity(fragments.len() + 2);
            for fragment in fragments {
                match fragment {
                    Fragment::Text(text) => special.cut(text, &mut cut),
                    Fragment::Token(_) => cut.push(fragment),
                }
            }
            fragments = cut;
        }
        fragments
    }

    /// Indices of the tokens that occur in `text`, ascending.
    fn present(&self, text: &str) -> Vec<usize> {
        let mut seen = vec![false; self.specials.len()];
        let mut left = seen.len();
        for found in self.search.find_overlapping_iter(text) {
            let seen = &mut seen[found.pattern().as_usize()];
            left -= usize::from(!*seen);
            *seen = true;
            if left == 0 {
                break;
            }
        }
        (0..seen.len()).filter(|index| seen[*index]).collect()
    }
}

impl Special {
    /// Appends the text between the occurrences of this token, and the token at each.
    fn cut<'t>(&self, mut text: &'t str, fragments: &mut Vec<Fragment<'t>>) {
        while let Some(at) = text.find(&self.text) {
            let (mut before, mut after) = (&text[..at], &text[at + self.text.len()..]);
            if self.strip_left {
                before = before.trim_end_matches(is_ascii_space);
            }
            if self.strip_right {
                after = after.trim_start_matches(is_ascii_space);
            }
            if !before.is_empty() {
                fragments.push(Fragment::Text(before));
            }
            fragments.push(Fragment::Token(self.id));
            text = after;
        }
        if !text.is_empty() {
            fragments.push(Fragment::Text(text));
        }
    }
}

/// White space as in C's `isspace`.
fn is_ascii_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}
