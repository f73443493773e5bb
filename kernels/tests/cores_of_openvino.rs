//! Threads of OpenVINO run on the chosen cores. In a process of its own: the library gives idle threads of one
//! compiled model to the next one, whatever their cores.
#![cfg(all(target_os = "linux", feature = "openvino", not(loom)))]

use lapwing_kernels::cpu::CoreSet;
use lapwing_kernels::device::Prepare;
use lapwing_kernels::npu::{OpenVino, OpenVinoSettings};

use npu::{Report, Task, Tiny};
use openvino::needs_openvino;

#[path = "integration/npu.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "shared with the other tests")]
mod npu;
#[path = "integration/openvino.rs"]
mod openvino;
#[path = "integration/support.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod support;

/// Threads of this process that may run on one core only, which is `core`.
fn pinned(core: usize) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    // A thread may end meanwhile.
    let status = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    let own = format!("Cpus_allowed_list:\t{core}\n");
    status.filter(|status| status.contains(&own)).count()
}

/// The library's threads that compute a graph inherit the cores of the thread that compiles it.
#[test]
fn threads_of_openvino_are_pinned_to_the_chosen_cores() {
    needs_openvino!();
    let cores = CoreSet::available().expect("cores");
    let last = *cores.cores().last().expect("a core");
    let tiny = Tiny::open("llama");
    let task = Task { prepare: Prepare::OnTheSpot, ..Task::new(tiny.gated(), 33, &[64]) };
    let settings = OpenVinoSettings {
        device: Some("CPU".to_owned()),
        threads: 1,
        cores: Some(CoreSet::new([last]).expect("a core")),
    };
    let backend = OpenVino::open("npu", &settings, &tiny.graph, &tiny.file).expect("OpenVINO");
    assert!(backend.describe().ends_with(&format!("on cores {last}")), "{}", backend.describe());
    let mut npu = tiny.npu_over(Box::new(backend), 1 << 30);
    tiny.run(&mut npu, &task, &mut Report::default()).expect("values");
    assert!(pinned(last) > 0, "no thread has core {last} alone");
    assert!(CoreSet::available().expect("cores") == cores, "the calling thread is still pinned");
    drop(npu);
}
