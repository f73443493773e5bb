//! The thread pool: panics, nesting, sharing, and every part computed once.

use lapwing_kernels::cpu::{Grid, Pool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_panic_reaches_the_caller_and_the_pool_stays_usable() {
    for threads in [1, 2, 4] {
        let pool = Pool::new(threads);
        for round in 0..50 {
            let ran = AtomicUsize::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.run(20, &|i| {
                    assert_ne!(i, round % 20, "task {i} fails");
                    ran.fetch_add(1, Ordering::Relaxed);
                });
            }));
            let payload = result.expect_err("the panic was lost");
            let text = payload.downcast_ref::<String>().unwrap();
            assert!(text.contains("fails"), "{text}");
            assert!(ran.load(Ordering::Relaxed) < 20);
            let all = AtomicUsize::new(0);
            pool.run(100, &|i| {
                all.fetch_add(i + 1, Ordering::Relaxed);
            });
            assert_eq!(all.load(Ordering::Relaxed), 5050);
        }
        assert_eq!(pool.threads(), threads);
    }
}

#[test]
fn a_nested_run_does_not_deadlock() {
    let pool = Pool::new(3);
    let count = AtomicUsize::new(0);
    pool.run(8, &|_| {
        pool.run(8, &|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(count.load(Ordering::Relaxed), 64);
}

#[test]
fn two_callers_run_all_their_tasks() {
    let pool = Pool::new(3);
    let count = AtomicUsize::new(0);
    let caller = || {
        for _ in 0..2_000 {
            pool.run(3, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
    };
    std::thread::scope(|s| {
        s.spawn(caller);
        s.spawn(caller);
    });
    assert_eq!(count.load(Ordering::Relaxed), 12_000);
}

#[test]
fn chunks_and_blocks_cover_everything_once() {
    let pool = Pool::new(4);
    for len in [0, 1, 5, 64, 65] {
        for chunk in [0, 1, 7, 64, 100] {
            let mut data = vec![0usize; len];
            pool.chunks_mut(&mut data, chunk, |i, part| {
                for (j, x) in part.iter_mut().enumerate() {
                    *x += i * chunk.max(1) + j + 1;
                }
            });
            assert!(data.iter().enumerate().all(|(i, x)| *x == i + 1), "{len} by {chunk}");
        }
    }
    for (rows, row_len, cols) in [(1, 1, 1), (3, 7, 2), (5, 16, 16), (4, 9, 100), (0, 4, 2)] {
        let mut data = vec![0usize; rows * row_len];
        pool.columns_mut(&mut data, row_len, cols, |start, mut block| {
            for row in 0..block.rows() {
                for (j, x) in block.row_mut(row).iter_mut().enumerate() {
                    *x += row * row_len + start + j + 1;
                }
            }
        });
        assert!(data.iter().enumerate().all(|(i, x)| *x == i + 1), "{rows} × {row_len}");
    }
}

#[test]
fn overlapping_row_blocks_are_refused() {
    let pool = Pool::new(2);
    for blocks in [vec![0..2, 1..3], vec![2..3, 0..1], vec![3..4, 4..5]] {
        let mut data = [0u8; 12];
        let result = catch_unwind(AssertUnwindSafe(|| {
            let grid = Grid { row_len: 3, row_blocks: &blocks, col_chunk: 1 };
            pool.grid_mut(&mut data, &grid, |_, _, _| {});
        }));
        assert!(result.is_err(), "{blocks:?}");
    }
}
