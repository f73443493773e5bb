//! This crate's own time for a stage on an OpenCL device: the time of a stage of one op less the time of
//! the same commands given to the driver directly, both waited for in the same way, in turns.
//!
//! `cargo bench -p lapwing-kernels --features opencl --bench opencl_stage`

use lapwing_kernels::device::{MemoryDomain, SlotPool};
use lapwing_kernels::kv::KvStore;
use lapwing_kernels::model::Model;
use lapwing_kernels::opencl::{OpenClDeviceParts, OpenClInfo, StageTrial, devices};
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let file = WeightFile::open(&path).expect("a weight file");
    let model = Model::from_weights(&file).expect("a model");
    let layout = model.config.kv_layout();
    let parts = OpenClDeviceParts {
        name: "gpu".to_owned(),
        device: info.clone(),
        domain: MemoryDomain::Device(0),
        graph: Arc::new(model.graph.with_kv(layout)),
        kv: Arc::new(KvStore::new(layout, 4).expect("memory")),
        slots: SlotPool::default(),
        programs: None,
    };
    let mut trial = StageTrial::new(parts, &file).expect("the device works");
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for run in 0..RUNS + 100 {
        let times = [
            time(|| trial.by_the_driver().expect("the device works")),
            time(|| trial.through_the_device().expect("the device works")),
        ];
        if run >= 100 {
            bare.push(times[0]);
            ours.push(times[1]);
        }
    }
    let mut more: Vec<f64> = ours.iter().zip(&bare).map(|(ours, bare)| ours - bare).collect();
    println!(
        "{} ({}): stage {:.2} us, driver alone {:.2} us, difference {:.2} us (medians of {RUNS})",
        info.name,
        info.platform,
        median(&mut ours),
        median(&mut bare),
        median(&mut more)
    );
}

fn main() {
    match devices() {
        Ok(devices) => devices.iter().for_each(device),
        Err(e) => println!("{e}"),
    }
}
