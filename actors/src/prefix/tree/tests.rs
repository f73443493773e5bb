use std::collections::HashMap;

use lapwing_kernels::kv::{KvDtype, KvHeads, KvLease};
use lapwing_kernels::kv::{KvLayout, KvPool, PageId};
use proptest::prelude::*;

use super::*;
use crate::prefix::tests::random;

mod kept;

const PAGE_ROWS: usize = 3;
const PAGES: u32 = 40;

fn ids(pages: &[KvPage]) -> Vec<PageId> {
    pages.iter().map(KvPage::id).collect()
}

#[test]
fn a_text_finds_the_pages_of_its_longest_prefix() {
    let (pool, mut tree) = (KvPool::new(PAGES), PrefixTree::new(2));
    let pages = pool.alloc(3).expect("free");
    tree.insert(&None, &[1, 2, 3, 4, 5], &pages);
    for (text, whole, partial) in [
        (&[1, 2, 3, 4, 5, 6][..], 2, Some(1)),
        (&[1, 2, 3, 4, 9], 2, None),
        (&[1, 2, 3, 9], 1, Some(1)),
        (&[1, 9], 0, Some(1)),
        (&[9, 2], 0, None),
        (&[], 0, None),
    ] {
        let found = tree.find(&None, text);
        assert_eq!(ids(&found.pages), ids(&pages[..whole]), "{text:?}");
        let expected = partial.map(|rows| (pages[whole].id(), rows));
        assert_eq!(found.partial.map(|(page, rows)| (page.id(), rows)), expected, "{text:?}");
        assert_eq!(tree.matched(&None, text), 2 * whole + partial.unwrap_or(0));
    }
    assert_eq!(tree.matched(&Some("other".into()), &[1, 2]), 0, "another namespace");
}

#[test]
fn a_longer_text_takes_the_place_of_a_partly_filled_page() {
    let (pool, mut tree) = (KvPool::new(PAGES), PrefixTree::new(4));
    let pages = pool.alloc(3).expect("free");
    tree.insert(&None, &[1, 2], &pages[..1]);
    tree.insert(&None, &[1], &pages[1..2]);
    assert_eq!((tree.pages(), tree.matched(&None, &[1, 2, 3, 4, 5])), (1, 2), "one has the other");
    tree.insert(&None, &[1, 2, 3, 4, 5], &pages[1..]);
    assert_eq!((tree.pages(), tree.matched(&None, &[1, 2, 3, 4, 5])), (2, 5));
    drop(pages);
    assert_eq!(pool.free_pages(), PAGES as usize - 2);
}

#[test]
fn the_least_recently_used_leaf_is_dropped_first_and_leased_pages_stay() {
    let (pool, mut tree) = (KvPool::new(PAGES), PrefixTree::new(1));
    let text = |last: u32| [7, 8, last];
    let mut first = pool.alloc(3).expect("free");
    tree.insert(&None, &text(1), &first);
    for last in 2..5 {
        let mut pages = first[..2].to_vec();
        pages.extend(pool.alloc(1).expect("free"));
        tree.insert(&None, &text(last), &pages);
    }
    first.truncate(1);
    tree.find(&None, &text(1));
    assert!(tree.free(1));
    let matched = |tree: &PrefixTree| [1, 2, 3, 4].map(|last| tree.matched(&None, &text(last)));
    assert_eq!(matched(&tree), [3, 2, 3, 3], "the first one was used since");
    assert!(!tree.free(5), "one of the five others is leased");
    assert_eq!((tree.pages(), matched(&tree)), (5, [3, 2, 3, 3]));
    assert!(tree.free(4));
    assert_eq!((tree.pages(), matched(&tree)), (1, [1; 4]));
    drop(first);
    assert!(tree.free(1) && !tree.free(1));
    assert_eq!(pool.free_pages(), PAGES as usize);
}

#[test]
fn states_stay_with_their_tokens_and_the_longest_is_found() {
    let (pool, places, mut tree) = (KvPool::new(PAGES), KvPool::new(8), PrefixTree::new(PAGE_ROWS));
    let place = || places.alloc(1).expect("free").remove(0);
    let text = |last: &[u32]| [&[1, 2, 3, 4, 5, 6, 7], last].concat();
    let pages = pool.alloc(5).expect("free");
    let found = |tree: &mut PrefixTree, text: &[u32], whole| {
        tree.find_state(&None, text, whole).map(|state| (state.rows, state.place.id()))
    };
    tree.insert_state(&None, &text(&[]), place());
    assert_eq!(found(&mut tree, &text(&[]), false), None, "no pages yet");
    tree.insert(&None, &text(&[]), &pages[..3]);
    let kept: Vec<_> = [3, 4, 7].map(|rows| (rows, place())).into();
    let ids: Vec<_> = kept.iter().map(|(rows, place)| (*rows, place.id())).collect();
    for (rows, place) in kept {
        tree.insert_state(&None, &text(&[])[..rows], place);
    }
    tree.insert_state(&None, &text(&[])[..4], place());
    assert_eq!(tree.states(), 3, "the first one stays");
    assert_eq!(found(&mut tree, &text(&[9]), false), Some(ids[2]));
    assert_eq!(found(&mut tree, &text(&[9]), true), Some(ids[0]), "at the end of a page");
    assert_eq!(found(&mut tree, &[1, 2, 3, 4, 5, 9], false), Some(ids[1]));
    assert_eq!(found(&mut tree, &[1, 2, 9], false), None);
    // The last page is replaced by one that is full, and the text goes on; another one leaves it after a page.
    tree.insert(&None, &text(&[8, 9, 10]), &pages[..4]);
    tree.insert(&None, &[1, 2, 3, 8], &[pages[0].clone(), pages[4].clone()]);
    assert_eq!(found(&mut tree, &text(&[8, 9]), false), Some(ids[2]));
    assert_eq!(found(&mut tree, &[1, 2, 3, 4, 9], false), Some(ids[1]));
    assert_eq!(found(&mut tree, &[1, 2, 3, 8, 8], false), Some(ids[0]));
    assert_eq!(tree.texts().iter().map(|text| text.states.len()).sum::<usize>(), 3 + 1);
    drop(pages);
    // Pages go from the end of the text that was used least recently, and states with them: those of 8, of 10, and of 7 to 9.
    assert!(tree.free(3));
    assert_eq!(found(&mut tree, &text(&[8, 9]), false), Some(ids[1]));
    assert!(tree.free_state() && tree.states() == 1);
    assert_eq!(
        found(&mut tree, &text(&[]), false),
        Some(ids[1]),
        "of those that were used last together, the one of less rows goes"
    );
    assert!(tree.free_state() && !tree.free_state());
    assert_eq!(places.free_pages(), 8);
}

/// What a tree must hold: a page for each text of whole pages, and its last use.
#[derive(Default)]
struct Naive {
    pages: HashMap<(Namespace, Vec<u32>), PageId>,
}

impl Naive {
    fn whole(&self, namespace: &Namespace, text: &[u32]) -> Vec<PageId> {
        let ends = (1..=text.len() / PAGE_ROWS).map(|pages| pages * PAGE_ROWS);
        let found = ends.map(|end| self.pages.get(&(namespace.clone(), text[..end].to_vec())));
        found.map_while(|page| page.copied()).collect()
    }

    /// Most rows of the page after the whole ones of a text that begin like the text.
    fn partial(&self, namespace: &Namespace, text: &[u32]) -> usize {
        let whole = self.whole(namespace, text).len() * PAGE_ROWS;
        let of_page = self.pages.keys().filter(|(space, tokens)| {
            space == namespace && tokens.len().div_ceil(PAGE_ROWS) * PAGE_ROWS == whole + PAGE_ROWS
        });
        let same = of_page.map(|(_, tokens)| common(tokens, text));
        same.max().unwrap_or(0).saturating_sub(whole)
    }

    fn insert(&mut self, namespace: &Namespace, text: &[u32], pages: &[KvPage]) {
        for (at, page) in pages.iter().enumerate() {
            let end = text.len().min((at + 1) * PAGE_ROWS);
            let (start, tokens) = (at * PAGE_ROWS, &text[..end]);
            let same_page = |other: &[u32]| other.len() > start && other.len() <= start + PAGE_ROWS;
            let has = |other: &(Namespace, Vec<u32>)| {
                other.0 == *namespace && same_page(&other.1) && other.1.starts_with(tokens)
            };
            if self.pages.keys().any(has) {
                continue;
            }
            self.pages.retain(|(space, other), _| {
                !(space == namespace && same_page(other) && tokens.starts_with(other))
            });
            self.pages.insert((namespace.clone(), tokens.to_vec()), page.id());
        }
    }

    /// Forgets the pages that a tree has dropped. None of them may have been leased, or have pages after it.
    fn forget(&mut self, tree: &PrefixTree, leased: &[PageId]) -> Result<(), TestCaseError> {
        let held: Vec<PageId> = tree.nodes.iter().flat_map(|node| ids(&node.pages)).collect();
        let (kept, dropped): (HashMap<_, _>, HashMap<_, _>) =
            std::mem::take(&mut self.pages).into_iter().partition(|(_, id)| held.contains(id));
        for ((space, text), id) in &dropped {
            prop_assert!(!leased.contains(id), "a leased page was dropped");
            let has_more = |(other, tokens): &(Namespace, Vec<u32>)| {
                other == space && tokens.len() > text.len() && tokens.starts_with(text)
            };
            prop_assert!(!kept.keys().any(has_more), "a page was dropped before those after it");
        }
        self.pages = kept;
        Ok(())
    }
}

/// Leaves and page counts are what the nodes say.
fn check(tree: &PrefixTree) -> Result<(), TestCaseError> {
    let used = (0..tree.nodes.len()).filter(|id| !tree.vacant.contains(id));
    let leaves = used
        .clone()
        .filter(|id| tree.nodes[*id].parent.is_some() && tree.nodes[*id].children.is_empty());
    let leaves: BTreeSet<_> = leaves.map(|id| (tree.nodes[id].used, id)).collect();
    prop_assert_eq!(&leaves, &tree.leaves);
    let pages: usize = tree.nodes.iter().map(|node| node.pages.len()).sum();
    prop_assert_eq!(pages, tree.pages);
    for id in used {
        let node = &tree.nodes[id];
        let above = node.parent.map(|above| &tree.nodes[above]);
        prop_assert_eq!(node.start, above.map_or(0, |above| above.start + above.tokens.len()));
        prop_assert_eq!(node.tokens.len().div_ceil(PAGE_ROWS), node.pages.len());
        let whole = node.tokens.len().is_multiple_of(PAGE_ROWS);
        prop_assert!(whole || node.children.is_empty(), "only a leaf ends within a page");
        for (key, child) in &node.children {
            prop_assert_eq!(tree.nodes[*child].parent, Some(id));
            prop_assert_eq!(key, &tree.key(*child));
        }
    }
    Ok(())
}

fn operations() -> usize {
    match std::env::var("LAPWING_TEST").is_ok_and(|mode| mode == "full") {
        true => 2000,
        false => 100,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// Random texts over few tokens are inserted and found, leased and dropped: the tree has what a map of
    /// all prefixes has, and every page is in the pool, in the tree or leased.
    #[test]
    fn a_tree_holds_what_a_map_of_prefixes_holds(seed in any::<u64>()) {
        let layout = KvLayout::uniform(1, KvHeads::new(1, 1), PAGE_ROWS, KvDtype::F32);
        let mut next = random(seed);
        let pool = KvPool::new(PAGES);
        let (mut tree, mut naive) = (PrefixTree::new(PAGE_ROWS), Naive::default());
        let mut leases: Vec<KvLease> = Vec::new();
        // These texts are matched repeatedly; the tree changes a random number of times in between.
        let asked: Vec<Vec<u32>> =
            (0..8).map(|_| (0..next(14)).map(|_| next(2) as u32).collect()).collect();
        let known: Vec<Cell<Known>> = asked.iter().map(|_| Cell::default()).collect();
        for _ in 0..operations() {
            let at = next(asked.len());
            prop_assert_eq!(
                tree.matched_again(&None, &asked[at], &known[at]),
                tree.matched(&None, &asked[at])
            );
            let namespace: Namespace = [None, Some("salt".into())][next(4) / 3].clone();
            let text: Vec<u32> = (0..next(14)).map(|_| next(2) as u32).collect();
            let drops = next(5) == 0;
            if drops {
                leases.truncate(leases.len().saturating_sub(next(3)));
            }
            let leased: Vec<PageId> = leases.iter().flat_map(|l| ids(l.pages())).collect();
            if drops {
                let wanted = next(4);
                let (before, unleased) = (tree.pages(), tree.unleased());
                let has_dropped = tree.free(wanted);
                prop_assert_eq!(has_dropped, unleased >= wanted);
                prop_assert_eq!(before - tree.pages(), if has_dropped { wanted } else { 0 });
                naive.forget(&tree, &leased)?;
            } else {
                let found = tree.find(&namespace, &text);
                prop_assert_eq!(ids(&found.pages), naive.whole(&namespace, &text));
                let partial = found.partial.as_ref().map_or(0, |(_, rows)| *rows);
                prop_assert_eq!(partial, naive.partial(&namespace, &text));
                let matched = found.pages.len() * PAGE_ROWS + partial;
                prop_assert_eq!(tree.matched(&namespace, &text), matched);
                let mut lease = KvLease::new(found.pages);
                let missing = layout.pages_for(text.len()) - lease.pages().len();
                if pool.free_pages() < missing {
                    let held: Vec<PageId> =
                        leased.iter().copied().chain(ids(lease.pages())).collect();
                    tree.free(missing - pool.free_pages());
                    naive.forget(&tree, &held)?;
                }
                if lease.grow(&pool, &layout, text.len()).is_ok() {
                    tree.insert(&namespace, &text, lease.pages());
                    naive.insert(&namespace, &text, lease.pages());
                    leases.push(lease);
                } else {
                    leases.clear();
                }
            }
            check(&tree)?;
            let mut held: Vec<PageId> = leases.iter().flat_map(|l| ids(l.pages())).collect();
            held.extend(tree.nodes.iter().flat_map(|node| ids(&node.pages)));
            held.sort_unstable();
            held.dedup();
            prop_assert_eq!(held.len() + pool.free_pages(), PAGES as usize);
        }
    }
}
