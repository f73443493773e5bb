//! Policies that order by cached prefixes: LPM, DFS-weight and Preble.

use super::*;

fn text(parts: &[(u32, usize)]) -> Vec<u32> {
    parts.iter().flat_map(|(token, count)| std::iter::repeat_n(*token, *count)).collect()
}

#[test]
fn the_longest_match_goes_first_and_a_shared_beginning_is_computed_once() {
    let mut requests = vec![asked("", 60, 1); 5];
    requests[1].matched = 40;
    requests[2].matched = 50;
    requests[0].prompt = text(&[(1, 60)]);
    requests[3].prompt = text(&[(2, 40), (3, 20)]);
    requests[4].prompt = text(&[(2, 40), (4, 20)]);
    assert_eq!(order(&mut Lpm::default(), &requests, Nanos(0)), [2, 1, 0, 3, 4]);
    // While the first one waits, the other one goes after all others.
    let mut lpm = Lpm::default();
    let all: Vec<_> = [4, 0, 3].iter().map(|at| candidate(&requests, *at)).collect();
    lpm.survey(&all, &requests, Nanos(0));
    let rank = |at| lpm.rank(&candidate(&requests, at), &requests, Nanos(0));
    assert!(rank(4) > rank(0) && rank(3) == rank(0));
    // Above the limit, in order of arrival.
    let mut few = Lpm::new(32, 4);
    let now: Vec<_> = (0..5).map(|at| candidate(&requests, at)).collect();
    few.survey(&now, &requests, Nanos(0));
    assert!(
        (0..5).all(|at| few.rank(&candidate(&requests, at), &requests, Nanos(0)) == Rank::by(0.0))
    );
}

#[test]
fn a_depth_first_search_takes_the_fullest_branch_first() {
    let mut requests = vec![asked("", 0, 1); 7];
    let prompts: [&[(u32, usize)]; 7] = [
        &[(1, 4)],                 // ends at the node that 1, 2 and 3 pass
        &[(1, 4), (2, 4)],         // a branch of its own
        &[(1, 4), (3, 4)],         // the same branch as 3
        &[(1, 4), (3, 4), (5, 2)], // below it
        &[(9, 6)],                 // another root, with 5
        &[(9, 6), (8, 1)],
        &[(7, 3)], // alone
    ];
    for (request, prompt) in requests.iter_mut().zip(prompts) {
        request.prompt = text(prompt);
        request.matched = request.prompt.len();
    }
    let candidates: Vec<_> = (0..7).map(|at| candidate(&requests, at)).collect();
    let mut dfs = DfsWeight::default();
    dfs.survey(&candidates, &requests, Nanos(0));
    let mut found: Vec<usize> = (0..7).collect();
    found.sort_by_key(|at| dfs.rank(&candidates[*at], &requests, Nanos(0)));
    assert_eq!(found, [3, 2, 1, 0, 5, 4, 6]);
}

/// The order of a depth-first search through requests whose first `depth` cached tokens are equal, by its definition.
fn searched(requests: &[Asked], mut among: Vec<usize>, depth: usize) -> Vec<usize> {
    let next = |at: &usize| requests[*at].prompt[..requests[*at].matched].get(depth).copied();
    among.sort_unstable();
    let mut branches: Vec<Vec<usize>> = Vec::new();
    let mut here = Vec::new();
    for at in among {
        let branch = branches.iter_mut().find(|branch| next(&branch[0]) == next(&at));
        match (next(&at), branch) {
            (None, _) => here.push(at),
            (Some(_), Some(branch)) => branch.push(at),
            (Some(_), None) => branches.push(vec![at]),
        }
    }
    branches.sort_by_key(|branch| (std::cmp::Reverse(branch.len()), branch[0]));
    let below = branches.into_iter().flat_map(|branch| searched(requests, branch, depth + 1));
    below.chain(here).collect()
}

#[test]
fn a_queue_that_changes_is_ordered_as_a_new_one() {
    let mut random = 1_u64;
    let mut below = |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (random >> 33) as usize % limit
    };
    let mut requests = Vec::new();
    for _ in 0..60 {
        let mut request = asked("", 0, 1);
        request.prompt = (0..below(9)).map(|_| below(2) as u32).collect();
        request.matched = below(request.prompt.len() + 1);
        requests.push(request);
    }
    let mut dfs = DfsWeight::default();
    let mut waiting: Vec<usize> = (0..20).collect();
    for step in 0..400 {
        let left = waiting.len().saturating_sub(1 + below(4));
        waiting.truncate(if step % 50 == 49 { 0 } else { left });
        for _ in 0..1 + below(5) {
            let at = below(requests.len());
            if !waiting.contains(&at) {
                waiting.insert(below(waiting.len() + 1), at);
            }
        }
        let changed = below(requests.len());
        requests[changed].matched = below(requests[changed].prompt.len() + 1);
        let candidates: Vec<_> = waiting.iter().map(|at| candidate(&requests, *at)).collect();
        dfs.survey(&candidates, &requests, Nanos(0));
        let mut found: Vec<usize> = waiting.clone();
        found.sort_by_key(|at| dfs.rank(&candidate(&requests, *at), &requests, Nanos(0)));
        assert_eq!(found, searched(&requests, waiting.clone(), 0), "step {step}");
    }
}

#[test]
fn every_group_has_its_turn() {
    // 3 requests with 95 % hits, 4 without: quotas of 2 · (group + 1) of 2 groups.
    let mut requests = vec![asked("", 100, 1); 12];
    requests.iter_mut().take(8).for_each(|request| request.matched = 95);
    let mut preble = Preble::new(2, 2);
    let order = order(&mut preble, &requests, Nanos(0));
    assert_eq!(order, [0, 1, 2, 3, 8, 9, 4, 5, 6, 7, 10, 11]);
}
