use super::*;

fn divided(threads: usize, tasks: usize) -> Vec<TaskQueue> {
    let all: Vec<TaskQueue> = (0..threads).map(|_| TaskQueue::none()).collect();
    TaskQueue::divide(&all, tasks);
    all
}

#[test]
fn every_task_is_claimed_once() {
    for (threads, tasks) in [(1, 5), (1, 1), (2, 8), (3, 8), (3, 3), (4, 1000)] {
        for (greedy, max_claim) in
            (0..threads + 1).flat_map(|g| [1, 3, 1000].map(|max_claim| (g, max_claim)))
        {
            let all = divided(threads, tasks);
            let mut taken = vec![0; tasks];
            let others = (0..threads).filter_map(|thread| TaskQueue::next(&all, thread, max_claim));
            others.for_each(|claim| claim.tasks.for_each(|task| taken[task] += 1));
            while let Some(claim) = TaskQueue::next(&all, greedy, max_claim) {
                assert!((1..=max_claim).contains(&claim.tasks.len()), "{claim:?} of {max_claim}");
                claim.tasks.for_each(|task| taken[task] += 1);
            }
            assert!(taken.iter().all(|times| *times == 1), "{threads} {tasks}: {taken:?}");
            assert!((0..threads).all(|thread| TaskQueue::next(&all, thread, max_claim).is_none()));
        }
    }
}

#[test]
fn a_thread_claims_in_order_and_steals_from_the_end() {
    let all = divided(2, 8);
    let one = |thread| TaskQueue::next(&all, thread, 1).map(|claim| (claim.tasks, claim.end));
    let order: Vec<_> = (0..4).filter_map(|_| one(1)).collect();
    assert_eq!(order, [(4..5, 8), (5..6, 8), (6..7, 8), (7..8, 8)]);
    assert_eq!(one(0), Some((0..1, 4)));
    assert_eq!(one(1), Some((3..4, 4)));
    TaskQueue::clear(&all);
    assert_eq!(one(0), None);
}

#[test]
fn claims_shrink_towards_the_end() {
    let all = divided(2, 48);
    let some = |thread| TaskQueue::next(&all, thread, 100).map(|claim| claim.tasks);
    let own: Vec<_> = (0..3).filter_map(|_| some(0)).collect();
    assert_eq!(own, [0..18, 18..23, 23..24]);
    assert_eq!(some(1), Some(24..42));
    // Stolen from the end of the other thread's range.
    assert_eq!([some(0), some(0), some(0)], [Some(43..48), Some(42..43), None]);
}
