//! Throttled devices of a live engine: their workers receive messages while a run is held back.

use std::thread;
use std::time::{Duration, Instant};

use lapwing_actors::drive::wait::Waits;
use lapwing_actors::message::Shutdown;
use lapwing_kernels::kv::KvPool;
use lapwing_plan::time::FixedRate;

use crate::oracle::PAGE_ROWS;
use crate::support::{Setup, prompt, recorder, request, throttled};

/// Waits until so many pages are in use.
#[expect(clippy::disallowed_methods, reason = "the test waits for the engine's threads")]
fn wait_for_pages(pool: &KvPool, wanted: usize) {
    let start = Instant::now();
    loop {
        let in_use = pool.capacity() - pool.free_pages();
        if in_use == wanted {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{in_use} pages, not {wanted}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_cancelled_chunk_leaves_while_the_run_before_it_is_held_back() {
    let hour = FixedRate { per_stage: Duration::from_secs(3600), per_row: Duration::ZERO };
    let mut setup = Setup { rates: vec![hour], chunk_rows: PAGE_ROWS, ..Setup::default() };
    setup.config.permits = 3;
    let (live, pool) = throttled(&setup, &recorder(), Waits::for_devices(1));
    let submit = |seed| {
        let request = request(&prompt(seed, PAGE_ROWS), 1);
        live.submit(live.admit().expect("room"), request).expect("an engine")
    };
    let _runs = submit(1);
    wait_for_pages(&pool, 1);
    let waits = submit(2);
    wait_for_pages(&pool, 2);
    drop(waits);
    let _third = submit(3);
    let _fourth = submit(4);
    // The chunk of the cancelled request is in the worker's inbox, and holds its page until the worker
    // receives the next chunk.
    wait_for_pages(&pool, 3);
    live.shutdown(Shutdown::Now);
    assert_eq!(pool.free_pages(), pool.capacity());
}
