//! Joins neighbouring symbols of a text, the best pair first, until none may be joined.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::token_table::TokenTable;

/// Which neighbours may be joined.
pub(super) trait Joins {
    /// How soon two neighbours are joined, or `None` if never: those with the highest number first, then those
    /// further left. `joined` is the text of both, and `left` the length in bytes of the first.
    fn priority(&self, joined: &str, left: usize) -> Option<f64>;
}

/// Appends the ids of `text`, whose characters are joined as far as `joins` allows. What is no token then is written
/// byte by byte; a byte without a token becomes the unknown token.
///
/// Takes O(n log n) for n characters, as long as pairs that are longer than any token cost nothing: every join adds at
/// most two pairs.
pub(super) fn encode(table: &TokenTable, joins: &impl Joins, text: &str, ids: &mut Vec<u32>) {
    let mut joiner = Joiner::new(joins, text);
    joiner.run();
    let mut next = if text.is_empty() { None } else { Some(0) };
    while let Some(index) = next {
        let symbol = &joiner.symbols[index];
        push_ids(table, &text[symbol.start..symbol.end], ids);
        next = symbol.after;
    }
}

/// Appends the id of `piece`, or the ids of its bytes.
fn push_ids(table: &TokenTable, piece: &str, ids: &mut Vec<u32>) {
    match table.id(piece) {
        Some(id) => ids.push(id),
        None => ids.extend(piece.bytes().filter_map(|byte| table.byte_id(byte))),
    }
}

/// A range of the text that is one token, or one character that is not a token. Symbols form a
/// linked list by index; an absorbed symbol has `end == start`.
struct Symbol {
    start: usize,
    end: usize,
    before: Option<usize>,
    after: Option<usize>,
}

/// Two neighbours that may be joined. Stale once `length` no longer matches them.
struct Pair {
    priority: f64,
    left: usize,
    right: usize,
    length: usize,
}

impl Ord for Pair {
    /// Higher priority first, then further left.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_priority = self.priority.partial_cmp(&other.priority).unwrap_or(Ordering::Equal);
        by_priority.then(other.left.cmp(&self.left))
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

struct Joiner<'a, J> {
    joins: &'a J,
    text: &'a str,
    symbols: Vec<Symbol>,
    pairs: BinaryHeap<Pair>,
}

impl<'a, J: Joins> Joiner<'a, J> {
    fn new(joins: &'a J, text: &'a str) -> Self {
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
        Self { joins, text, symbols, pairs: BinaryHeap::new() }
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

    /// Queues two neighbours if they may be joined.
    fn offer(&mut self, left: Option<usize>, right: Option<usize>) {
        let (Some(left), Some(right)) = (left, right) else {
            return;
        };
        let (first, second) = (&self.symbols[left], &self.symbols[right]);
        let joined = &self.text[first.start..second.end];
        if let Some(priority) = self.joins.priority(joined, first.end - first.start) {
            self.pairs.push(Pair { priority, left, right, length: joined.len() });
        }
    }
}
