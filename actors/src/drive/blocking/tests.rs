use std::collections::HashSet;
use std::pin::pin;
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().expect("a runtime")
}

#[test]
fn work_side_by_side_returns_both_results_and_passes_panics_on() {
    let (barrier, own) = (Barrier::new(2), thread::current().id());
    let wait = || {
        barrier.wait();
        thread::current().id()
    };
    let (aside, here) = side_by_side("aside", wait, wait);
    assert!(aside != own && here == own);
    let panics = || side_by_side("aside", || panic!("on purpose"), || ());
    let panic = catch_unwind(AssertUnwindSafe(panics)).expect_err("a panic");
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
}

#[test]
fn many_callers_share_a_few_threads() {
    let (pool, runtime) = (Arc::new(BlockingPool::new("few", 3)), runtime());
    let callers = (0..200).map(|number| {
        let pool = Arc::clone(&pool);
        runtime.spawn(async move { pool.spawn(move || (number, thread::current().id())).await })
    });
    let callers: Vec<_> = callers.collect();
    let mut threads = HashSet::new();
    for (number, caller) in callers.into_iter().enumerate() {
        let ended = runtime.block_on(caller).expect("no panic").expect("a result");
        assert_eq!(ended.0, number);
        threads.insert(ended.1);
    }
    assert!((1..=3).contains(&threads.len()), "{threads:?}");
    assert!((1..=3).contains(&pool.threads()));
}

#[test]
fn work_runs_at_once_on_all_threads() {
    let (pool, runtime) = (Arc::new(BlockingPool::new("all", 3)), runtime());
    let all = Arc::new(Barrier::new(3));
    for _ in 0..2 {
        let callers = [(); 3].map(|()| {
            let (pool, all) = (Arc::clone(&pool), Arc::clone(&all));
            runtime.spawn(async move { pool.spawn(move || all.wait()).await })
        });
        for caller in callers {
            runtime.block_on(caller).expect("no panic").expect("a result");
        }
    }
}

#[test]
fn a_panic_is_an_error_and_leaves_the_pool_usable() {
    let (pool, runtime) = (BlockingPool::new("loud", 1), runtime());
    let error = runtime.block_on(pool.spawn(|| panic!("on purpose"))).expect_err("a panic");
    assert!(error.to_string().contains("'loud' panicked"), "{error}");
    assert_eq!(runtime.block_on(pool.spawn(|| 7)).expect("a result"), 7);
    let error = runtime.block_on(spawn_blocking("own", || panic!("on purpose")));
    assert!(error.expect_err("a panic").to_string().contains("'own' panicked"));
}

#[test]
fn dropping_future_and_pool_stops_no_work() {
    let pool = BlockingPool::new("dropped", 1);
    let (hold, held) = flume::bounded::<()>(1);
    let (done, seen) = flume::bounded(2);
    for number in 0..2 {
        let (held, done) = (held.clone(), done.clone());
        let work = move || {
            let _ = held.recv();
            let _ = done.send(number);
        };
        let mut future = pin!(pool.spawn(work));
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending));
    }
    drop(pool);
    drop((hold, done));
    assert_eq!(seen.iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn started_work_is_waited_for_and_a_deep_recursion_fits_a_stack_of_its_own() {
    let pool = BlockingPool::new("started", 1);
    let pending = [1, 2].map(|number| pool.start(move || number * 10));
    assert_eq!(pending.map(|pending| pending.wait().expect("a result")), [10, 20]);
    let error = pool.start(|| panic!("on purpose")).wait().expect_err("a panic");
    assert!(error.to_string().contains("'started' panicked"), "{error}");
    fn depth(left: usize) -> usize {
        let mut frame = [left; 64];
        std::hint::black_box(&mut frame);
        if left == 0 { 0 } else { depth(left - 1) + frame[1].min(1) }
    }
    let deep = run_on_stack("deep", 256 << 20, || depth(100_000)).expect("a result");
    assert_eq!(deep, 100_000);
}
