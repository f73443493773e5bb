//! The NPU computes the same bits as the CPU, however rows and output channels are divided and padded.

use lapwing_kernels::device::{BlockingDevice, DeviceError, Prepare};
use lapwing_kernels::graph::RowSet;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{Part, Share};

use crate::npu::{ORDERS, Report, SHARES, Task, Tiny};
use crate::support::is_emulated;

const ENOUGH: u64 = 1 << 30;

/// Row counts, and graph sizes that hold them.
const ROWS: [(usize, &[usize]); 13] = [
    (1, &[1]),
    (3, &[4]),
    (8, &[8]),
    (1, &[32]),
    (31, &[32]),
    (32, &[32]),
    (33, &[64]),
    (33, &[32, 32]),
    (44, &[32, 32]),
    (300, &[512]),
    (300, &[256, 64]),
    (300, &[32, 256, 32]),
    (44, &[64, 512]),
];

fn prepared(tiny: &Tiny, task: &Task) -> lapwing_kernels::npu::NpuDevice {
    let npu = tiny.npu(ENOUGH);
    let mut preparer = npu.preparer().expect("a preparer");
    preparer.prepare(&task.keys(), &[], &mut ()).expect("graphs");
    npu
}

#[test]
fn padded_graphs_compute_the_same_bits_as_the_cpu() {
    let names = ["llama", "gemma2", "format-q4_k", "qwen3", "granite", "olmo2"];
    for name in &names[..if is_emulated() { 3 } else { 6 }] {
        let tiny = Tiny::open(name);
        let (mut cpu, mut npu) = (tiny.cpu(), tiny.npu(ENOUGH));
        let mut preparer = npu.preparer().expect("a preparer");
        for nodes in tiny.runs(&npu) {
            for (rows, graphs) in ROWS {
                let task = Task::new(nodes.clone(), rows, graphs);
                let what = format!("{name}, nodes {nodes:?}, {rows} rows in {graphs:?}");
                preparer.prepare(&task.keys(), &[], &mut ()).expect(&what);
                let mut report = Report::default();
                let got = tiny.run(&mut npu, &task, &mut report).expect(&what);
                let whole = Task { part: Part::WHOLE, ..task.clone() };
                let want = tiny.run(&mut cpu, &whole, &mut ()).expect(&what);
                tiny.assert_same(&task, &got, &want, &what);
                assert_eq!(report.nodes, nodes.clone().collect::<Vec<_>>(), "{what}");
                assert!(report.prepared.is_empty() && report.converted > 0, "{what}");
            }
        }
    }
}

#[test]
fn shares_of_output_channels_in_either_order_are_the_same_bits_as_on_the_cpu() {
    let names = ["gemma3", "format-q4_0", "llama", "qwen2"];
    for name in &names[..if is_emulated() { 2 } else { 4 }] {
        let tiny = Tiny::open(name);
        let nodes = tiny.gated();
        let is_matmul = |op: &Op| matches!(op, Op::MatMul { .. });
        let down = nodes.end..nodes.end + 1;
        assert!(is_matmul(&tiny.graph.nodes()[down.start].op));
        let (mut cpu, mut npu) = (tiny.cpu(), tiny.npu(ENOUGH));
        let mut preparer = npu.preparer().expect("a preparer");
        for nodes in [nodes, down] {
            for (share, order) in SHARES.iter().flat_map(|s| ORDERS.map(|order| (*s, order))) {
                for (rows, graphs) in ROWS {
                    let mut task = Task::new(nodes.clone(), rows, graphs);
                    task.part.features = share;
                    task.part.order = order;
                    let what = format!("{name}, {task:?}");
                    preparer.prepare(&task.keys(), &[], &mut ()).expect(&what);
                    let got = tiny.run(&mut npu, &task, &mut ()).expect(&what);
                    let want = tiny.run(&mut cpu, &task, &mut ()).expect(&what);
                    tiny.assert_same(&task, &got, &want, &what);
                }
            }
        }
    }
}

#[test]
fn a_sequence_cut_returns_only_its_own_rows() {
    let tiny = Tiny::open("llama");
    let nodes = tiny.gated();
    for rows in [0..256, 256..300, 7..40, 299..300, 40..40] {
        let mut task = Task::new(nodes.clone(), 300, &[256, 32]);
        task.part.rows = Some(rows.clone());
        let mut npu = prepared(&tiny, &task);
        let got = tiny.run(&mut npu, &task, &mut ()).expect("a run");
        let want = tiny.run(&mut tiny.cpu(), &task, &mut ()).expect("a run");
        tiny.assert_same(&task, &got, &want, &format!("{rows:?}"));
        let written = got.get(tiny.graph.writes(nodes.clone())[0]).expect("a value");
        assert_eq!(written.host().expect("on the host").len(), rows.len() * written.width);
    }
}

#[test]
fn only_selected_rows_are_computed_after_the_select_node() {
    let tiny = Tiny::open("gemma2");
    let nodes = tiny.graph.nodes();
    let first = nodes.iter().rposition(|n| matches!(n.op, Op::SelectRows)).expect("one") + 1;
    assert_eq!(tiny.graph.value(nodes[first].output).rows, RowSet::Selected);
    for selected in [0..0, 5..6, 0..44] {
        let mut task = Task::new(first..nodes.len(), 44, &[32, 32]);
        task.selected = selected.clone();
        let mut npu = prepared(&tiny, &task);
        let mut report = Report::default();
        let got = tiny.run(&mut npu, &task, &mut report).expect("a run");
        let want = tiny.run(&mut tiny.cpu(), &task, &mut ()).expect("a run");
        tiny.assert_same(&task, &got, &want, &format!("{selected:?}"));
        assert_eq!(report.nodes, task.nodes.clone().collect::<Vec<_>>());
        // Each graph runs once; a graph without rows does not run.
        assert_eq!(npu.cache().stats().runs, selected.len().div_ceil(32) as u64);
    }
}

#[test]
fn results_do_not_depend_on_earlier_contents_of_the_padding() {
    let tiny = Tiny::open("llama");
    let nodes = tiny.gated();
    let many = Task::new(nodes.clone(), 64, &[64]);
    let few = Task::new(nodes.clone(), 3, &[64]);
    let mut npu = prepared(&tiny, &many);
    tiny.run(&mut npu, &many, &mut ()).expect("a run");
    let got = tiny.run(&mut npu, &few, &mut ()).expect("a run");
    let want = tiny.run(&mut tiny.cpu(), &few, &mut ()).expect("a run");
    tiny.assert_same(&few, &got, &want, "3 rows after 64");
}

#[test]
fn a_missing_graph_is_prepared_on_the_spot_or_is_an_error() {
    let tiny = Tiny::open("llama");
    let mut npu = tiny.npu(ENOUGH);
    let mut task = Task::new(tiny.gated(), 40, &[32, 32]);
    let error = tiny.run(&mut npu, &task, &mut ()).expect_err("no graph");
    assert!(matches!(error, DeviceError::NotPrepared { rows: 32, .. }), "{error}");
    task.prepare = Prepare::OnTheSpot;
    let mut report = Report::default();
    tiny.run(&mut npu, &task, &mut report).expect("a run");
    assert_eq!(report.prepared, [32], "the graph is prepared once and runs twice");
    assert_eq!(npu.cache().stats().runs, 2);
    let mut report = Report::default();
    tiny.run(&mut npu, &task, &mut report).expect("a run");
    assert!(report.prepared.is_empty());
}

#[test]
fn work_that_no_static_graph_can_do_is_refused() {
    let tiny = Tiny::open("llama");
    let npu = tiny.npu(ENOUGH);
    let mut preparer = npu.preparer().expect("a preparer");
    let gated = tiny.gated();
    let attention = tiny.graph.nodes().iter().position(|n| matches!(n.op, Op::Attention(_)));
    let attention = attention.expect("one");
    let end = tiny.graph.nodes().len();
    let mut cases = vec![
        Task::new(attention..attention + 1, 32, &[32]),
        Task::new(0..1, 32, &[32]),
        Task::new(5..5, 32, &[32]),
        Task::new(end - 1..end + 1, 32, &[32]),
        Task::new(gated.clone(), 32, &[0]),
        Task::new(gated.clone(), 32, &[33]),
        Task::new(gated.start..gated.end + 1, 32, &[32]),
        Task::new(gated.clone(), 32, &[32]),
    ];
    cases[6].part.features = Share { from: 0, to: 1, of: 2 };
    cases[7].part.features = Share { from: 2, to: 1, of: 2 };
    for task in cases {
        let error = preparer.prepare(&task.keys(), &[], &mut ()).expect_err("no such graph");
        assert!(matches!(error, DeviceError::Unsupported { .. }), "{task:?}: {error}");
    }
    // So are more rows than the graphs hold, and rows that do not exist.
    let mut npu = npu;
    let mut few = Task::new(gated, 65, &[32, 32]);
    preparer.prepare(&few.keys(), &[], &mut ()).expect("graphs");
    let error = tiny.run(&mut npu, &few, &mut ()).expect_err("too few graphs");
    assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
    few.part.rows = Some(60..70);
    let error = tiny.run(&mut npu, &few, &mut ()).expect_err("too few rows");
    assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
}

#[test]
fn a_missing_or_too_short_input_is_an_error_that_names_it() {
    let tiny = Tiny::open("llama");
    let task = Task::new(tiny.gated(), 32, &[32]);
    let mut npu = prepared(&tiny, &task);
    let mut short = task.clone();
    short.rows = 20;
    for inputs in [Default::default(), tiny.inputs(&short)] {
        let mut batch = lapwing_kernels::device::Batch::default();
        batch.push(&[0; 32], 0, Vec::new(), 0..0);
        let mut outputs = Default::default();
        let work = lapwing_kernels::device::StageRun {
            nodes: task.nodes.clone(),
            part: &task.part,
            prepare: Prepare::Ahead,
            batch: &batch,
            inputs: &inputs,
            writes: &tiny.graph.writes(task.nodes.clone()),
            outputs: &mut outputs,
            observer: &mut (),
        };
        let error = npu.run(work).expect_err("no values");
        assert!(matches!(error, DeviceError::MissingValue { .. }), "{error}");
    }
}
