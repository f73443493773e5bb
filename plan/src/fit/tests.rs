//! Fits of devices whose time follows a known law.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::Batch;
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part, Share};

use super::*;
use crate::array::SystolicArray;
use crate::cost::CostModel;
use crate::device::DeviceId;
use crate::profile::{DeviceProfile, Machine, Profile, Sample, Spread, VERSION};
use crate::shape::OpShape;
use crate::time::{Crossing, Job};

/// A graph of matmuls of several shapes [n, k], each with an input of its own.
fn matmuls(shapes: &[(usize, usize)]) -> Arc<Graph> {
    let mut g = Graph::default();
    for (n, k) in shapes {
        let mut weight = |rows, cols| {
            g.add_weight(WeightSpec { name: "w".into(), rows, cols, dtype: DType::Q8_0 })
        };
        let (table, w) = (weight(8, *k), weight(*n, *k));
        let node = |op, width| NewNode { op, inputs: &[], width, layer: Some(0), role: "test" };
        let x = g.push(node(Op::Embed { table, scale: 1.0 }, *k));
        let op = node(Op::MatMul { weight: w, bias: None }, *n);
        g.push(NewNode { inputs: &[x], ..op });
    }
    Arc::new(g)
}

/// The profile of a device that takes `law(n, k, m)` nanoseconds for each matmul of the graph.
fn profile(graph: &Graph, rows: &[usize], law: impl Fn(usize, usize, usize) -> f64) -> Profile {
    let mut samples = Vec::new();
    for (node, op) in graph.nodes().iter().enumerate() {
        if !matches!(op.op, Op::MatMul { .. }) {
            continue;
        }
        let shape = OpShape::of(graph, node, &Part::WHOLE);
        for m in rows {
            let ns = law(shape.n, shape.k, *m) as u64;
            let time = Spread { median_ns: ns, min_ns: ns, max_ns: ns, runs: 3 };
            samples.push(Sample { shape: shape.clone(), m: *m, context: 0, time });
        }
    }
    let device = DeviceProfile {
        name: "one".into(),
        kind: "gpu".into(),
        description: String::new(),
        submit_idle_ns: 5000,
        submit_queued_ns: 1000,
        crossing_ns: 300,
        convert_ns_per_byte: 0.0,
        prepares: Vec::new(),
        asked: samples.len(),
        samples,
    };
    let machine = Machine { cpu: "x".into(), cores: 1, isa: "y".into(), os: "z".into() };
    Profile {
        version: VERSION,
        program: "1".into(),
        machine,
        model: "m".into(),
        chunk_rows: 512,
        devices: vec![device],
        sync: Spread { median_ns: 700, min_ns: 1, max_ns: 900, runs: 3 },
        copy_bytes_per_second: 1e9,
    }
}

/// Predicted nanoseconds of a node, without submission.
fn predicted(fitted: &Fitted, node: usize, rows: usize, part: &Part) -> f64 {
    let mut batch = Batch::default();
    batch.push(&vec![0; rows], 0, vec![], rows - 1..rows);
    let job = Job::alone(node..node + 1, part, &batch);
    (fitted.job_time(DeviceId(0), &job) - Duration::from_micros(5)).as_nanos() as f64
}

const SHAPES: [(usize, usize); 6] =
    [(576, 576), (192, 576), (1536, 576), (576, 1536), (2048, 2048), (320, 640)];

fn median(mut errors: Vec<f64>) -> f64 {
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}

/// Measured row counts: some at the end of a step, some inside, and many steps without any.
const STEP_ROWS: [usize; 15] =
    [1, 16, 32, 50, 64, 100, 128, 180, 256, 300, 384, 450, 512, 700, 1024];

/// Median error at unmeasured row counts.
fn unseen_error(fitted: &Fitted, law: impl Fn(usize, usize, usize) -> f64) -> f64 {
    let mut errors = Vec::new();
    for (at, (n, k)) in SHAPES.into_iter().enumerate() {
        for m in [20, 33, 60, 70, 96, 111, 150, 200, 270, 333, 400, 480, 600, 800, 999] {
            let time = predicted(fitted, 2 * at + 1, m, &Part::WHOLE);
            errors.push((time / law(n, k, m) - 1.0).abs());
        }
    }
    median(errors)
}

#[test]
fn steps_are_predicted_at_unmeasured_rows() {
    let graph = matmuls(&SHAPES);
    let step = |len: usize| len.next_multiple_of(32) as f64;
    let law = |n: usize, k: usize, m: usize| step(n) * step(k) * step(m) / 20.0;
    let fitted = Fitted::new(&profile(&graph, &STEP_ROWS, law), Arc::clone(&graph));
    let fitted = fitted.expect("a fit");
    assert_eq!(fitted.devices()[0].model, "tree");
    let error = unseen_error(&fitted, law);
    assert!(error < 0.01, "{error}");
}

#[test]
fn an_array_is_predicted_at_unmeasured_rows() {
    let graph = matmuls(&SHAPES);
    let array = SystolicArray::default();
    for order in [OperandOrder::Straight, OperandOrder::Swapped] {
        // A thousandth of the rate, so that whole nanoseconds are precise enough.
        let law =
            |n: usize, k: usize, m: usize| array.matmul_time([m, k, n], order).as_secs_f64() * 1e12;
        let fitted = Fitted::new(&profile(&graph, &STEP_ROWS, law), Arc::clone(&graph));
        let error = unseen_error(&fitted.expect("a fit"), law);
        assert!(error < 0.1, "{order:?}: {error}");
    }
}

#[test]
fn a_smooth_device_is_fitted_and_measured_points_stay_exact() {
    let graph = matmuls(&SHAPES);
    // Memory-bound for few rows, compute-bound for many.
    let law = |n: usize, k: usize, m: usize| {
        let (weights, flops) = ((n * k) as f64, (2 * n * k * m) as f64);
        (weights / 8.0).max(flops / 60.0) + 2000.0
    };
    let rows = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
    let fitted = Fitted::new(&profile(&graph, &rows, law), Arc::clone(&graph)).expect("a fit");
    assert_eq!(fitted.devices()[0].model, "fit");
    for (at, (n, k)) in SHAPES.into_iter().enumerate() {
        for m in rows {
            let time = predicted(&fitted, 2 * at + 1, m, &Part::WHOLE);
            assert!((time - law(n, k, m)).abs() <= 1.0, "{n} {k} {m}: {time}");
        }
        let errors = [3, 12, 40, 100, 200, 300, 400];
        let errors = errors
            .map(|m| (predicted(&fitted, 2 * at + 1, m, &Part::WHOLE) / law(n, k, m) - 1.0).abs());
        assert!(median(errors.to_vec()) < 0.05, "{n} {k}: {errors:?}");
    }
}

#[test]
fn a_share_of_the_channels_takes_less_and_no_op_is_free() {
    let graph = matmuls(&SHAPES);
    let law = |n: usize, k: usize, m: usize| (n * k * m) as f64 / 30.0 + 1000.0;
    let fitted = Fitted::new(&profile(&graph, &[1, 32, 128], law), Arc::clone(&graph));
    let fitted = fitted.expect("a fit");
    let time = |to| {
        let part = Part { features: Share { from: 0, to, of: 8 }, ..Part::WHOLE };
        predicted(&fitted, 9, 128, &part)
    };
    let times: Vec<f64> = (1..=8).map(time).collect();
    assert!(times.is_sorted() && times[0] > 0.0, "{times:?}");
    assert!((times[3] / times[7] - 0.5).abs() < 0.05, "{times:?}");
    // Embedding is unmeasured: its time is estimated from other ops, and the source says so.
    assert!(predicted(&fitted, 0, 64, &Part::WHOLE) > 0.0);
    assert_eq!(fitted.devices()[0].unmeasured, ["embed"]);
    assert!(fitted.source().contains("no time of embed on one"), "{}", fitted.source());
}

#[test]
fn the_stated_error_shows_the_noise() {
    let graph = matmuls(&SHAPES);
    let noise = |n: usize, m: usize| {
        if (n / 64 + m.ilog2() as usize).is_multiple_of(2) { 1.3 } else { 0.8 }
    };
    let law = |n: usize, k: usize, m: usize| (n * k * m) as f64 / 30.0 * noise(n, m) + 1000.0;
    let rows = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
    let fitted = Fitted::new(&profile(&graph, &rows, law), Arc::clone(&graph)).expect("a fit");
    let errors = fitted.errors();
    assert!((0.15..0.6).contains(&errors.median), "{errors}");
    assert!(fitted.source().contains("error median"), "{}", fitted.source());
}

#[test]
fn fixed_times_are_those_of_the_profile() {
    let graph = matmuls(&SHAPES[..1]);
    let fitted = Fitted::new(&profile(&graph, &[1], |_, _, _| 100.0), Arc::clone(&graph));
    let fitted = fitted.expect("a fit");
    let (part, batch) = (Part::WHOLE, Batch::default());
    let submit = |crossed, queued| {
        let job = Job { crossed, queued, ..Job::alone(0..0, &part, &batch) };
        fitted.job_time(DeviceId(0), &job).as_nanos()
    };
    assert_eq!(
        [submit(false, false), submit(false, true), submit(true, false)],
        [5000, 1000, 5300]
    );
    let sync = |from, to| fitted.sync_time(Crossing { from: DeviceId(from), to: DeviceId(to) });
    assert_eq!((sync(0, 0).as_nanos(), sync(0, 1).as_nanos()), (0, 700));
    assert_eq!(fitted.copy_time(1000).as_nanos(), 1000);
}

#[test]
fn a_width_off_the_law_shows_only_in_the_error_of_left_out_widths() {
    // Time is linear in the rows at each width, but one inner width is twice as slow as its neighbours
    // suggest.
    let graph = matmuls(&[(64, 576), (128, 576), (192, 576), (256, 576)]);
    let bent = |bend: f64| {
        let law = move |n: usize, k: usize, m: usize| {
            let factor = if n == 128 { bend } else { 1.0 };
            (n * k * m) as f64 * factor + 1000.0
        };
        let rows = [1, 2, 4, 8, 16, 32, 64, 128];
        Fitted::new(&profile(&graph, &rows, law), Arc::clone(&graph)).expect("a fit")
    };
    let (straight, bent) = (bent(1.0), bent(2.0));
    assert_eq!(straight.width_errors().points, 16);
    assert!(straight.width_errors().p90 < 0.01, "{}", straight.width_errors());
    assert!(bent.errors().median < 0.01, "{}", bent.errors());
    assert!(bent.width_errors().median > 0.3, "{}", bent.width_errors());
}
