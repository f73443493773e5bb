//! The pool under every interleaving of its threads, up to a bound on preemptions.

use super::*;

/// Runs jobs whose tasks may be claimed all at once.
fn every_task_runs_once(jobs: usize, tasks: usize, threads: usize, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let pool = Pool::new(threads);
        for _ in 0..jobs {
            let ran = [const { std::sync::atomic::AtomicUsize::new(0) }; 3];
            pool.run_claimed(tasks, tasks, &|claim| {
                for i in claim.tasks.clone() {
                    ran[i].fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
            });
            for r in &ran[..tasks] {
                assert_eq!(r.load(std::sync::atomic::Ordering::SeqCst), 1);
            }
        }
    });
}

#[test]
fn a_job_ends_before_its_borrow() {
    every_task_runs_once(1, 2, 2, 3);
}

#[test]
fn a_late_helper_does_not_touch_the_next_job() {
    every_task_runs_once(2, 2, 2, 3);
}

#[test]
fn two_helpers_park_and_wake() {
    every_task_runs_once(1, 2, 3, 2);
}

#[test]
fn every_task_of_a_shared_claim_runs_once() {
    every_task_runs_once(1, 3, 2, 3);
}
