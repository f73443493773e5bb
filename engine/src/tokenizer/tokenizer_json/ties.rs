//! The order of merges of the same score.
//!
//! Of pairs with the same score the left one is joined first, wherever they stand; ranks put one kind of pair before the
//! other. Both are the same if a pair has a better rank than every other that it can stand to the left of, and that it changes.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::error::Inexpressible;
use crate::tokenizer::joiner::{self, Joins};
use crate::tokenizer::token_table::TokenTable;

/// Two pieces that are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Merge<'a> {
    pub(super) joined: &'a str,
    pub(super) left: &'a str,
    pub(super) right: &'a str,
}

impl<'a> Merge<'a> {
    /// The pair that a text consists of, parted at a position in bytes.
    pub(super) fn of(joined: &'a str, at: usize) -> Merge<'a> {
        Merge { joined, left: &joined[..at], right: &joined[at..] }
    }
}

/// The merges in an order of ranks that joins as their scores do; those that never happen may be left out.
///
/// # Errors
/// [`Inexpressible::Ties`] if there is none.
pub(super) fn in_order<'a>(
    table: &TokenTable,
    merges: Vec<Merge<'a>>,
) -> Result<Vec<Merge<'a>>, Inexpressible> {
    let cycle = match sorted(&merges) {
        Ok(sorted) => return Ok(sorted),
        Err(cycle) => cycle,
    };
    let offered = offered(table, &cycle);
    let happens = |merge: &Merge<'_>| {
        let pair = (merge.left.to_owned(), merge.right.to_owned());
        !cycle.contains(merge) || offered.contains(&pair)
    };
    let merges: Vec<Merge<'a>> = merges.into_iter().filter(happens).collect();
    sorted(&merges).map_err(|cycle| Inexpressible::Ties {
        first: cycle.first().map(|merge| merge.joined.to_owned()).unwrap_or_default(),
        second: cycle.last().map(|merge| merge.joined.to_owned()).unwrap_or_default(),
    })
}

/// The merges such that each stands before those that it must precede, or those that cannot be ordered.
fn sorted<'a>(merges: &[Merge<'a>]) -> Result<Vec<Merge<'a>>, Vec<Merge<'a>>> {
    let after = followers(merges);
    let mut waits = vec![0_usize; merges.len()];
    after.iter().flatten().for_each(|next| waits[*next] += 1);
    let mut ready: BTreeSet<usize> = (0..merges.len()).filter(|at| waits[*at] == 0).collect();
    let mut order = Vec::with_capacity(merges.len());
    while let Some(at) = ready.pop_first() {
        order.push(merges[at]);
        for next in &after[at] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.insert(*next);
            }
        }
    }
    if order.len() == merges.len() {
        return Ok(order);
    }
    let placed: HashSet<Merge<'_>> = order.into_iter().collect();
    Err(merges.iter().filter(|merge| !placed.contains(merge)).copied().collect())
}

/// For each merge, those that it must precede: the ones that start with its right part, and the ones that a merge of its
/// result must precede.
fn followers(merges: &[Merge<'_>]) -> Vec<BTreeSet<usize>> {
    let mut by_left: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, merge) in merges.iter().enumerate() {
        by_left.entry(merge.left).or_default().push(at);
    }
    let starting = |text: &str| by_left.get(text).into_iter().flatten().copied();
    let mut after: Vec<BTreeSet<usize>> = merges
        .iter()
        .enumerate()
        .map(|(at, merge)| starting(merge.right).filter(|next| *next != at).collect())
        .collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (at, merge) in merges.iter().enumerate() {
            let then = starting(merge.joined).flat_map(|next| after[next].iter().copied());
            let then: Vec<usize> = then.filter(|next| *next != at).collect();
            let before = after[at].len();
            after[at].extend(then);
            changed |= after[at].len() > before;
        }
    }
    after
}

/// Joins by score, and notes which pairs are tried.
struct Noted<'a> {
    table: &'a TokenTable,
    pairs: RefCell<HashSet<(String, String)>>,
}

impl Joins for Noted<'_> {
    fn priority(&self, joined: &str, left: usize) -> Option<f64> {
        let id = self.table.id(joined)?;
        self.pairs.borrow_mut().insert((joined[..left].to_owned(), joined[left..].to_owned()));
        Some(f64::from(self.table.score(id)))
    }
}

/// The pairs that ever stand beside each other in texts in which these pieces overlap themselves: repetitions of their
/// periods, from each start and of each length up to three times their own.
fn offered(table: &TokenTable, merges: &[Merge<'_>]) -> HashSet<(String, String)> {
    let noted = Noted { table, pairs: RefCell::default() };
    let texts: BTreeSet<&str> = merges.iter().map(|merge| merge.joined).collect();
    let mut done = HashSet::new();
    for text in texts {
        let chars: Vec<char> = text.chars().collect();
        let period =
            (1..=chars.len()).find(|period| chars[*period..] == chars[..chars.len() - period]);
        let period = period.unwrap_or(chars.len());
        for start in 0..period {
            for length in 2..=3 * chars.len() {
                let repeated = chars.iter().take(period).cycle().skip(start).take(length);
                let repeated: String = repeated.collect();
                if !done.contains(&repeated) {
                    joiner::encode(table, &noted, &repeated, &mut Vec::new());
                    done.insert(repeated);
                }
            }
        }
    }
    noted.pairs.into_inner()
}
