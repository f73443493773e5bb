//! This crate's own time for a stage on an OpenCL device: the time of a stage of one op less the time of
//! the same op with explicit copies given to the driver directly, both waited for in the same way, in turns. The stage reads
//! and writes values by copies, and in place where the device can.
//!
//! Then the end of a run as its event tells it, and as a number in memory that the host reads in place does.
//!
//! `cargo bench -p lapwing-kernels --features opencl --bench opencl_stage`

use lapwing_kernels::device::{MemoryDomain, SlotPool, SlotSource};
use lapwing_kernels::kv::KvStore;
use lapwing_kernels::model::Model;
use lapwing_kernels::opencl::{
    FlagTrial, OpenClDeviceParts, OpenClInfo, SharedMemory, StageTrial, devices,
};
use lapwing_kernels::weights::WeightFile;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Pairs of runs.
const RUNS: usize = 20_000;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn time(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64() * 1e6
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn device(info: &OpenClInfo) {
    stage(info, None);
    match SharedMemory::open(info).expect("the device works") {
        Ok(shared) => {
            stage(info, Some(shared));
            flag(info);
        }
        Err(why) => println!("  not in place: {why}"),
    }
}

fn stage(info: &OpenClInfo, shared: Option<Arc<SharedMemory>>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let file = WeightFile::open(&path).expect("a weight file");
    let model = Model::from_weights(&file).expect("a model");
    let layout = model.config.kv_layout();
    let (how, domain) = match shared {
        Some(_) => ("in place", MemoryDomain::Host),
        None => ("copied", MemoryDomain::Device(0)),
    };
    let source = shared.clone().map(|shared| shared as Arc<dyn SlotSource>);
    let parts = OpenClDeviceParts {
        name: "gpu".to_owned(),
        device: info.clone(),
        domain,
        graph: Arc::new(model.graph.with_kv(layout.clone())),
        kv: Arc::new(KvStore::in_memory_of(layout, 4.into(), source.as_deref()).expect("memory")),
        slots: source.map_or_else(SlotPool::default, |source| SlotPool::mapped(4, 4096, source)),
        shared,
        persistent: true,
        programs: None,
    };
    let mut trial = StageTrial::new(parts, &file).expect("the device works");
    let [mut bare, mut ours] = in_turns(100, RUNS, || {
        [
            time(|| trial.by_the_driver().expect("the device works")),
            time(|| trial.through_the_device().expect("the device works")),
        ]
    });
    let mut more: Vec<f64> = ours.iter().zip(&bare).map(|(ours, bare)| ours - bare).collect();
    println!(
        "{} ({}), values {how}: stage {:.2} us, driver alone {:.2} us, difference {:.2} us (medians of {RUNS})",
        info.name,
        info.platform,
        median(&mut ours),
        median(&mut bare),
        median(&mut more)
    );
}

/// Reads of a state, or of a number, that are timed together.
const READS: usize = 100_000;

/// Pairs of runs whose end is polled for.
const POLLED: usize = 1000;

/// The times of that many pairs of runs, after some that warm up.
fn in_turns(warm_up: usize, pairs: usize, mut pair: impl FnMut() -> [f64; 2]) -> [Vec<f64>; 2] {
    for _ in 0..warm_up {
        pair();
    }
    let (first, second) = (0..pairs).map(|_| pair().into()).unzip();
    [first, second]
}

fn flag(info: &OpenClInfo) {
    let mut trial = FlagTrial::new(info).expect("the device works").expect("memory in place");
    let state = time(|| trial.read_state(READS).expect("the device works")) / READS as f64 * 1e3;
    let number = time(|| trial.read_flag(READS)) / READS as f64 * 1e3;
    println!("  a read of the event's state {state:.1} ns, of a number {number:.1} ns");
    let [mut event, mut flag] = in_turns(20, POLLED, || {
        [
            time(|| trial.by_event().expect("the device works")),
            time(|| trial.by_flag().expect("the device works")),
        ]
    });
    let p95 = |values: &[f64]| values[values.len() * 95 / 100];
    let (event_p50, flag_p50) = (median(&mut event), median(&mut flag));
    println!(
        "  a run of one kernel, polled: by the event {event_p50:.1} us (p95 {:.1}), by a number {flag_p50:.1} us \
         (p95 {:.1}) (medians of {POLLED})",
        p95(&event),
        p95(&flag)
    );
}

fn main() {
    match devices() {
        Ok(devices) => devices.iter().for_each(device),
        Err(e) => println!("{e}"),
    }
}
