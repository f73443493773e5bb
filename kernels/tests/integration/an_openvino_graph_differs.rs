//! Graphs that OpenVINO compiles compute what the CPU computes with activations in f32, for every weight
//! format, op and share of the output channels, and what goes wrong is an error.

use lapwing_kernels::device::{BlockingDevice, DeviceError};
use lapwing_kernels::npu::{
    NpuBackend, NpuDevice, OpenVino, OpenVinoError, OpenVinoSettings, openvino_devices,
};
use lapwing_kernels::requant::Requant;

use crate::an_npu_run_is_lost::{begin, queue, run};
use crate::npu::{Report, Task, Tiny};
use crate::npu_libraries::{NpuAndCpu, check_kept, check_models, check_shares};
use crate::openvino::needs_openvino;

const ENOUGH: u64 = 1 << 30;
/// Largest difference, relative to the largest value of a row: sums in f32 in another order.
const TOLERANCE: f32 = 1e-4;

fn openvino(tiny: &Tiny, device: &str) -> Result<OpenVino, OpenVinoError> {
    let settings = OpenVinoSettings { device: Some(device.to_owned()), threads: 1, cores: None };
    OpenVino::open("npu", &settings, &tiny.graph, &tiny.file)
}

fn npu(tiny: &Tiny, budget: u64) -> NpuDevice {
    tiny.npu_over(Box::new(openvino(tiny, "CPU").expect("OpenVINO")), budget)
}

#[test]
fn every_architecture_and_format_computes_the_values_of_the_cpu() {
    needs_openvino!();
    let first: &[(usize, &[usize])] = &[(1, &[1]), (3, &[4]), (33, &[32, 1])];
    check_models(|tiny| npu(tiny, ENOUGH), first, TOLERANCE);
}

#[test]
fn shares_of_output_channels_are_those_of_the_cpu() {
    needs_openvino!();
    check_shares(|tiny| npu(tiny, ENOUGH), TOLERANCE);
}

#[test]
fn requantised_weights_are_those_of_the_cpu() {
    needs_openvino!();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
    let format: Requant = "int4:64:min".parse().expect("a form");
    let tiny = Tiny::requantized(&folder.join("llama.gguf"), format);
    let task = Task::new(tiny.gated(), 5, &[8]);
    NpuAndCpu::new(&tiny, npu(&tiny, ENOUGH)).check_near(&task, TOLERANCE, "requantised");
}

#[test]
fn graphs_of_the_same_nodes_share_their_constants_and_keep_to_the_budget() {
    needs_openvino!();
    let tiny = Tiny::open("llama");
    let mut backend = openvino(&tiny, "CPU").expect("OpenVINO");
    let spec = |rows: usize| {
        let keys = Task::new(tiny.gated(), rows, &[rows]).keys();
        lapwing_kernels::npu::GraphSpec::new(&tiny.graph, &keys[0], "npu").expect("a graph")
    };
    let one = backend.prepare(&spec(1)).expect("a graph");
    let shared = backend.shared_bytes();
    let two = backend.prepare(&spec(8)).expect("a graph");
    assert!(shared > 0 && backend.shared_bytes() == shared);
    assert!(two.bytes() > one.bytes() && one.bytes() == backend.estimate_bytes(&spec(1)));
    drop((one, two));
    assert_eq!(backend.shared_bytes(), 0, "constants of graphs that are gone");

    let npu = npu(&tiny, 1000);
    let mut preparer = npu.preparer().expect("a preparer");
    let error = preparer.prepare(&Task::new(tiny.gated(), 8, &[8]).keys(), &[], &mut ());
    assert!(matches!(error, Err(DeviceError::GraphTooLarge { .. })), "{error:?}");
}

#[test]
fn a_device_that_is_not_there_is_named_with_those_that_are() {
    needs_openvino!();
    let tiny = Tiny::open("llama");
    let error = openvino(&tiny, "NPU.7").err().expect("an error");
    let OpenVinoError::NoDevice { wanted, found } = &error else { panic!("{error}") };
    assert!(wanted == "NPU.7" && found.contains("CPU"), "{error}");
    let listed = openvino_devices().expect("devices");
    assert!(listed.iter().any(|info| info.device == "CPU" && !info.processor.is_empty()));
}

#[test]
fn graphs_of_openvino_are_kept_and_none_is_used_that_differs() {
    needs_openvino!();
    check_kept(|tiny| Box::new(openvino(tiny, "CPU").expect("OpenVINO")));
}

#[test]
fn a_graph_that_runs_on_openvinos_threads_computes_the_same_bits() {
    needs_openvino!();
    let tiny = Tiny::open("llama");
    for graphs in [&[64][..], &[32, 1]] {
        let task = Task::new(tiny.gated(), 33, graphs);
        let mut blocking = npu(&tiny, ENOUGH);
        let mut preparer = blocking.preparer().expect("a preparer");
        preparer.prepare(&task.keys(), &[], &mut ()).expect("graphs");
        let mut wanted = Report::default();
        let want = tiny.run(&mut blocking, &task, &mut wanted).expect("values");
        let mut queue = queue(npu(&tiny, ENOUGH), &[&task]);
        for _ in 0..100 {
            let mut report = Report::default();
            let got = run(&tiny, &mut queue, &task, &mut report).expect("values");
            tiny.assert_same(&task, &got, &want, "on its threads");
            assert_eq!(report, wanted);
        }
    }
}

#[test]
fn a_queue_that_is_dropped_during_a_run_waits_for_it() {
    needs_openvino!();
    let tiny = Tiny::open("llama");
    let task = Task::new(tiny.gated(), 1024, &[1024]);
    for _ in 0..5 {
        let mut queue = queue(npu(&tiny, ENOUGH), &[&task]);
        begin(&tiny, &mut queue, &task);
        drop(queue);
    }
}
