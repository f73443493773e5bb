//! Finds special tokens in the text, before any other rule applies.

mod limits;
mod search;
mod taken;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::search::{Candidate, Search, Starts};
use self::taken::Taken;
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

/// Where control and unknown tokens are matched. User-defined tokens are matched everywhere.
#[derive(Clone, Copy, Debug)]
pub(super) enum Control<'a> {
    /// Everywhere.
    Everywhere,
    /// Nowhere.
    Nowhere,
    /// Where they contain none of these byte positions, which are ascending. User-defined tokens that
    /// look like control tokens are treated alike.
    Without(&'a [usize]),
}

/// One special token to search for.
struct Special {
    id: u32,
    text: String,
    /// Searched for only if the caller allows control tokens in the text.
    on_request: bool,
    /// A control token, by its kind or by its look.
    controls: bool,
    strip_left: bool,
    strip_right: bool,
}

/// All special tokens, longest first, then by id.
pub(super) struct SpecialTokens {
    specials: Vec<Special>,
    /// One for each class of tokens.
    searches: Vec<Search>,
    /// Where control tokens start that are not white space only.
    control_starts: Option<Starts>,
}

impl SpecialTokens {
    /// Collects the control, unknown and user-defined tokens of `table`.
    pub(super) fn new(table: &TokenTable) -> Result<Self, TokenizerError> {
        // An empty text would be found between all characters.
        let is_found = |id: &u32| table.traits(*id).is_special() && !table.text(*id).is_empty();
        let ids = (0..table.len()).filter(is_found);
        limits::check(ids.clone().map(|id| (id, table.text(id))))?;
        let mut specials: Vec<Special> = ids
            .map(|id| {
                let (traits, text) = (table.traits(id), table.text(id));
                Special {
                    id,
                    text: text.to_owned(),
                    on_request: traits.is_hidden(),
                    controls: traits.is_hidden() || looks_like_control(text),
                    strip_left: traits.strip_left,
                    strip_right: traits.strip_right,
                }
            })
            .collect();
        specials.sort_by_key(|special| Reverse(special.text.len()));
        let searches = Search::all(&specials)?;
        let controls = specials.iter().filter(|special| special.controls);
        let texts = controls.map(|special| &*special.text).filter(|text| !text.trim().is_empty());
        let control_starts = Starts::new(texts)?;
        Ok(Self { specials, searches, control_starts })
    }

    /// Texts of the tokens that are control tokens by their kind or by their look, longest first.
    pub(super) fn control_texts(&self) -> impl Iterator<Item = &str> {
        self.specials.iter().filter(|special| special.controls).map(|special| &*special.text)
    }

    /// Positions in bytes, ascending, where control tokens start in `text`; none of white space only.
    pub(super) fn control_positions(&self, text: &str) -> Vec<usize> {
        self.control_starts.as_ref().map_or_else(Vec::new, |starts| starts.of(text))
    }

    /// Whether any token is matched in every text.
    pub(super) fn any_plain(&self) -> bool {
        self.specials.iter().any(|special| !special.on_request)
    }

    /// Whether any token absorbs the white space next to it.
    pub(super) fn any_strips(&self) -> bool {
        self.specials.iter().any(|special| special.strip_left || special.strip_right)
    }

    /// Splits `text` at its special tokens. The longest token takes all its occurrences first, from
    /// left to right, then the next.
    ///
    /// An occurrence that overlaps a taken one is replaced by the longest token of its class with the same
    /// end that fits, which is found by bisection and shorter than the last one.
    pub(super) fn partition<'t>(&self, text: &'t str, control: Control<'_>) -> Vec<Fragment<'t>> {
        let mut fragments = Vec::new();
        let mut done = 0;
        for (start, end, id) in self.take(text, control).in_order() {
            if start > done {
                fragments.push(Fragment::Text(&text[done..start]));
            }
            fragments.push(Fragment::Token(id));
            done = end;
        }
        if done < text.len() {
            fragments.push(Fragment::Text(&text[done..]));
        }
        fragments
    }

    fn take(&self, text: &str, control: Control<'_>) -> Taken {
        let mut taken = Taken::new(text.len());
        let searches = self.searches.iter().enumerate();
        let searches = searches.filter(|(_, search)| search.class.is_matched(control));
        let candidates =
            searches.flat_map(|(n, search)| search.candidates(&self.specials, n, text, control));
        let mut candidates: BinaryHeap<Reverse<Candidate>> = candidates.map(Reverse).collect();
        while let Some(Reverse(candidate)) = candidates.pop() {
            let Some(free_from) = taken.free_before(candidate.end) else { continue };
            let special = &self.specials[candidate.special as usize];
            let start = candidate.end - special.text.len();
            if start < free_from {
                let search = &self.searches[candidate.search];
                let length_max = candidate.end - free_from;
                let next = search.longest(&self.specials, candidate, length_max, control);
                candidates.extend(next.map(Reverse));
                continue;
            }
            let (mut from, mut to) = (start, candidate.end);
            if special.strip_left {
                from = free_from + text[free_from..start].trim_end().len();
            }
            if special.strip_right {
                let free = &text[to..taken.free_until(to)];
                to += free.len() - free.trim_start().len();
            }
            taken.insert(from, to, special.id);
        }
        taken
    }
}

/// Whether a token is a control token by its look: some files call such tokens user-defined.
fn looks_like_control(text: &str) -> bool {
    let between = |open, close| text.starts_with(open) && text.ends_with(close);
    between("<|", "|>") || between("<｜", "｜>")
}

#[cfg(test)]
mod tests;
