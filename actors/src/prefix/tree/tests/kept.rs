//! Texts of running sequences, which become longer.

use super::*;
use crate::prefix::tests::random;

/// Tokens of a text, and the pages that hold them.
type TextPages = (Vec<u32>, Vec<PageId>);

/// A sequence that runs.
#[derive(Default)]
struct Running {
    text: Vec<u32>,
    lease: KvLease,
    kept: Kept,
}

/// A tree, and how texts are added to it.
struct Side {
    pool: KvPool,
    tree: PrefixTree,
    sequences: Vec<Running>,
    /// Where they end, or else from the first token on.
    at_end: bool,
}

impl Side {
    fn new(at_end: bool) -> Side {
        let sequences = (0..4).map(|_| Running::default()).collect();
        Side { pool: KvPool::new(PAGES), tree: PrefixTree::new(PAGE_ROWS), sequences, at_end }
    }

    /// A sequence begins anew, with what the tree has of a text.
    fn begin(&mut self, at: usize, text: &[u32]) {
        self.sequences[at] = Running::default();
        let lease = KvLease::new(self.tree.find(&None, text).pages);
        let rows = lease.pages().len() * PAGE_ROWS;
        self.sequences[at] = Running { text: text[..rows].to_vec(), lease, kept: Kept::rows(rows) };
    }

    /// A sequence has more tokens, unless there is no room. Its last page stays apart while it is partly filled and the sequence goes on.
    fn grow(&mut self, at: usize, more: &[u32], ends: bool) {
        let layout = KvLayout::uniform(1, KvHeads::new(1, 1), PAGE_ROWS, KvDtype::F32);
        let Running { text, lease, kept } = &mut self.sequences[at];
        let rows = text.len() + more.len();
        let missing = layout.pages_for(rows) - lease.pages().len();
        self.tree.free(missing.saturating_sub(self.pool.free_pages()));
        if lease.grow(&self.pool, &layout, rows).is_err() {
            return;
        }
        text.extend_from_slice(more);
        let rows = if ends { rows } else { rows / PAGE_ROWS * PAGE_ROWS };
        if rows <= kept.rows {
            return;
        }
        let (known, pages) = (kept.rows / PAGE_ROWS, &lease.pages()[..layout.pages_for(rows)]);
        let others = match self.at_end {
            true => self.tree.keep(&None, &text[..rows], pages, kept),
            false => {
                self.tree.insert(&None, &text[..rows], pages);
                let whole = rows / PAGE_ROWS * PAGE_ROWS;
                *kept = Kept::rows(whole);
                self.tree.find_after(&None, &text[..whole], known).pages
            }
        };
        lease.replace(known, &others);
        if ends {
            self.sequences[at] = Running::default();
        }
    }

    /// All texts with their pages, the least recently used first, and the pages that sequences lease.
    fn state(&self) -> (Vec<TextPages>, Vec<Vec<PageId>>) {
        let texts = self.tree.texts().into_iter().map(|text| (text.tokens, ids(&text.pages)));
        (texts.collect(), self.sequences.iter().map(|it| it.lease.page_ids().to_vec()).collect())
    }
}

/// Tokens that are added where a text ends make the same tree as those that are added from its first token on.
fn trees_are_the_same(seed: u64) -> Result<(), TestCaseError> {
    let mut next = random(seed);
    let mut sides = [Side::new(true), Side::new(false)];
    for _ in 0..operations() {
        let (at, what) = (next(4), next(8));
        let text: Vec<u32> =
            (0..1 + next(if what == 0 { 14 } else { 4 })).map(|_| next(2) as u32).collect();
        for side in &mut sides {
            match what {
                0 => side.begin(at, &text),
                1 => drop(side.tree.free(text.len())),
                _ => side.grow(at, &text, what == 2),
            }
            check(&side.tree)?;
        }
        prop_assert_eq!(sides[0].state(), sides[1].state());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn a_text_goes_on_where_it_ends(seed in any::<u64>()) {
        trees_are_the_same(seed)?;
    }
}

/// In this run a node is divided, dropped, and its place taken by that of another text, before the first text goes on.
#[test]
fn a_text_does_not_go_on_in_a_node_of_another_text() {
    trees_are_the_same(3_970_436_020_089_293_900).expect("the same trees");
}

#[test]
fn a_further_token_is_added_without_a_look_at_those_before_it() {
    let layout = KvLayout::uniform(1, KvHeads::new(1, 1), 1, KvDtype::F32);
    let looks = |prompt: usize| {
        let (pool, mut tree) = (KvPool::new(10_000), PrefixTree::new(1));
        let mut text: Vec<u32> = (0..prompt as u32).collect();
        let (mut lease, mut kept) = (KvLease::default(), Kept::default());
        let mut add = |text: &[u32]| {
            lease.grow(&pool, &layout, text.len()).expect("room");
            let others = tree.keep(&None, text, lease.pages(), &mut kept);
            assert!(others.is_empty());
            tree.looks()
        };
        let before = add(&text);
        for token in 0..1000 {
            text.push(token % 3);
            add(&text);
        }
        add(&[&text[..], &[7]].concat()) - before
    };
    assert_eq!(looks(10), looks(5000));
    assert!(looks(5000) <= 2 * 1001, "{}", looks(5000));
}
