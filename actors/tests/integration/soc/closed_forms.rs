//! Times without overlap and synchronisation, against formulas and published latencies.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::simulate::soc::{SocModel, SocOptions};
use lapwing_kernels::device::{Batch, DeviceKind};
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::model::shape::ModelShape;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part};
use lapwing_plan::soc::{Soc, SyncMode};
use lapwing_plan::time::{Job, TimeModel};

use super::{near, of, run, sd8gen3, short, zero_cost};

/// Sum over the kernels of a chunk of `rows` rows after `start` others, in ms, by the formulas of
/// docs/simulation.md without the models' code, with the system's numbers.
fn closed_form(soc: &Soc, graph: &Graph, rows: f64, start: f64) -> f64 {
    let of = |path: &str| soc.value(path).expect(path);
    let (bandwidth, element) = (of("gpu.bandwidth"), of("memory.element_bytes"));
    let mut nanos = 0.0;
    let mut last: Option<(usize, f64, f64)> = None;
    let kernel = |(_, n, k): (usize, f64, f64), m: f64| {
        let (w, flops) = (n * k, 2.0 * n * k * m);
        let small = if m > 1.0 { flops / of("gpu.small_rate") / 1e3 } else { 0.0 };
        let many = of("gpu.kernel") * 1e3 + of("gpu.weight_time") * w;
        (many + flops / of("gpu.rate") / 1e3).min(w / 2.0 / bandwidth + small)
    };
    for node in graph.nodes() {
        let m = |selected: bool| if selected { 1.0 } else { rows };
        let out = graph.value(node.output);
        let selected = out.rows == RowSet::Selected;
        let width = out.width as f64;
        if let Op::MatMul { weight, .. } = node.op {
            let k = graph.weights()[weight.0].cols as f64;
            let input = node.inputs[0].0;
            match &mut last {
                Some(group) if group.0 == input => group.1 += width,
                _ => last = Some((input, width, k)),
            }
            let next = graph.nodes().get(node.output.0 + 1);
            let goes_on = next.is_some_and(|next| {
                matches!(next.op, Op::MatMul { .. }) && next.inputs[0].0 == input
            });
            if !goes_on {
                nanos += kernel(last.take().expect("a kernel"), m(selected));
            }
            continue;
        }
        let inputs: f64 = node.inputs.iter().map(|v| graph.value(*v).width as f64).sum();
        nanos += match node.op {
            Op::Attention(_) => {
                let kv: f64 = node.inputs[1..].iter().map(|v| graph.value(*v).width as f64).sum();
                let keys = start + rows;
                (4.0 * rows * keys * width / 1000.0).max(2.0 * keys * kv / bandwidth)
            }
            Op::Embed { .. } => element * 2.0 * width * rows / bandwidth,
            _ => element * (inputs + width) * m(selected) / bandwidth,
        };
    }
    nanos / 1e6
}

#[test]
fn one_device_without_synchronisation_differs_from_the_closed_form() {
    let soc = zero_cost();
    for shape in ModelShape::all().iter().filter(|shape| shape.experts.is_none()) {
        let model = SocModel::of_shape(shape).expect("a model");
        for rows in [1, 2, 31, 64, 300] {
            let options = SocOptions { decode: 0, ..of(rows) };
            let found = run(&model, &soc, "gpu-only", &options).prefill_ms;
            let graph = &model.workload.graph;
            near(
                &format!("{} {rows}", shape.name),
                found,
                closed_form(&soc, graph, rows as f64, 0.0),
                1e-5,
            );
        }
    }
}

#[test]
fn decoding_on_one_device_differs_from_the_closed_form() {
    let soc = zero_cost();
    for shape in ModelShape::all().iter().filter(|shape| shape.experts.is_none()) {
        let model = SocModel::of_shape(shape).expect("a model");
        let (prompt, steps) = (300, 4);
        let options = SocOptions { decode: steps, ..of(prompt) };
        let found = run(&model, &soc, "gpu-only", &options).decode_ms.expect("steps");
        let step = |at: usize| closed_form(&soc, &model.workload.graph, 1.0, (prompt + at) as f64);
        let mean = (0..steps).map(step).sum::<f64>() / steps as f64;
        near(&format!("decode of {}", shape.name), found, mean, 1e-5);
    }
}

/// A kernel of a model, in isolation in a running queue.
struct Kernel {
    model: SocModel,
    first: usize,
    end: usize,
}

impl Kernel {
    /// The first consecutive matmuls with these roles.
    fn new(shape: &ModelShape, roles: &[&str]) -> Kernel {
        let model = short(shape);
        let nodes = model.workload.graph.nodes();
        let at = |role: &str| {
            let is = |n: &&lapwing_kernels::graph::Node| {
                matches!(n.op, Op::MatMul { .. }) && n.role == role
            };
            let node = nodes.iter().find(is).unwrap_or_else(|| panic!("{role}"));
            node.output.0
        };
        let first = nodes.iter().position(|n| n.output.0 == at(roles[0])).expect("a node");
        let end = first + roles.len();
        Kernel { model, first, end }
    }

    /// In µs.
    fn time(&self, soc: &Soc, kind: DeviceKind, rows: usize, order: OperandOrder) -> f64 {
        let times = soc.times(&[kind], &self.model.workload, SyncMode::Fast);
        let time: &Arc<dyn TimeModel> = &times[0];
        let mut batch = Batch::default();
        batch.push(&vec![0; rows], 0, Vec::new(), rows - 1..rows);
        let graphs = if kind == DeviceKind::Npu { vec![rows] } else { Vec::new() };
        let part = Part { graphs, order, ..Part::WHOLE };
        let (first, end) = (self.first, self.end);
        let job = Job { queued: true, ..Job::alone(first..end, &part, &batch) };
        let all: Duration = (first..end).map(|node| time.node_time(&job, node)).sum();
        all.as_secs_f64() * 1e6
    }
}

/// Latencies of HeteroInfer's Table 3 to which the numbers were fitted, in µs, within the errors of these pins. An isolated GPU kernel
/// includes one copy and the restart of its queue; an NPU kernel of one row includes 160 µs.
#[test]
fn a_pinned_latency_of_table_3_does_not_hold() {
    let (llama, soc) = (&ModelShape::all()[0], sd8gen3());
    let square = Kernel::new(llama, &["attn_output"]);
    let (up, down) =
        (Kernel::new(llama, &["ffn_gate", "ffn_up"]), Kernel::new(llama, &["ffn_down"]));
    let gpu = |k: &Kernel, rows| k.time(&soc, DeviceKind::Gpu, rows, OperandOrder::Straight);
    let npu = |k: &Kernel, rows| k.time(&soc, DeviceKind::Npu, rows, OperandOrder::Swapped);
    near("GPU [4096,4096] 128", gpu(&square, 128) + 475.0, 7306.0, 0.002);
    near("GPU [4096,4096] 256", gpu(&square, 256) + 475.0, 10_841.0, 0.002);
    near("GPU [4096,14336] 256", gpu(&down, 256) + 475.0, 35_231.0, 0.002);
    near("NPU [4096,4096] 128", npu(&square, 128), 912.0, 0.03);
    near("NPU [4096,4096] 256", npu(&square, 256), 1884.0, 0.03);
    near("NPU [4096,14336] 256", npu(&down, 256), 23_445.0, 0.002);
    near("NPU [4096,14336] 384", npu(&down, 384), 32_000.0, 0.002);
    near("NPU [4096,4096] 1", npu(&square, 1) + 160.0, 693.0, 0.03);
    near("NPU [28672,4096] 1", npu(&up, 1) + 160.0, 3886.0, 0.03);
    near("NPU [4096,14336] 1", npu(&down, 1) + 160.0, 6506.0, 0.03);
    // The GPU hides 16 rows behind the NPU's 256 (the choice for 257 to 272), but not 32.
    assert!(gpu(&square, 16) < npu(&square, 256) && gpu(&square, 32) > npu(&square, 256));
}

/// The NPU formula of docs/simulation.md, by hand.
#[test]
fn an_npu_kernel_ignores_its_shape_or_its_order() {
    let (llama, mut soc) = (&ModelShape::all()[0], sd8gen3());
    let square = Kernel::new(llama, &["attn_output"]);
    let down = Kernel::new(llama, &["ffn_down"]);
    // N/K = 1/14: below the floor.
    let flat = ModelShape { ffn_width: 14 * 4096, ..llama.clone() };
    let flat = Kernel::new(&flat, &["ffn_down"]);
    let weights = |inputs: f64| 4096.0 * inputs;
    let (swapped, straight) = (OperandOrder::Swapped, OperandOrder::Straight);
    let [rate, wide, fill, bandwidth] =
        ["npu.rate", "npu.wide_rate", "npu.wide_rows", "npu.bandwidth"]
            .map(|path| soc.value(path).expect(path));
    let npu = |soc: &Soc, k: &Kernel, rows, order| k.time(soc, DeviceKind::Npu, rows, order);
    // Equal to the nanosecond.
    let exact = |what: &str, found: f64, wanted: f64| near(what, found, wanted, 5e-6);
    for rows in [2usize, 31, 32, 33, 256, 1000] {
        let tiles = rows.next_multiple_of(32);
        let time = |k: f64, rows: f64, rate: f64| 2.0 * weights(k) * rows / rate * 1e-6;
        let m = tiles as f64;
        exact("r = 1", npu(&soc, &square, rows, swapped), time(4096.0, m, rate));
        let of = |k: f64, r: f64| time(k, m + fill, wide * r.max(1.0 / 6.0)).max(time(k, m, rate));
        let r: f64 = 4096.0 / 14_336.0;
        exact("r < 1", npu(&soc, &down, rows, swapped), of(14_336.0, r));
        exact("floor", npu(&soc, &flat, rows, swapped), of(14.0 * 4096.0, 1.0 / 14.0));
        exact("not swapped", npu(&soc, &square, rows, straight), of(4096.0, m / 4096.0));
    }
    let bytes = |k: f64| weights(k) / 2.0 * 1e-3;
    exact("one row", npu(&soc, &square, 1, swapped), bytes(4096.0) / bandwidth);
    let r = 4096.0 / 14_336.0;
    exact("one row, r < 1", npu(&soc, &down, 1, swapped), bytes(14_336.0) / (bandwidth * r));
    exact("one row, floor", npu(&soc, &flat, 1, swapped), bytes(14.0 * 4096.0) * 6.0 / bandwidth);
    soc.set("npu.wide_rate", 1000.0).expect("a number");
    let full = 2.0 * weights(14_336.0) * 256.0 / rate * 1e-6;
    exact("never faster than r = 1", npu(&soc, &down, 256, swapped), full);
    soc.set("npu.rate", 1000.0).expect("a number");
    exact("never faster than 10", npu(&soc, &square, 256, swapped), full / 3.5 * rate / 10.0);
}

/// Keys of a window and of the chunk's own rows, however long the context is.
#[test]
fn attention_with_a_window_costs_as_much_as_without() {
    let times = |window: bool| {
        let gemma = ModelShape {
            arch: if window { "gemma2" } else { "llama" },
            ..ModelShape::all()[0].clone()
        };
        let model = SocModel::of_shape(&ModelShape { layers: 1, ..gemma }).expect("a model");
        let nodes = model.workload.graph.nodes();
        let node = nodes.iter().position(|n| matches!(n.op, Op::Attention(_))).expect("attention");
        let time = sd8gen3().times(&[DeviceKind::Gpu], &model.workload, SyncMode::Fast);
        [(100, 0), (256, 4096), (1, 4096), (256, 100_000), (1, 100_000)].map(|(rows, start)| {
            let mut batch = Batch::default();
            batch.push(&vec![0; rows], start, Vec::new(), rows - 1..rows);
            let part = Part::WHOLE;
            let (first, end) = (node, node + 1);
            let job = Job { queued: true, ..Job::alone(first..end, &part, &batch) };
            time[0].node_time(&job, node).as_secs_f64() * 1e9
        })
    };
    let (windowed, full) = (times(true), times(false));
    assert_eq!((windowed[0], windowed[1]), (full[0], full[1]), "inside the window");
    let bandwidth = sd8gen3().value("gpu.bandwidth").expect("a number");
    near("one row at 100 000", windowed[4], 2.0 * 4097.0 * 2048.0 / bandwidth, 1e-4);
    near("256 rows at 100 000", windowed[3], 4.0 * 256.0 * 4352.0 * 4096.0 / 1000.0, 1e-4);
    near("without a window", full[4], 2.0 * 100_001.0 * 2048.0 / bandwidth, 1e-4);
}
