//! SentencePiece BPE: joins neighbouring symbols, best score first, as long as the joined text is a
//! token; unknown text is written byte by byte.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::token_table::TokenTable;

/// SentencePiece's character for a space.
pub(super) const SPACE: &str = "\u{2581}";

/// A range of the text that is one token, or one character that is not a token. Symbols form a
/// linked list by index; an absorbed symbol has `end == start`.
struct Symbol {
    start: usize,
    end: usize,
    before: Option<usize>,
    after: Option<usize>,
}

/// Two neighbours whose joined text is a token. Stale once `length` no longer matches them.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    length: usize,
}

impl Ord for Pair {
    /// Higher score first, then further left.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.partial_cmp(&other.score).unwrap_or(Ordering::Equal);
        by_score.then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pair {}

/// Appends the ids of `text`, in which spaces are already replaced by [`SPACE`].
///
/// Takes O(n log n) for n characters: every join adds at most two pairs, and no pair longer than
/// the longest token is looked up.
pub(super) fn encode(table: &TokenTable, text: &str, ids: &mut Vec<u32>) {
    let mut joiner = Joiner::new(table, text);
    joiner.run();
    let mut next = if text.is_empty() { None } else { Some(0) };
    while let Some(index) = next {
        let symbol = &joiner.symbols[index];
        push_ids(table, &text[symbol.start..symbol.end], ids);
        next = symbol.after;
    }
}

/// Appends the id of `piece`, or the ids of its bytes; a byte without a token becomes the unknown
/// token.
fn push_ids(table: &TokenTable, piece: &str, ids: &mut Vec<u32>) {
    match table.id(piece) {
        Some(id) => ids.push(id),
        None => ids.extend(piece.bytes().filter_map(|byte| table.byte_id(byte))),
    }
}

struct Joiner<'a> {
    table: &'a TokenTable,
    text: &'a str,
    symbols: Vec<Symbol>,
    pairs: BinaryHeap<Pair>,
}

impl<'a> Joiner<'a> {
    fn new(table: &'a TokenTable, text: &'a str) -> Self {
        let mut symbols: Vec<Symbol> = text
            .char_indices()
            .enumerate()
            .map(|(index, (start, char))| Symbol {
                start,
                end: start + char.len_utf8(),
                before: index.checked_sub(1),
                after: Some(index + 1),
            })
            .collect();
        if let Some(last) = symbols.last_mut() {
            last.after = None;
        }
        Self { table, text, symbols, pairs: BinaryHeap::new() }
    }

    fn run(&mut self) {
        for right in 1..self.symbols.len() {
            self.offer(Some(right - 1), Some(right));
        }
        while let Some(pair) = self.pairs.pop() {
            self.join(&pair);
        }
    }

    fn join(&mut self, pair: &Pair) {
        let (left, right) = (&self.symbols[pair.left], &self.symbols[pair.right]);
        let absorbed = left.start == left.end || right.start == right.end;
        if absorbed || right.end - left.start != pair.length {
            return;
        }
        let (end, after) = (right.end, right.after);
        self.symbols[pair.right].end = self.symbols[pair.right].start;
        if let Some(after) = after {
            self.symbols[after].before = Some(pair.left);
        }
        let left = &mut self.symbols[pair.left];
        left.end = end;
        left.after = after;
        let before = left.before;
        self.offer(before, Some(pair.left));
        self.offer(Some(pair.left), after);
    }

    /// Queues two neighbours if their joined text is a token.
    fn offer(&mut self, left: Option<usize>, right: Option<usize>) {
        let (Some(left), Some(right)) = (left, right) else {
            return;
        };
        let text = &self.text[self.symbols[left].start..self.symbols[right].end];
        if let Some(id) = self.table.id(text) {
            let score = self.table.score(id);
            self.pairs.push(Pair { score, left, right, length: text.len() });
        }
    }
}
