//! Graphs of QNN compute what the CPU computes with activations in f32, as exactly as binary16 allows, for
//! every weight format, op, row count and share of the output channels, and what goes wrong is an error.

use std::path::PathBuf;

use lapwing_kernels::device::{BlockingDevice, DeviceError};
use lapwing_kernels::npu::{
    ActivationRanges, GraphSpec, NpuBackend, NpuDevice, Qnn, QnnError, QnnSettings, WeightForm,
    qnn_device,
};

use crate::npu::{Task, Tiny};
use crate::npu_libraries::{NpuAndCpu, check_kept, check_models, check_shares};

const ENOUGH: u64 = 1 << 30;

/// Largest difference, relative to the largest value of a row: each op rounds to the 11 bits of binary16,
/// and a graph has up to ten in a row.
const TOLERANCE: f32 = 5e-3;

/// Ends the test where QNN is not installed, and says so.
macro_rules! needs_qnn {
    () => {
        if let Err(error) = qnn_device() {
            // The variable states that the terms of Qualcomm are accepted, so that it can be installed.
            let wanted = std::env::var_os("LAPWING_TEST_QNN").is_some();
            assert!(!wanted, "{error}");
            // Written past the test harness, which hides what a passing test prints.
            let line = format!("SKIPPED a test of QNN: {error}\n");
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            return;
        }
    };
}
pub(crate) use needs_qnn;

fn qnn(tiny: &Tiny, weights: WeightForm) -> Qnn {
    open(tiny, &QnnSettings { weights, ..QnnSettings::default() }).expect("QNN")
}

fn open(tiny: &Tiny, settings: &QnnSettings) -> Result<Qnn, QnnError> {
    Qnn::open("npu", settings, &tiny.graph, &tiny.file, &ActivationRanges::default())
}

fn npu(tiny: &Tiny, budget: u64) -> NpuDevice {
    tiny.npu_over(Box::new(qnn(tiny, WeightForm::F16)), budget)
}

#[test]
fn every_architecture_and_format_computes_the_values_of_the_cpu_with_qnn() {
    needs_qnn!();
    let first: &[(usize, &[usize])] = &[(1, &[1]), (31, &[32]), (32, &[32]), (33, &[32, 1])];
    check_models(|tiny| npu(tiny, ENOUGH), first, TOLERANCE);
}

#[test]
fn shares_of_output_channels_are_those_of_the_cpu_with_qnn() {
    needs_qnn!();
    check_shares(|tiny| npu(tiny, ENOUGH), TOLERANCE);
}

/// The check of each graph compares with weights rounded in the same way; here the loss is bounded.
#[test]
fn weights_in_integers_are_checked_against_the_same_integers() {
    needs_qnn!();
    let tiny = Tiny::open("format-f16");
    for (form, tolerance) in [(WeightForm::Int8, 0.03), (WeightForm::Int4, 0.5)] {
        let npu = tiny.npu_over(Box::new(qnn(&tiny, form)), ENOUGH);
        let mut devices = NpuAndCpu::new(&tiny, npu);
        let nodes = tiny.gated();
        for nodes in [nodes.clone(), nodes.end..nodes.end + 1] {
            let task = Task::new(nodes, 33, &[64]);
            devices.check_near(&task, tolerance, form.name());
        }
    }
}

#[test]
fn graphs_of_qnn_keep_to_the_budget_and_none_is_left() {
    needs_qnn!();
    let tiny = Tiny::open("llama");
    let mut backend = qnn(&tiny, WeightForm::F16);
    let spec = |rows: usize| {
        let keys = Task::new(tiny.gated(), rows, &[rows]).keys();
        GraphSpec::new(&tiny.graph, &keys[0], "npu").expect("a graph")
    };
    let one = backend.prepare(&spec(1)).expect("a graph");
    let two = backend.prepare(&spec(8)).expect("a graph");
    assert!(two.bytes() > one.bytes() && one.bytes() == backend.estimate_bytes(&spec(1)));
    // A graph outlives the back end, which a device may drop first.
    drop(backend);
    drop((one, two));

    let npu = npu(&tiny, 1000);
    let mut preparer = npu.preparer().expect("a preparer");
    let error = preparer.prepare(&Task::new(tiny.gated(), 8, &[8]).keys(), &[], &mut ());
    assert!(matches!(error, Err(DeviceError::GraphTooLarge { .. })), "{error:?}");
}

#[test]
fn a_value_beyond_binary16_is_an_error_and_no_infinity() {
    needs_qnn!();
    let tiny = Tiny::open("llama");
    let mut backend = qnn(&tiny, WeightForm::F16);
    let keys = Task::new(tiny.gated(), 4, &[4]).keys();
    let spec = GraphSpec::new(&tiny.graph, &keys[0], "npu").expect("a graph");
    let mut graph = backend.prepare(&spec).expect("a graph");
    for value in [70_000.0, f32::NAN, 60_000.0] {
        graph.input(0).fill(value);
        let error = graph.run(&mut ()).expect_err("no result");
        let DeviceError::Failed { device, reason } = &error else { panic!("{error}") };
        assert!(device == "npu" && reason.contains("65504"), "{error}");
    }
    graph.input(0).fill(1.0);
    graph.run(&mut ()).expect("a result");
}

#[test]
fn a_processor_that_qnn_does_not_know_is_named() {
    needs_qnn!();
    let tiny = Tiny::open("llama");
    let settings = QnnSettings { soc: 9999, ..QnnSettings::default() };
    let error = open(&tiny, &settings).err().expect("an error");
    let QnnError::Refused { soc: 9999, arch: 75, code, reason } = &error else { panic!("{error}") };
    assert!(*code == 14001 && reason.contains("config"), "{error}");
    let info = qnn_device().expect("a device");
    assert!(info.version.starts_with("2.") && info.emulated == cfg!(target_arch = "x86_64"));
}

#[test]
fn a_library_that_is_missing_or_broken_is_named() {
    let tiny = Tiny::open("llama");
    let folder = tempfile::tempdir().expect("a folder");
    let failure = |library: PathBuf| {
        let settings = QnnSettings { library: Some(library), ..QnnSettings::default() };
        open(&tiny, &settings).err().expect("an error")
    };
    let error = failure(folder.path().to_owned());
    let QnnError::NoLibrary { searched } = &error else { panic!("{error}") };
    assert_eq!(*searched, folder.path().display().to_string());
    assert!(error.to_string().contains("LAPWING_QNN"), "{error}");

    let broken = folder.path().join("libQnnHtp.so");
    std::fs::write(&broken, "no library").expect("a file");
    let error = failure(folder.path().to_owned());
    let QnnError::Load { path, reason } = &error else { panic!("{error}") };
    let broken = broken.canonicalize().expect("a path");
    assert!(*path == broken && !reason.is_empty(), "{error}");
}

#[test]
fn graphs_of_qnn_are_kept_and_none_is_used_that_differs() {
    needs_qnn!();
    check_kept(|tiny| Box::new(qnn(tiny, WeightForm::F16)));
}
