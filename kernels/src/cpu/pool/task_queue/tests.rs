use super::*;

fn divided(threads: usize, tasks: usize) -> Vec<TaskQueue> {
    let all: Vec<TaskQueue> = (0..threads).map(|_| TaskQueue::none()).collect();
    TaskQueue::divide(&all, tasks);
    all
}

#[test]
fn a_task_is_taken_twice_or_never() {
    for (threads, tasks) in [(1, 5), (1, 1), (2, 8), (3, 8), (3, 3), (4, 1000)] {
        for (greedy, most) in (0..threads + 1).flat_map(|g| [1, 3, 1000].map(|most| (g, most))) {
            let all = divided(threads, tasks);
            let mut taken = vec![0; tasks];
            let others = (0..threads).filter_map(|thread| TaskQueue::next(&all, thread, most));
            others.for_each(|claim| claim.tasks.for_each(|task| taken[task] += 1));
            while let Some(claim) = TaskQueue::next(&all, greedy, most) {
                assert!((1..=most).contains(&claim.tasks.len()), "{claim:?} of {most}");
                claim.tasks.for_each(|task| taken[task] += 1);
            }
            assert!(taken.iter().all(|times| *times == 1), "{threads} {tasks}: {taken:?}");
            assert!((0..threads).all(|thread| TaskQueue::next(&all, thread, most).is_none()));
        }
    }
}

#[test]
fn a_thread_jumps_among_its_tasks_or_takes_what_another_reads_next() {
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
fn the_last_claim_of_a_thread_is_as_large_as_its_first() {
    let all = divided(2, 48);
    let some = |thread| TaskQueue::next(&all, thread, 100).map(|claim| claim.tasks);
    let own: Vec<_> = (0..3).filter_map(|_| some(0)).collect();
    assert_eq!(own, [0..18, 18..23, 23..24]);
    assert_eq!(some(1), Some(24..42));
    // The other's, from its far end.
    assert_eq!([some(0), some(0), some(0)], [Some(43..48), Some(42..43), None]);
}
