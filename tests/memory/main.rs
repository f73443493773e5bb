//! Engines that are opened, used and closed again and again, and builds that are abandoned: the memory of
//! the process stays what the first ones left. A process of its own, because the test reads its memory.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing_kernels::cpu::{Cpu, Isa, KvRows};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvStore};

use lapwing::{Engine, EngineBuilder, Request, Shutdown};

/// Engines after which the memory is compared with that after as many more.
const CYCLES: usize = 25;

/// Bytes of a buffer that is larger than a layer's keys and values.
const BUFFER: usize = 24 << 20;

fn model() -> PathBuf {
    match std::env::var_os("LAPWING_TEST_MODEL") {
        Some(path) => path.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf"),
    }
}

fn builder() -> EngineBuilder {
    Engine::builder().model(model()).threads(2)
}

/// Resident memory in KiB that is not of files, and the number of threads.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    (field("RssAnon:"), field("Threads:"))
}

async fn open_use_and_close(cycle: usize) {
    let engine = builder().build().await.expect("an engine");
    let request = Request::text("ab").greedy().ignore_eos().max_tokens(4);
    let stream = engine.generate(request).await.expect("a stream");
    stream.into_text().await.expect("a text");
    if cycle.is_multiple_of(2) {
        engine.shutdown(Shutdown::Drain).await.expect("a shutdown");
    }
}

async fn abandon() {
    let build = builder().build();
    let ended = tokio::time::timeout(Duration::from_micros(300), build).await;
    drop(ended);
}

/// Waits until all threads of closed engines and abandoned builds have ended.
async fn settle(threads: u64) {
    for _ in 0..2000 {
        if memory().1 <= threads {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} threads are left of {threads}", memory().1);
}

/// A cache of keys and values like that of a small model: 8 layers of 16 MiB, of which one page of a layer
/// is written.
fn open_and_drop_a_kv_store(cpu: &Cpu) {
    // Once a larger buffer was freed, glibc would serve such layers from memory that was used before, and
    // would write zeros to it.
    drop(std::hint::black_box(vec![1u8; BUFFER]));
    let dtype = KvDtype::F16;
    let layout = KvLayout::uniform(8, KvHeads::new(4, 64), 32, dtype);
    let store = KvStore::new(layout, 512).expect("memory");
    let values = vec![1.0; 4 * 64];
    let rows = KvRows { pages: &[3], start_pos: 0, k: &values, v: &values };
    rows.write(cpu, &mut store.layer(0));
}

/// A single test, because tests of one process share its memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_engines_and_abandoned_builds_leave_no_memory() {
    let cpu = Cpu::new(1, Isa::best());
    let before = memory().0;
    for _ in 0..10 {
        open_and_drop_a_kv_store(&cpu);
    }
    // glibc keeps the buffer.
    let growth = memory().0.saturating_sub(before);
    assert!(
        growth < (BUFFER as u64 >> 10) + (8 << 10),
        "{growth} KiB of keys and values that were never written"
    );
    let threads = memory().1;
    let mut after = Vec::new();
    for _ in 0..3 {
        for cycle in 0..CYCLES {
            open_use_and_close(cycle).await;
        }
        for _ in 0..5 {
            abandon().await;
        }
        settle(threads).await;
        after.push(memory().0);
    }
    println!("KiB after each round: {after:?}");
    let growth = after[2].saturating_sub(after[1]);
    assert!(growth < 8 << 10, "{growth} KiB more after {CYCLES} engines: {after:?} KiB");
}
