use proptest::prelude::*;

use super::*;

const WORKERS: u32 = 3;

fn prompt() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0_u64..3, 0..8)
}

#[derive(Clone, Debug)]
enum Act {
    Insert(u32, Vec<u64>),
    Learn(u32, Vec<u64>),
    Forget(u32, Vec<u64>, usize),
    Limit(u32, usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..WORKERS, prompt()).prop_map(|(worker, blocks)| Act::Insert(worker, blocks)),
        2 => (0..WORKERS, prompt()).prop_map(|(worker, blocks)| Act::Learn(worker, blocks)),
        2 => (0..WORKERS, prompt(), 0_usize..8).prop_map(|(worker, blocks, kept)| {
            Act::Forget(worker, blocks, kept)
        }),
        1 => (0..WORKERS, 0_usize..6).prop_map(|(worker, nodes)| Act::Limit(worker, nodes)),
    ]
}

/// The first blocks of all prompts that a worker has.
type Known = Vec<BTreeSet<Vec<u64>>>;

fn cached(tree: &BlockTree, prompt: &[u64]) -> Vec<usize> {
    let mut cached = vec![9; WORKERS as usize];
    tree.cached(&tree.way(prompt), &mut cached);
    cached
}

fn apply(act: &Act, tree: &mut BlockTree, known: &mut Known, at: u64) {
    match act {
        Act::Insert(worker, blocks) => {
            tree.insert(WorkerId(*worker), blocks, Nanos(at));
            let firsts = (1..=blocks.len()).map(|end| blocks[..end].to_vec());
            known[*worker as usize].extend(firsts);
        }
        Act::Learn(worker, blocks) => {
            let firsts = (1..=blocks.len()).map(|end| blocks[..end].to_vec());
            let is_new = !firsts.clone().all(|text| known[*worker as usize].contains(&text));
            let learned = tree.learn(WorkerId(*worker), blocks, Nanos(at));
            assert_eq!(learned.map(|step| step.end), is_new.then_some(blocks.len()));
            known[*worker as usize].extend(firsts);
        }
        Act::Forget(worker, blocks, kept) => {
            tree.forget(WorkerId(*worker), blocks, *kept);
            if let Some(lost) = blocks.get(..kept + 1) {
                known[*worker as usize].retain(|text| !text.starts_with(lost));
            }
        }
        Act::Limit(worker, nodes) => {
            let id = WorkerId(*worker);
            tree.limit(id, *nodes);
            assert!(tree.nodes_of(id) <= *nodes);
            // Which ones are left is up to the tree; whatever has a prompt has its beginnings.
            known[*worker as usize].retain(|text| cached(tree, text)[id.index()] == text.len());
        }
    }
}

proptest! {
    #[test]
    fn the_tree_has_what_a_list_of_all_beginnings_has(
        acts in prop::collection::vec(act(), 1..40),
        asked in prop::collection::vec(prompt(), 1..6),
    ) {
        let mut tree = BlockTree::new(WORKERS as usize);
        let mut known: Known = vec![BTreeSet::new(); WORKERS as usize];
        for (at, act) in acts.iter().enumerate() {
            apply(act, &mut tree, &mut known, at as u64);
            for (worker, known) in known.iter().enumerate() {
                let id = WorkerId(worker as u32);
                prop_assert_eq!(tree.blocks_of(id), known.len(), "blocks of {}", worker);
                let blocks: usize = tree.oldest(id).map(|node| node.end - node.start).sum();
                prop_assert_eq!(blocks, tree.blocks_of(id));
            }
        }
        for prompt in &asked {
            let found = cached(&tree, prompt);
            for (worker, known) in known.iter().enumerate() {
                let longest = (0..=prompt.len()).rev().find(|end| {
                    *end == 0 || known.contains(&prompt[..*end])
                });
                prop_assert_eq!(Some(found[worker]), longest, "{:?} at {}", prompt, worker);
            }
            let way = tree.way(prompt);
            prop_assert!(way.iter().all(|step| !tree.workers(step).is_empty()));
            let most = way.last().map_or(0, |step| step.end);
            prop_assert_eq!(Some(most), found.iter().copied().max());
        }
        // Without workers nothing is left.
        (0..WORKERS).for_each(|worker| tree.limit(WorkerId(worker), 0));
        prop_assert_eq!(tree.nodes.len() - tree.vacant.len(), 1);
    }
}

#[test]
fn the_least_recently_used_node_goes_first() {
    let mut tree = BlockTree::new(1);
    let worker = WorkerId(0);
    for (at, blocks) in [[1, 2, 3], [1, 2, 4], [5, 6, 7], [1, 2, 3]].iter().enumerate() {
        tree.insert(worker, blocks, Nanos(at as u64));
    }
    // The nodes are 1 2, 3, 4 and 5 6 7.
    assert_eq!(tree.nodes_of(worker), 4);
    for (left, expected) in [(3, [3, 2, 3]), (2, [3, 2, 0]), (1, [2, 2, 0])] {
        tree.limit(worker, left);
        let found = [[1, 2, 3], [1, 2, 4], [5, 6, 7]].map(|it| cached_of_one(&tree, &it));
        assert_eq!(found, expected, "{left} nodes");
    }
}

fn cached_of_one(tree: &BlockTree, prompt: &[u64]) -> usize {
    let mut cached = [0];
    tree.cached(&tree.way(prompt), &mut cached);
    cached[0]
}

#[test]
fn a_node_is_forgotten_with_those_above_it_that_nobody_used_since() {
    let mut tree = BlockTree::new(2);
    let one = tree.insert(WorkerId(0), &[1, 2, 3], Nanos(10)).expect("a node");
    tree.insert(WorkerId(1), &[1, 2, 4], Nanos(20));
    assert!(tree.is_used_since(&one, Nanos(9)) && !tree.is_used_since(&one, Nanos(10)));
    tree.expire(&one, Nanos(10));
    let cached = |tree: &BlockTree, prompt: &[u64]| {
        let mut cached = [0; 2];
        tree.cached(&tree.way(prompt), &mut cached);
        cached
    };
    assert_eq!(cached(&tree, &[1, 2, 3]), [2, 2], "what both have was used later");
    let other = *tree.way(&[1, 2, 4]).last().expect("a node");
    tree.expire(&other, Nanos(20));
    assert_eq!(cached(&tree, &[1, 2, 4]), [0, 0]);
}

#[test]
fn a_text_that_is_learned_is_nobodys_prompt() {
    let (mut tree, now) = (BlockTree::new(1), Nanos(5));
    tree.insert(WorkerId(0), &[1], now);
    let learned = tree.learn(WorkerId(0), &[2, 3], now).expect("it is new");
    assert_eq!(tree.share(&learned, now), 0.0);
    assert_eq!(tree.share(&tree.way(&[1])[0], now), 1.0);
}
