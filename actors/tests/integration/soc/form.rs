//! Laws of the form of the models: launches, the two sides of a cut, copies, and orders of operands.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::simulate::soc::{SocModel, SocOptions, SocSimulation};
use lapwing_kernels::device::{Batch, DeviceKind};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::model::shape::ModelShape;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part, Share};
use lapwing_plan::array::SystolicArray;
use lapwing_plan::soc::{Soc, SyncMode, WeightBits, Workload};
use lapwing_plan::time::{Border, Job, TimeModel};
use proptest::prelude::*;

use super::{model, named, of, sd8gen3};

/// A matmul of K inputs and N outputs.
#[derive(Clone)]
struct Matmul(Workload);

impl Matmul {
    fn new(n: usize, k: usize) -> Matmul {
        let mut graph = Graph::default();
        let mut weight = |rows, cols| {
            graph.add_weight(WeightSpec { name: "w".into(), rows, cols, dtype: DType::Q4_0 })
        };
        let (table, weight) = (weight(8, k), weight(n, k));
        let mut push = |op, inputs: &[_], width| {
            graph.push(NewNode { op, inputs, width, layer: Some(0), role: "test" })
        };
        let x = push(Op::Embed { table, scale: 1.0 }, &[], k);
        push(Op::MatMul { weight, bias: None }, &[x], n);
        Matmul(Workload { graph: Arc::new(graph), bits: WeightBits::default() })
    }

    /// What a law of time says of a part on a processor.
    fn time(
        &self,
        on: (&Soc, DeviceKind, SyncMode),
        job: &Begins,
        of: impl Fn(&dyn TimeModel, &Job<'_>) -> Duration,
    ) -> Duration {
        let (soc, kind, sync) = on;
        let Begins { part, crossed, border } = job;
        let mut batch = Batch::default();
        batch.push(&[0; 8], 0, Vec::new(), 7..8);
        let (first, end, queued) = (1, 2, true);
        let (crossed, border) = (*crossed, *border);
        let job = Job { first, end, part, batch: &batch, crossed, border, queued };
        of(&*soc.times(&[kind], &self.0, sync)[0], &job)
    }
}

/// A part, and how it begins.
struct Begins {
    part: Part,
    crossed: bool,
    border: Border,
}

fn alone(part: Part) -> Begins {
    Begins { part, crossed: false, border: Border::NONE }
}

fn graphs(graphs: &[usize], order: OperandOrder) -> Part {
    Part { graphs: graphs.to_vec(), order, ..Part::WHOLE }
}

/// Stages of a decode step that are divided.
fn cuts(model: &SocModel, soc: &Soc) -> usize {
    let options = SocOptions { decode: 1, ..of(256) };
    let run = SocSimulation::new(model, soc, &named("tensor-level"), &options).expect("routes");
    run.routes()[1].stages.iter().filter(|stage| stage.parts.len() > 1).count()
}

#[test]
fn cuts_of_decode_increase_with_the_launch() {
    for shape in ModelShape::all().iter().filter(|shape| shape.experts.is_none()) {
        let model = SocModel::of_shape(shape).expect("a model");
        let counts: Vec<usize> = [0.0, 10.0, 40.0, 89.0, 160.0, 400.0, 2000.0, 50_000.0]
            .map(|launch| {
                let mut soc = sd8gen3();
                soc.set("npu.launch", launch).expect("a number");
                cuts(&model, &soc)
            })
            .to_vec();
        assert!(counts.is_sorted_by(|a, b| a >= b), "{}: {counts:?}", shape.name);
        assert_eq!(counts.last(), Some(&0), "{}", shape.name);
    }
}

#[test]
fn a_small_model_cuts_as_many_products_as_a_large_one() {
    let soc = sd8gen3();
    let counts = ["llama-3-8b", "llama-3.2-3b", "internlm2-1.8b"].map(|name| {
        let layers = ModelShape::by_name(name).expect("a shape").layers;
        cuts(&model(name), &soc) as f64 / layers as f64
    });
    assert!(counts[0] >= counts[1] && counts[1] >= counts[2], "{counts:?}");
    assert!(counts[0] > counts[2] + 0.9, "{counts:?}");
}

/// The way back passes beside the first processor's own part, so only the second one pays for it.
#[test]
fn a_side_of_a_cut_is_free_or_paid_twice() {
    let (matmul, soc) = (Matmul::new(256, 256), sd8gen3());
    let half = Part { features: Share { from: 0, to: 1, of: 2 }, ..Part::WHOLE };
    let before = |kind, part: &Part, crossed, shared| {
        let border = Border { buffers: 1, shared };
        let job = Begins { part: part.clone(), crossed, border };
        matmul.time((&soc, kind, SyncMode::Fast), &job, |time, job| time.overhead(job))
    };
    let (gpu, npu) = (DeviceKind::Gpu, DeviceKind::Npu);
    let (fast, launch) = (soc.micros("sync.fast"), soc.micros("npu.launch"));
    assert_eq!(before(npu, &Part::WHOLE, true, false), fast + launch, "entry");
    assert_eq!(before(npu, &half, true, false), fast * 2 + launch, "entry and return");
    assert_eq!(before(gpu, &half, false, false), Duration::ZERO, "the first processor");
    assert_eq!(before(gpu, &Part::WHOLE, true, true), Duration::ZERO, "after a cut");
    assert_eq!(before(gpu, &Part::WHOLE, true, false), fast, "after a part on the NPU alone");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_graph_is_launched_for_nothing_or_changes_its_own_time(
        sizes in proptest::collection::vec(proptest::sample::select(vec![32usize, 64, 128, 256]), 1..5),
        launch in 0.0..500.0f64,
        n in 1..64usize,
        k in 1..64usize,
    ) {
        let (matmul, mut soc) = (Matmul::new(32 * n, 32 * k), sd8gen3());
        let job = alone(graphs(&sizes, OperandOrder::Swapped));
        let npu = DeviceKind::Npu;
        let mut time = |launch: f64| {
            soc.set("npu.launch", launch).expect("a number");
            let on = (&soc, npu, SyncMode::Fast);
            let nodes = matmul.time(on, &job, |time, job| time.node_time(job, 1));
            (nodes, matmul.time(on, &job, |time, job| time.run_time(job)))
        };
        let (free, with) = (time(0.0), time(launch));
        prop_assert_eq!(free.0, free.1, "a launch of 0 is the form without launches");
        let one = Duration::from_nanos((launch * 1e3).round() as u64);
        prop_assert_eq!(with.1, free.1 + one * sizes.len() as u32);
    }

    #[test]
    fn copies_are_free_or_follow_another_count(
        buffers in 0..6usize,
        copy in 0.0..900.0f64,
        submit in 0.0..100.0f64,
        crossed in proptest::bool::ANY,
    ) {
        let (matmul, mut soc) = (Matmul::new(64, 64), sd8gen3());
        soc.set("sync.copy", copy).expect("a number");
        soc.set("gpu.submit_queued", submit).expect("a number");
        let half = Part { features: Share { from: 0, to: 1, of: 2 }, ..Part::WHOLE };
        let before = |kind, part: &Part| {
            let border = Border { buffers, shared: false };
            let job = Begins { part: part.clone(), crossed, border };
            matmul.time((&soc, kind, SyncMode::Slow), &job, |time, job| time.overhead(job))
        };
        let copies = soc.micros("sync.copy") * buffers as u32;
        let (gpu, npu) = (DeviceKind::Gpu, DeviceKind::Npu);
        let of_copies = |micros: &str| if buffers > 0 { soc.micros(micros) } else { Duration::ZERO };
        let submitted = of_copies("gpu.submit_queued");
        let launch = soc.micros("npu.launch");
        prop_assert_eq!(before(gpu, &Part::WHOLE), copies + of_copies("gpu.submit_empty") + submitted);
        prop_assert_eq!(before(npu, &Part::WHOLE), copies + launch, "nothing is submitted before it");
        prop_assert_eq!(before(npu, &half), copies + submitted + launch, "behind the GPU's part");
    }

    /// The array is better used by the operand with more rows. With at least as many outputs as inputs that is the weight, and so it is
    /// with fewer rows than inputs, unless there are even fewer outputs than rows.
    #[test]
    fn the_straight_order_is_faster_with_equal_fill(
        n in 1..512usize,
        k in 1..512usize,
        rows in proptest::sample::select(Soc::NPU_SIZES.to_vec()),
        fill in 0.0..300.0f64,
    ) {
        let (n, k) = (32 * n, 32 * k);
        prop_assume!(n >= k || rows < k && n >= rows);
        let (matmul, mut soc) = (Matmul::new(n, k), sd8gen3());
        soc.set("npu.wide_rows", fill).expect("a number");
        let time = |order| {
            let job = alone(graphs(&[rows], order));
            let on = (&soc, DeviceKind::Npu, SyncMode::Fast);
            matmul.time(on, &job, |time, job| time.node_time(job, 1))
        };
        let [straight, swapped] = [OperandOrder::Straight, OperandOrder::Swapped].map(time);
        prop_assert!(swapped <= straight, "[{n},{k}] × {rows}: {swapped:?} {straight:?}");
    }

    /// Strategies with fixed cuts choose by the shapes alone.
    #[test]
    fn a_strategy_that_chooses_finds_a_better_order_than_the_shapes_say(
        n in 1..512usize,
        k in 1..512usize,
        rows in proptest::sample::select(Soc::NPU_SIZES[1..].to_vec()),
    ) {
        let (n, k) = (32 * n, 32 * k);
        let (matmul, soc) = (Matmul::new(n, k), sd8gen3());
        let time = |order| {
            let job = alone(graphs(&[rows], order));
            let on = (&soc, DeviceKind::Npu, SyncMode::Fast);
            matmul.time(on, &job, |time, job| time.node_time(job, 1))
        };
        let fixed = time(SystolicArray::default().faster_order([rows, k, n]));
        let best = time(OperandOrder::Straight).min(time(OperandOrder::Swapped));
        prop_assert_eq!(fixed, best, "[{},{}] × {}", n, k, rows);
    }
}
