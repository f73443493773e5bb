//! A follower of a cache knows exactly what the cache has.

mod blocks;

use std::collections::{BTreeMap, BTreeSet};

use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvLease, KvPage, KvPool};

use super::follower::channel;
use super::*;

const PAGE_ROWS: usize = 4;
/// Tokens of a block: a page has two.
const SIZE: usize = 2;
const PAGES: u32 = 60;
const PLACES: u32 = 6;

/// The content of a cache, rebuilt from its events.
#[derive(Default)]
struct Mirror {
    /// The block before each.
    known: BTreeMap<(CacheGroup, BlockHash), Option<BlockHash>>,
}

impl Mirror {
    /// Applies changes, each of which must be possible.
    fn apply(&mut self, batch: &[CacheEvent]) {
        for event in batch {
            match event {
                CacheEvent::Cleared => self.known.clear(),
                CacheEvent::Stored(blocks) => self.store(blocks),
                CacheEvent::Removed { group, hashes } => {
                    for hash in hashes {
                        let known = self.known.remove(&(*group, *hash));
                        assert!(known.is_some(), "a block that is not known is removed");
                        let follows = |(other, before): (&(CacheGroup, _), &Option<BlockHash>)| {
                            other.0 == CacheGroup::Attention && *before == Some(*hash)
                        };
                        let is_needed = *group == CacheGroup::Attention
                            && self.known.iter().any(|(block, before)| follows((block, before)));
                        assert!(!is_needed, "a block is removed before those after it");
                    }
                }
            }
        }
    }

    fn store(&mut self, blocks: &StoredBlocks) {
        let StoredBlocks { group, hashes, parent, tokens, block_tokens, namespace } = blocks;
        assert_eq!((tokens.len(), *block_tokens), (SIZE * hashes.len(), SIZE));
        let has = |hash| self.known.contains_key(&(CacheGroup::Attention, hash));
        assert!(parent.is_none_or(has), "the block before is not known");
        let start = parent.unwrap_or_else(|| BlockHash::start(namespace.as_deref()));
        assert!(start.chain(tokens, SIZE).eq(hashes.iter().copied()), "other hashes");
        if *group == CacheGroup::States {
            assert!(hashes.len() == 1 && has(hashes[0]), "states of a block that is not known");
        }
        let mut before = *parent;
        for hash in hashes {
            let known = self.known.insert((*group, *hash), before.replace(*hash));
            assert_eq!(known, None, "a block that is known is stored");
        }
    }

    /// The blocks of a tree's texts, and its states at their ends.
    fn of(tree: &PrefixTree) -> BTreeSet<(CacheGroup, BlockHash)> {
        let mut all = BTreeSet::new();
        for text in tree.texts() {
            let start = BlockHash::start(text.namespace.as_deref());
            let blocks: Vec<BlockHash> = start.chain(&text.tokens, SIZE).collect();
            let at_ends = text.states.iter().filter(|state| state.rows.is_multiple_of(SIZE));
            all.extend(at_ends.map(|state| (CacheGroup::States, blocks[state.rows / SIZE - 1])));
            all.extend(blocks.into_iter().map(|hash| (CacheGroup::Attention, hash)));
        }
        all
    }

    fn blocks(&self) -> BTreeSet<(CacheGroup, BlockHash)> {
        self.known.keys().copied().collect()
    }
}

/// Random numbers below a bound (xorshift, Marsaglia, 2003).
pub(super) fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut random = seed | 1;
    move |below| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 20) as usize % below
    }
}

/// A cache with pages and places of states, and sequences that lease some of them.
struct World {
    cache: PrefixCache,
    pool: KvPool,
    places: KvPool,
    layout: KvLayout,
    leases: Vec<KvLease>,
    held: Vec<KvPage>,
}

impl World {
    fn new() -> World {
        World {
            cache: PrefixCache::new(PAGE_ROWS, None),
            pool: KvPool::new(PAGES),
            places: KvPool::new(PLACES),
            layout: KvLayout::uniform(1, KvHeads::new(1, 1), PAGE_ROWS, KvDtype::F32),
            leases: Vec::new(),
            held: Vec::new(),
        }
    }

    fn follow(&self) -> (CacheEvents, Mirror) {
        let (follower, batches) = channel();
        assert!(self.cache.tree().follow(follower, SIZE));
        (CacheEvents::new(&self.cache, batches), Mirror::default())
    }

    /// A text of few tokens goes through the cache as that of a sequence does.
    fn insert(&mut self, namespace: &Namespace, text: &[u32]) {
        let mut tree = self.cache.tree();
        let mut lease = KvLease::new(tree.find(namespace, text).pages);
        let missing = self.layout.pages_for(text.len()) - lease.pages().len();
        let short = missing.saturating_sub(self.pool.free_pages());
        tree.free(short);
        if lease.grow(&self.pool, &self.layout, text.len()).is_ok() {
            tree.insert(namespace, text, lease.pages());
            self.leases.push(lease);
        }
    }

    fn insert_state(&mut self, namespace: &Namespace, text: &[u32], held: bool) {
        let mut tree = self.cache.tree();
        if self.places.free_pages() == 0 {
            tree.free_state();
        }
        let Ok(mut place) = self.places.alloc(1) else { return };
        if held {
            self.held.extend(place.first().cloned());
        }
        tree.insert_state(namespace, text, place.remove(0));
    }

    /// All that the cache has goes through a file into another cache.
    fn restart(&mut self) {
        let old = std::mem::replace(self, World::new());
        old.cache.end_events();
        for text in old.cache.tree().texts() {
            let mut pages = KvLease::default();
            if pages.grow(&self.pool, &self.layout, text.tokens.len()).is_err() {
                break;
            }
            let mut tree = self.cache.tree();
            tree.insert(&text.namespace, &text.tokens, pages.pages());
            for state in text.states {
                let Ok(mut place) = self.places.alloc(1) else { break };
                tree.insert_state(&text.namespace, &text.tokens[..state.rows], place.remove(0));
            }
        }
    }
}

/// Number of operations of the long run.
fn operations() -> usize {
    let set = std::env::var("LAPWING_TEST_OPERATIONS").ok().and_then(|text| text.parse().ok());
    let is_full = std::env::var("LAPWING_TEST").is_ok_and(|mode| mode == "full");
    set.unwrap_or(if is_full { 1_000_000 } else { 100_000 })
}

/// Texts are inserted and found, divided, leased and dropped, with states and namespaces; the cache is cleared, ends, and is read
/// again from what it had. A follower knows at any time what it has, also if batches are lost.
#[test]
fn a_tree_rebuilt_from_events_is_the_tree() {
    let mut next = random(0x5eed);
    let mut world = World::new();
    let (mut events, mut mirror) = world.follow();
    let (mut batches, mut restarts) = (0, 0);
    for step in 0..operations() {
        let namespace: Namespace = [None, None, Some("alice".into())][next(3)].clone();
        let text: Vec<u32> = (0..next(24)).map(|_| next(2) as u32).collect();
        match next(100) {
            0..55 => world.insert(&namespace, &text),
            55..75 => world.insert_state(&namespace, &text, next(4) == 0),
            75..85 => drop(world.cache.tree().free(next(6))),
            85..88 => drop(world.cache.tree().free_state()),
            88..97 => {
                world.leases.truncate(world.leases.len().saturating_sub(next(8)));
                world.held.truncate(world.held.len().saturating_sub(next(4)));
            }
            97 => {
                let mut tree = world.cache.tree();
                let unleased = tree.unleased();
                assert!(tree.free(unleased));
            }
            98 => events.start_again(),
            _ if next(20) == 0 => {
                world.restart();
                assert_eq!(drained(&mut events, &mut mirror), None, "the events have ended");
                (events, mirror) = world.follow();
                restarts += 1;
            }
            _ => {}
        }
        if world.leases.len() > 6 {
            world.leases.remove(0);
        }
        if step % 37 == 0 {
            batches += drained(&mut events, &mut mirror).expect("the events go on");
            let tree = world.cache.tree();
            assert_eq!(mirror.blocks(), Mirror::of(&tree), "after {step} operations");
        }
    }
    assert!(batches > operations() / 4 && restarts > operations() / 10_000, "{batches} {restarts}");
}

/// Applies all batches; their number, or `None` if the events have ended.
fn drained(events: &mut CacheEvents, mirror: &mut Mirror) -> Option<usize> {
    let mut count = 0;
    while let Some(batch) = events.try_next() {
        mirror.apply(&batch);
        count += 1;
    }
    (!events.have_ended()).then_some(count)
}

#[test]
fn one_who_reads_late_is_told_all_again() {
    let mut world = World::new();
    let (mut events, mut mirror) = world.follow();
    assert_eq!(events.next_blocking().as_deref(), Some(&[CacheEvent::Cleared][..]), "at first");
    for round in 0..3000 {
        world.insert(&None, &[round, 1, 2, 3]);
        world.leases.clear();
        let mut tree = world.cache.tree();
        assert!(tree.pages() == 0 || tree.free(1));
    }
    world.insert(&None, &[7; 9]);
    let first = events.next_blocking().expect("a batch");
    assert_eq!(first[0], CacheEvent::Cleared, "batches were lost");
    mirror.apply(&first);
    assert_eq!(events.try_next(), None);
    assert_eq!(mirror.blocks(), Mirror::of(&world.cache.tree()));
    world.cache.end_events();
    assert_eq!(events.next_blocking(), None);
    assert!(world.cache.follow().is_none(), "a cache that has ended has no followers");
}

#[test]
fn without_one_who_follows_nothing_is_kept() {
    let mut world = World::new();
    let (events, _) = world.follow();
    world.insert(&None, &[1, 2, 3]);
    assert!(world.cache.tree().followed_blocks().is_some());
    drop(events);
    world.insert(&None, &[4, 5, 6]);
    assert!(world.cache.tree().followed_blocks().is_none());
    assert_eq!(world.cache.tree().blocks(SIZE).len(), 2);
}

/// Two texts part within a page: their common block is in two pages, and is stored and removed once.
#[test]
fn a_block_of_two_pages_is_there_once() {
    let mut world = World::new();
    let (mut events, _) = world.follow();
    events.next_blocking();
    let hash = |tokens: &[u32]| BlockHash::start(None).chain(tokens, SIZE).last().expect("a block");
    let mut told = || events.try_next().map(|batch| batch.to_vec());
    world.insert(&None, &[1, 2, 3]);
    let stored = |hashes: &[BlockHash], parent, tokens: &[u32]| {
        CacheEvent::Stored(StoredBlocks {
            group: CacheGroup::Attention,
            hashes: hashes.to_vec(),
            parent,
            tokens: tokens.to_vec(),
            block_tokens: SIZE,
            namespace: None,
        })
    };
    let first = hash(&[1, 2]);
    assert_eq!(told(), Some(vec![stored(&[first], None, &[1, 2])]), "only whole blocks");
    let second = hash(&[1, 2, 3, 4]);
    world.insert(&None, &[1, 2, 3, 4, 5]);
    assert_eq!(told(), Some(vec![stored(&[second], Some(first), &[3, 4])]), "it grows");
    let other = hash(&[1, 2, 4, 4]);
    world.insert(&None, &[1, 2, 4, 4]);
    assert_eq!(told(), Some(vec![stored(&[other], Some(first), &[4, 4])]), "it parts");
    world.leases.clear();
    let removed = |hashes: &[BlockHash]| {
        let group = CacheGroup::Attention;
        Some(vec![CacheEvent::Removed { group, hashes: hashes.to_vec() }])
    };
    assert!(world.cache.tree().free(2));
    assert_eq!(told(), removed(&[second]), "the other page has the first block, too");
    assert!(world.cache.tree().free(1));
    assert_eq!(told(), removed(&[other, first]), "the last first");
    assert_eq!(told(), None);
}
