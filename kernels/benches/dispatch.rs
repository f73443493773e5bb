//! Cost of dispatching a job to the thread pool: empty jobs, and jobs of a few tasks of about a
//! microsecond each. The median of many runs.
//!
//! `cargo bench -p lapwing-kernels --bench dispatch -- [threads]`

use lapwing_kernels::cpu::Pool;
use std::hint::black_box;
use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn median(runs: usize, mut f: impl FnMut()) -> f64 {
    const JOBS: usize = 100;
    let mut seconds: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            (0..JOBS).for_each(|_| f());
            start.elapsed().as_secs_f64() / JOBS as f64
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[runs / 2]
}

/// A dependency chain of multiplications that takes about 4 · `steps` cycles.
fn work(steps: usize) {
    let x = (0..steps).fold(black_box(1.0f32), |x, _| x * 1.000_001);
    black_box(x);
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let threads = args.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let pool = Pool::new(threads);
    println!("{} threads", pool.threads());
    for tasks in [pool.threads(), 8] {
        let empty = median(2_000, || pool.run(tasks, &|i| _ = black_box(i)));
        println!("{tasks} empty tasks     {:8.0} ns", empty * 1e9);
    }
    for (tasks, steps) in [(8, 750), (8, 7_500)] {
        let alone = median(200, || (0..tasks).for_each(|_| work(steps)));
        let shared = median(200, || pool.run(tasks, &|_| work(steps)));
        let best = alone / pool.threads() as f64;
        println!(
            "{tasks} tasks of {:6.2} us {:8.0} ns more than {:.1} us",
            alone / tasks as f64 * 1e6,
            (shared - best) * 1e9,
            best * 1e6
        );
    }
}
