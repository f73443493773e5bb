//! Products of QNN with activations in integers are those of the CPU, as exactly as the integers allow: for each pair
//! of activations and weights, all architectures, odd row counts and shares. The preparation of each graph compares
//! it with the naive reference, which rounds in the same way.

use lapwing_kernels::device::{BlockingDevice, Tensor, TensorSet};
use lapwing_kernels::npu::{
    ActivationRange, ActivationRanges, NpuDevice, Qnn, QnnActivations, QnnError, QnnSettings,
    ScalesError, WeightForm, qnn_device,
};
use lapwing_kernels::op::Op;

use crate::a_qnn_graph_differs::needs_qnn;
use crate::npu::{SHARES, Task, Tiny};
use crate::npu_libraries::check_kept;
use crate::support::noise;

use QnnActivations::{F16, U8, U16};

const ENOUGH: u64 = 1 << 30;

/// Windows that ranges are measured on.
const WINDOWS: u32 = 8;

fn settings(activations: QnnActivations, weights: WeightForm) -> QnnSettings {
    QnnSettings { activations, weights, ..QnnSettings::default() }
}

fn open(tiny: &Tiny, settings: &QnnSettings, ranges: &ActivationRanges) -> Result<Qnn, QnnError> {
    Qnn::open("npu", settings, &tiny.graph, &tiny.file, ranges)
}

fn npu(tiny: &Tiny, settings: &QnnSettings, ranges: &ActivationRanges) -> NpuDevice {
    tiny.npu_over(Box::new(open(tiny, settings, ranges).expect("QNN")), ENOUGH)
}

/// Ranges twice as wide as the measured ones, in which random values stay.
fn wide(tiny: &Tiny) -> ActivationRanges {
    let measured = tiny.ranges(WINDOWS);
    let twice = |(matrix, range): (&str, &ActivationRange)| {
        let most: Vec<f32> = range.channels().iter().map(|most| most * 2.0).collect();
        let mut wide = ActivationRange::new(most.len());
        assert!(wide.add(&most) && wide.add_output([range.largest_output() * 2.0]));
        (matrix.to_owned(), wide)
    };
    ActivationRanges::new(measured.products().map(twice).collect(), measured.rows())
}

/// Inputs of a stage. Those of a product are its measured range times `factor` at most.
fn spread(tiny: &Tiny, task: &Task, ranges: &ActivationRanges, factor: f32) -> TensorSet {
    let mut inputs = TensorSet::default();
    for id in tiny.graph.live_in(task.nodes.clone()) {
        let width = tiny.graph.value(id).width;
        let mut values = noise(id.0 as u64 + 1, task.rows * width);
        let matrix = tiny.graph.nodes()[task.nodes.clone()].iter().find_map(|node| match node.op {
            Op::MatMul { weight, .. } if node.inputs[0] == id => Some(weight),
            _ => None,
        });
        if let Some(matrix) = matrix {
            let name = &tiny.graph.weights()[matrix.0].name;
            let range = ranges.product(name).expect("a range");
            let most = range.channels().iter().cycle();
            values.iter_mut().zip(most).for_each(|(x, most)| *x *= most * factor);
        }
        inputs.put(id, Tensor::new(width, values));
    }
    inputs
}

/// Values of all outputs, row by row.
fn rows(tiny: &Tiny, task: &Task, values: &TensorSet) -> Vec<Vec<f32>> {
    let writes = tiny.graph.writes(task.nodes.clone());
    let rows = writes.iter().flat_map(|id| {
        let value = values.get(*id).expect("a value");
        let width = value.width.max(1);
        value.host().expect("values").chunks_exact(width).map(<[f32]>::to_vec).collect::<Vec<_>>()
    });
    rows.collect()
}

/// Compares rows; a value may differ by the tolerance times the largest value of its row.
fn assert_near(got: &[Vec<f32>], want: &[Vec<f32>], tolerance: f32, what: &str) {
    let found = difference(got, want);
    assert!(found <= tolerance, "{what}: {found}");
}

/// The largest difference of a value, relative to the largest value of its row.
fn difference(got: &[Vec<f32>], want: &[Vec<f32>]) -> f32 {
    assert_eq!(got.len(), want.len());
    let row = |(got, want): (&Vec<f32>, &Vec<f32>)| {
        assert!(got.len() == want.len() && got.iter().all(|x| x.is_finite()));
        let size = want.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
        let difference = got.iter().zip(want).map(|(got, want)| (got - want).abs());
        difference.fold(0.0, f32::max) / size
    };
    got.iter().zip(want).map(row).fold(0.0, f32::max)
}

/// The largest difference of a stage from the CPU in f32, relative to the largest value of its row.
fn distance(tiny: &Tiny, npu: &mut NpuDevice, task: &Task, ranges: &ActivationRanges) -> f32 {
    npu.preparer().expect("a preparer").prepare(&task.keys(), &[], &mut ()).expect("graphs");
    let inputs = spread(tiny, task, ranges, 0.25);
    let got = tiny.run_on(npu, task, &inputs).expect("values");
    let mut whole = task.clone();
    whole.part.graphs.clear();
    let want = tiny.run_on(&mut tiny.exact(), &whole, &inputs).expect("values");
    difference(&rows(tiny, task, &got), &rows(tiny, task, &want))
}

/// The tolerance is the loss of the weights, to which activations of 8 bits add.
#[test]
fn every_pair_of_activations_and_weights_computes_the_values_of_the_cpu() {
    needs_qnn!();
    let tiny = Tiny::open("format-f16");
    let ranges = wide(&tiny);
    for (weights, for_u16, for_u8) in [
        (WeightForm::Int8, 0.03, 0.2),
        (WeightForm::Int4, 0.4, 0.4),
        (WeightForm::Int4Block16, 0.25, 0.3),
        (WeightForm::Int4Block32, 0.3, 0.3),
        (WeightForm::Int4Block64, 0.35, 0.4),
        (WeightForm::Int4Block128, 0.5, 0.5),
    ] {
        for (activations, tolerance) in [(U16, for_u16), (U8, for_u8)] {
            let mut npu = npu(&tiny, &settings(activations, weights), &ranges);
            let nodes = tiny.gated();
            for nodes in [nodes.clone(), nodes.end..nodes.end + 1] {
                let task = Task::new(nodes, 33, &[64]);
                let found = distance(&tiny, &mut npu, &task, &ranges);
                assert!(found <= tolerance, "{activations:?}, {weights:?}, {task:?}: {found}");
            }
        }
    }
}

#[test]
fn every_architecture_computes_the_values_of_the_cpu_with_products_of_integers() {
    needs_qnn!();
    for (name, activations, weights, tolerance) in [
        ("llama", U16, WeightForm::Int8, 0.04),
        ("llama", U8, WeightForm::Int8, 0.2),
        ("qwen2", U16, WeightForm::Int8, 0.04),
        ("qwen2", U16, WeightForm::Int4Block32, 0.3),
        ("qwen3", U16, WeightForm::Int8, 0.04),
        ("gemma2", U16, WeightForm::Int8, 0.04),
        ("gemma3", U16, WeightForm::Int8, 0.04),
        ("gemma3", U8, WeightForm::Int4Block16, 0.7),
    ] {
        let tiny = Tiny::open(name);
        let ranges = wide(&tiny);
        let mut npu = npu(&tiny, &settings(activations, weights), &ranges);
        for (at, nodes) in tiny.runs(&npu).into_iter().enumerate() {
            let first: &[(usize, &[usize])] = &[(1, &[1]), (31, &[32]), (33, &[32, 1])];
            let cases: &[(usize, &[usize])] = if at == 0 { first } else { &[(33, &[64])] };
            for (rows, graphs) in cases {
                let task = Task::new(nodes.clone(), *rows, graphs);
                let found = distance(&tiny, &mut npu, &task, &ranges);
                assert!(found <= tolerance, "{name}, {activations:?}, {task:?}: {found}");
            }
        }
    }
}

#[test]
fn shares_and_rows_of_products_of_integers_are_those_of_the_whole() {
    needs_qnn!();
    for (activations, weights, near) in
        [(U16, WeightForm::Int4Block32, 1e-3), (U8, WeightForm::Int8, 0.04)]
    {
        let tiny = Tiny::open("qwen2");
        let ranges = wide(&tiny);
        let mut npu = npu(&tiny, &settings(activations, weights), &ranges);
        let whole = Task::new(tiny.gated(), 5, &[8]);
        let inputs = spread(&tiny, &whole, &ranges, 1.0);
        let mut run = |task: &Task| {
            npu.preparer().expect("a preparer").prepare(&task.keys(), &[], &mut ()).expect("one");
            rows(&tiny, task, &tiny.run_on(&mut npu, task, &inputs).expect("values"))
        };
        let want = run(&whole);
        for graphs in [&[4, 1][..], &[32]] {
            let part =
                lapwing_kernels::part::Part { graphs: graphs.to_vec(), ..whole.part.clone() };
            let got = run(&Task { part, ..whole.clone() });
            assert_near(&got, &want, near, &format!("{activations:?}, {graphs:?}"));
        }
        for share in SHARES {
            let mut task = whole.clone();
            task.part.features = share;
            let columns = share.of_width(want[0].len());
            let want: Vec<Vec<f32>> =
                want.iter().map(|row| row[columns.clone()].to_vec()).collect();
            assert_near(&run(&task), &want, near, &format!("{activations:?}, {share:?}"));
        }
    }
}

#[test]
fn values_beyond_a_range_are_limited_to_it() {
    needs_qnn!();
    let tiny = Tiny::open("llama");
    let ranges = tiny.ranges(WINDOWS);
    let down = tiny.gated().end;
    let task = Task::new(down..down + 1, 4, &[4]);
    let Op::MatMul { weight, .. } = tiny.graph.nodes()[down].op else { panic!("no product") };
    let range = ranges.product(&tiny.graph.weights()[weight.0].name).expect("a range");
    let (input, output) = (range.largest(), range.largest_output());
    for activations in [U16, U8] {
        let mut npu = npu(&tiny, &settings(activations, WeightForm::Int8), &ranges);
        npu.preparer().expect("a preparer").prepare(&task.keys(), &[], &mut ()).expect("a graph");
        let mut run = |factor: f32| {
            let mut inputs = spread(&tiny, &task, &ranges, factor);
            let id = tiny.graph.live_in(task.nodes.clone())[0];
            let value = inputs.get_mut(id).expect("a value");
            // Every value is beyond the range, whatever its channel's is.
            let values = value.host_mut().expect("values");
            values.iter_mut().for_each(|x| *x = x.signum() * input * factor);
            rows(&tiny, &task, &tiny.run_on(&mut npu, &task, &inputs).expect("values"))
        };
        let (limited, most) = (run(8.0), output * 1.01);
        assert_eq!(limited, run(1000.0), "{activations:?}");
        let values = || limited.iter().flatten().map(|y| y.abs());
        assert!(values().all(|y| y <= most), "{activations:?}: {limited:?} beyond {most}");
        assert!(values().any(|y| y >= output * 0.98), "{activations:?}: nothing is limited");
    }
}

#[test]
fn what_qnn_does_not_multiply_and_what_was_not_measured_is_an_error() {
    let tiny = Tiny::open("llama");
    let ranges = tiny.ranges(1);
    for (activations, weights, says) in [
        (F16, WeightForm::Int4Block32, "give activations=u16 or activations=u8"),
        (U16, WeightForm::F16, "give weights=int8"),
        (U8, WeightForm::Stored, "give weights=int8"),
    ] {
        let error = open(&tiny, &settings(activations, weights), &ranges).err().expect("an error");
        assert!(matches!(error, QnnError::Settings { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
    for weights in [WeightForm::Int4Block64, WeightForm::Int4Block128] {
        let error = open(&tiny, &settings(U16, weights), &ranges).err().expect("an error");
        assert!(matches!(error, QnnError::Blocks { columns: 64 | 96, .. }), "{error:?}");
        assert!(error.to_string().contains("weights=int4:16"), "{error}");
    }
    for none in [ActivationRanges::default(), Tiny::open("gemma3").ranges(1)] {
        let error = open(&tiny, &settings(U16, WeightForm::Int8), &none).err().expect("an error");
        assert!(matches!(&error, QnnError::Ranges(ScalesError::Missing { .. })), "{error:?}");
        assert!(error.to_string().contains("`lapwing ranges`"), "{error}");
    }
}

#[test]
fn graphs_with_products_of_integers_are_kept_and_none_is_used_that_differs() {
    needs_qnn!();
    let of = settings(U16, WeightForm::Int8);
    check_kept(|tiny| Box::new(open(tiny, &of, &tiny.ranges(WINDOWS)).expect("QNN")));
}

#[test]
fn graphs_of_other_settings_and_ranges_are_not_used() {
    needs_qnn!();
    let tiny = Tiny::open("llama");
    let folder = tempfile::tempdir().expect("a folder");
    let (ranges, others) = (tiny.ranges(1), tiny.ranges(2));
    assert_ne!(ranges, others);
    let kept = |activations, weights, ranges: &ActivationRanges| {
        let npu = npu(&tiny, &settings(activations, weights), ranges);
        let npu = npu.keep_graphs(folder.path().to_owned(), &tiny.file);
        let keys = Task::new(tiny.gated(), 5, &[8]).keys();
        npu.preparer().expect("a preparer").prepare(&keys, &[], &mut ()).expect("a graph");
        npu.cache().stats().kept
    };
    let cases = [
        (F16, WeightForm::F16, &ranges),
        (F16, WeightForm::Int8, &ranges),
        (U16, WeightForm::Int8, &ranges),
        (U8, WeightForm::Int8, &ranges),
        (U16, WeightForm::Int8, &others),
        (F16, WeightForm::Int4, &ranges),
    ];
    // The library's own graphs with weights in blocks are never read again.
    let in_blocks = [
        (U16, WeightForm::Int4, &ranges),
        (U16, WeightForm::Int4Block16, &ranges),
        (U8, WeightForm::Int4Block32, &ranges),
    ];
    for already in [0, 1] {
        for (activations, weights, ranges) in cases {
            assert_eq!(kept(activations, weights, ranges), already, "{activations:?}, {weights:?}");
        }
        for (activations, weights, ranges) in in_blocks {
            assert_eq!(kept(activations, weights, ranges), 0, "{activations:?}, {weights:?}");
        }
    }
}
