//! Int8 activations with fixed scales: what exceeds a scale is computed beside the array, and no row depends on others.

use std::sync::Arc;

use lapwing_kernels::device::{BlockingDevice, Prepare, Tensor, TensorSet};
use lapwing_kernels::npu::{
    ActivationRanges, NpuDevice, OutlierCounter, OutlierCounts, RangesFileError, Scales,
    ScalesError, StaticInt8,
};
use lapwing_kernels::op::Op;

use crate::npu::{ORDERS, SHARES, Task, Tiny};
use crate::support::noise;

const ENOUGH: u64 = 1 << 30;

const FORMATS: [&str; 8] = [
    "format-q4_0",
    "format-q4_1",
    "format-q5_0",
    "format-q5_1",
    "format-q8_0",
    "format-q4_k",
    "format-q5_k",
    "format-q6_k",
];

fn npu(tiny: &Tiny, ranges: &ActivationRanges, how: StaticInt8) -> (NpuDevice, OutlierCounter) {
    let scales = Scales::new(&tiny.graph, ranges, how).expect("scales");
    let backend = tiny.systolic().with_scales(&tiny.graph, Arc::new(scales));
    let counter = backend.outliers().expect("a counter");
    (tiny.npu_over(Box::new(backend), ENOUGH), counter)
}

/// A stage's inputs, with values from far below to far beyond the scales.
fn wide(tiny: &Tiny, task: &Task) -> TensorSet {
    let mut inputs = TensorSet::default();
    for id in tiny.graph.live_in(task.nodes.clone()) {
        let spec = tiny.graph.value(id);
        let mut values = noise(id.0 as u64 + 1, task.rows * spec.width);
        values.iter_mut().enumerate().for_each(|(at, x)| *x *= [0.01, 1.0, 30.0][at % 3]);
        inputs.put(id, Tensor::new(spec.width, values));
    }
    inputs
}

fn on_the_spot(tiny: &Tiny, rows: usize, graphs: &[usize]) -> Task {
    Task { prepare: Prepare::OnTheSpot, ..Task::new(tiny.gated(), rows, graphs) }
}

/// The preparation of each graph compares it with the naive reference, which rounds in f64 and keeps outliers whole.
#[test]
fn every_weight_format_equals_the_reference_with_no_some_and_only_outliers() {
    for name in FORMATS {
        let tiny = Tiny::open(name);
        let ranges = tiny.ranges(2);
        for (clip, outliers, prune) in [
            (1.0, true, 0.0),
            (0.99, true, 0.0),
            (0.2, true, 0.5),
            (1e-9, true, 0.0),
            (0.9, false, 0.0),
        ] {
            let (mut npu, counter) = npu(&tiny, &ranges, StaticInt8 { clip, outliers, prune });
            let mut preparer = npu.preparer().expect("a preparer");
            for nodes in tiny.runs(&npu) {
                for rows in [1, 4, 32] {
                    let task = Task::new(nodes.clone(), rows, &[rows]);
                    let what = format!("{name}, {nodes:?}, {rows} rows, clip {clip}");
                    preparer.prepare(&task.keys(), &[], &mut ()).expect(&what);
                }
            }
            assert_eq!(counter.counts(), OutlierCounts::default(), "checks are not counted");
            let task = on_the_spot(&tiny, 5, &[8]);
            tiny.run_on(&mut npu, &task, &wide(&tiny, &task)).expect(name);
            let counts = counter.counts();
            let products = tiny.graph.nodes()[task.nodes.clone()].iter();
            let products = products.filter(|node| matches!(node.op, Op::MatMul { .. })).count();
            assert_eq!(counts.products, products as u64, "{name}");
            if prune == 0.0 {
                let found = [counts.shadowed, counts.outliers, counts.columns];
                assert_eq!(found.map(|count| count > 0), [outliers; 3], "{name}, clip {clip}");
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_alone_in_any_graph_and_in_any_share() {
    for name in ["format-q4_1", "format-q8_0", "format-q6_k"] {
        let tiny = Tiny::open(name);
        let ranges = tiny.ranges(2);
        let (mut npu, counter) =
            npu(&tiny, &ranges, StaticInt8 { clip: 0.9, ..StaticInt8::default() });
        let rows = 33;
        let whole = on_the_spot(&tiny, rows, &[64]);
        let inputs = wide(&tiny, &whole);
        let want = tiny.run_on(&mut npu, &whole, &inputs).expect("values");
        assert!(counter.counts().shadowed > 0);
        let cut = on_the_spot(&tiny, rows, &[32, 1]);
        tiny.assert_same(
            &whole,
            &tiny.run_on(&mut npu, &cut, &inputs).expect("values"),
            &want,
            name,
        );
        let id = tiny.graph.writes(whole.nodes.clone())[0];
        for row in [0, 7, 32] {
            let one = on_the_spot(&tiny, 1, &[1]);
            let mut alone = TensorSet::default();
            inputs
                .iter()
                .for_each(|(id, x)| alone.put(id, Tensor::new(x.width, x.row(row).to_vec())));
            let got = tiny.run_on(&mut npu, &one, &alone).expect("values");
            let (got, want) = (got.get(id).expect("a value"), want.get(id).expect("a value"));
            assert_eq!(got.row(0), want.row(row), "{name}, row {row}");
        }
        for (share, order) in SHARES.iter().flat_map(|share| ORDERS.map(|order| (*share, order))) {
            let mut part = on_the_spot(&tiny, rows, &[64]);
            (part.part.features, part.part.order) = (share, order);
            let got = tiny.run_on(&mut npu, &part, &inputs).expect("values");
            let (got, want) = (got.get(id).expect("a value"), want.get(id).expect("a value"));
            let columns = share.of_width(want.width);
            for row in 0..rows {
                assert_eq!(got.row(row), &want.row(row)[columns.clone()], "{name}, {share:?}");
            }
        }
    }
}

/// Distance from the products of unrounded activations, by the root mean square of these.
fn distance(tiny: &Tiny, ranges: &ActivationRanges, how: StaticInt8) -> f32 {
    let task = on_the_spot(tiny, 5, &[8]);
    let inputs = wide(tiny, &task);
    let (mut npu, _) = npu(tiny, ranges, how);
    let got = tiny.run_on(&mut npu, &task, &inputs).expect("values");
    let mut exact = tiny.cpu_with(lapwing_kernels::cpu::Activations::F32);
    let whole = Task { part: lapwing_kernels::part::Part::WHOLE, ..task };
    let want = tiny.run_on(&mut exact, &whole, &inputs).expect("values");
    let id = tiny.graph.writes(whole.nodes)[0];
    let (got, want) = (got.get(id).expect("a value"), want.get(id).expect("a value"));
    let (got, want) = (got.host().expect("values"), want.host().expect("values"));
    let squares = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>();
    let error = squares(&mut got.iter().zip(want.iter()).map(|(a, b)| a - b));
    (error / squares(&mut want.iter().copied())).sqrt()
}

#[test]
fn outliers_that_are_computed_bring_the_result_near_that_of_floats() {
    let tiny = Tiny::open("format-q8_0");
    let ranges = tiny.ranges(3);
    let how = |outliers| StaticInt8 { clip: 0.99, outliers, prune: 0.0 };
    let (with, without) =
        (distance(&tiny, &ranges, how(true)), distance(&tiny, &ranges, how(false)));
    assert!(with < 0.05 && without > 4.0 * with, "{with} with outliers, {without} without");
}

#[test]
fn what_is_not_finite_is_an_error_that_names_the_product() {
    let tiny = Tiny::open("format-q8_0");
    let ranges = tiny.ranges(1);
    let (mut npu, _) = npu(&tiny, &ranges, StaticInt8::default());
    let task = on_the_spot(&tiny, 3, &[4]);
    for bad in [f32::NAN, f32::INFINITY] {
        let mut inputs = wide(&tiny, &task);
        let id = tiny.graph.live_in(task.nodes.clone())[0];
        let x = inputs.get_mut(id).and_then(Tensor::host_mut).expect("values");
        let width = x.len() / 3;
        x[2 * width + 5] = bad;
        let error = tiny.run_on(&mut npu, &task, &inputs).expect_err("refused").to_string();
        assert!(error.contains("channel 5 of input row 2 is not a finite number"), "{error}");
        assert!(error.contains("ffn_gate") || error.contains("gate"), "{error}");
    }
    inputs_are_fine_again(&tiny, &mut npu, &task);
}

fn inputs_are_fine_again(tiny: &Tiny, npu: &mut NpuDevice, task: &Task) {
    tiny.run_on(npu, task, &wide(tiny, task)).expect("a failed run spoils no later one");
}

#[test]
fn ranges_are_kept_for_the_same_model_only_and_scales_need_all_products() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tiny, other) = (Tiny::open("format-q8_0"), Tiny::open("format-q4_0"));
    let measured = tiny.ranges(1);
    let load = |tiny: &Tiny, variant| ActivationRanges::load(folder.path(), &tiny.file, variant);
    assert!(matches!(load(&tiny, ""), Err(RangesFileError::Absent { .. })));
    let path = measured.save(folder.path(), &tiny.file, "").expect("written");
    assert_eq!(load(&tiny, "").as_ref(), Ok(&measured));
    assert!(matches!(load(&tiny, "mask"), Err(RangesFileError::Absent { .. })));
    assert!(matches!(load(&other, ""), Err(RangesFileError::Absent { .. })));
    let bytes = std::fs::read(&path).expect("a file");
    let mut damaged = bytes.clone();
    *damaged.last_mut().expect("a byte") ^= 1;
    // An earlier form of the file, without ranges of outputs.
    let old = [b"LPWRNG01", &bytes[8..]].concat();
    for content in [damaged, old] {
        std::fs::write(&path, content).expect("a file");
        let error = load(&tiny, "").expect_err("unusable");
        assert!(
            matches!(error, RangesFileError::Unusable { .. })
                && error.to_string().contains("lapwing ranges")
        );
    }

    let how = StaticInt8::default();
    let none = Scales::new(&tiny.graph, &ActivationRanges::default(), how);
    assert!(matches!(none, Err(ScalesError::Missing { .. })));
    let float = Tiny::open("llama");
    let float = Scales::new(&float.graph, &float.ranges(1), how);
    assert!(matches!(&float, Err(error) if error.to_string().contains("--requant int8:row")));
}

#[test]
fn pruning_leaves_out_the_products_with_the_smallest_outliers() {
    let tiny = Tiny::open("format-q8_0");
    let measured = tiny.ranges(2);
    let mut before = usize::MAX;
    for prune in [0.0, 0.25, 0.85, 1.0] {
        let scales =
            Scales::new(&tiny.graph, &measured, StaticInt8 { prune, ..StaticInt8::default() });
        let (all, computed) = scales.expect("scales").products();
        assert_eq!(computed, all - (prune * all as f64).round() as usize);
        assert!(computed < before);
        before = computed;
    }
}
