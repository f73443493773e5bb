//! Measures devices with known times.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use lapwing_kernels::device::{Blocking, DeviceKind, GraphKey, ModelId};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{NewNode, ValueId, WeightSpec};
use lapwing_kernels::op::{Activation, Op};
use lapwing_kernels::part::{OperandOrder, Part, Share};
use lapwing_traces::{Nanos, OsClock};

use self::blank::Blank;
use super::*;
use lapwing_plan::DeviceId;
use lapwing_plan::array::{Preparation, SystolicArray};
use lapwing_plan::cost::CostModel;
use lapwing_plan::fit::Fitted;
use lapwing_plan::profile::Sample;
use lapwing_plan::rate::{ArrayModel, ArrayRate, RateModel, Rates};
use lapwing_plan::time::{Job, TimeModel};

#[path = "../../../tests/integration/blank.rs"]
#[expect(unreachable_pub, reason = "the integration tests share this file")]
mod blank;

/// A gated feed-forward layer.
fn graph() -> Arc<Graph> {
    let mut g = Graph::default();
    let mut weight =
        |rows, cols| g.add_weight(WeightSpec { name: "w".into(), rows, cols, dtype: DType::Q8_0 });
    let (gain, gate, up, down) = (weight(1, 64), weight(128, 64), weight(128, 64), weight(64, 128));
    let table = weight(16, 64);
    let mut push = |op, inputs: &[ValueId], width| {
        g.push(NewNode { op, inputs, width, layer: Some(0), role: "test" })
    };
    let x = push(Op::Embed { table, scale: 1.0 }, &[], 64);
    let n = push(Op::RmsNorm { weight: Some(gain), group: 64, eps: 1e-5 }, &[x], 64);
    let a = push(Op::MatMul { weight: gate, bias: None }, &[n], 128);
    let b = push(Op::MatMul { weight: up, bias: None }, &[n], 128);
    let c = push(Op::Gated(Activation::Silu), &[a, b], 128);
    let d = push(Op::MatMul { weight: down, bias: None }, &[c], 64);
    let e = push(Op::Add, &[d, x], 64);
    let f = push(Op::RmsNorm { weight: Some(gain), group: 64, eps: 1e-5 }, &[e], 64);
    push(Op::SelectRows, &[f], 64);
    Arc::new(g)
}

fn rate(gflops: f64, submit_us: u64) -> Rates {
    Rates {
        gflops,
        gbps: 1.0,
        submit_queued: Duration::from_micros(submit_us / 4),
        submit_idle: Duration::from_micros(submit_us),
        sync: Duration::from_micros(200),
    }
}

fn models(graph: &Arc<Graph>) -> [Arc<dyn TimeModel>; 2] {
    let gpu = RateModel::new(Arc::clone(graph), rate(0.5, 400)).expect("a rate");
    let rates = ArrayRate {
        array: SystolicArray { flops: 2e9, ..SystolicArray::default() },
        rate: rate(0.5, 300),
        preparation: Preparation { fixed: Duration::from_micros(50), per_row_weight: 1e-10 },
    };
    let npu = ArrayModel::new(Arc::clone(graph), rates).expect("a rate");
    [Arc::new(gpu), Arc::new(npu)]
}

fn measured(graph: &Arc<Graph>, fails: bool) -> Vec<MeasuredDevice> {
    let [gpu, npu] = models(graph);
    let kinds = [(DeviceKind::Gpu, gpu, vec![]), (DeviceKind::Npu, npu, vec![32, 64, 128])];
    let device = |(kind, time, sizes): (DeviceKind, Arc<dyn TimeModel>, Vec<usize>)| {
        let info = DeviceInfo::new(kind.name(), kind).with_graphs(sizes, None);
        let blank = Blank::new(kind.name(), graph, true).failing(fails);
        let device = Box::new(Blocking::new(info.clone(), blank));
        let device = LiveDevice { device, time: Some(time), cores: None };
        MeasuredDevice { device, info, description: String::new() }
    };
    kinds.map(device).into()
}

fn parts(graph: &Arc<Graph>, fails: bool) -> MeasureParts<'_> {
    MeasureParts {
        devices: measured(graph, fails),
        graph,
        slots: SlotPool::default(),
        pages: 16,
        page_rows: 16,
        chunk_rows: 128,
        machine: Machine { cpu: "test".into(), cores: 1, isa: "none".into(), os: "none".into() },
        model: "test".to_owned(),
        program: "0".to_owned(),
        clock: Arc::new(OsClock::start()),
        limits: Limits { runs: 3, ..Limits::default() },
        points: Points::All,
    }
}

/// A clock that each reading advances by 25 microseconds, so that only modelled times and the profiler's own
/// steps count, whatever else runs on the machine.
#[derive(Default)]
struct Readings(AtomicU64);

impl Clock for Readings {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(25_000, Ordering::Relaxed))
    }
}

#[test]
fn a_throttled_device_is_measured_at_its_modelled_time() {
    let graph = graph();
    let mut steps = 0;
    let parts = MeasureParts { clock: Arc::new(Readings::default()), ..parts(&graph, false) };
    let profile = measure(parts, &mut |step| {
        assert!(step.done < step.of);
        steps += 1;
        ControlFlow::Continue(())
    });
    let profile = profile.expect("a profile");
    profile.check().expect("values in range");
    assert!(steps > 50, "{steps}");
    let fitted = Fitted::new(&profile, Arc::clone(&graph)).expect("a fit");
    // A throttled device is never faster than its model, and the profiler's own steps make it slower.
    let mut ratios: Vec<f64> = Vec::new();
    for (at, model) in models(&graph).iter().enumerate() {
        for rows in [40, 64, 100] {
            let graphs = if at == 1 { vec![if rows > 64 { 128 } else { 64 }] } else { vec![] };
            let part = Part { graphs, ..Part::WHOLE };
            let mut batch = lapwing_kernels::device::Batch::default();
            batch.push(&vec![0; rows], 0, vec![], rows - 1..rows);
            for (first, end) in [(2, 5), (5, 7), (1, 7)] {
                let job = Job { crossed: true, ..Job::alone(first..end, &part, &batch) };
                let truth = model.run_time(&job).as_secs_f64();
                let predicted = fitted.job_time(DeviceId(at), &job).as_secs_f64();
                ratios.push(predicted / truth);
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    assert!((0.9..2.0).contains(&ratios[ratios.len() / 2]), "{ratios:?}");
    assert!(profile.devices[1].convert_ns_per_byte > 0.9, "{:?}", profile.devices[1]);
    for (nodes, rows) in [(2..3, 48), (2..4, 128), (5..6, 200)] {
        let (features, order) = (Share::WHOLE, OperandOrder::Straight);
        let key = GraphKey { model: ModelId::default(), nodes, features, rows, order };
        let truth = models(&graph)[1].prepare_time(&key).as_secs_f64();
        let predicted = fitted.prepare_time(DeviceId(1), &key).as_secs_f64();
        assert!((0.8..4.0).contains(&(predicted / truth)), "{key:?}: {predicted} {truth}");
    }
}

#[test]
fn a_time_limit_skips_measurements_but_no_kind_of_op() {
    let graph = graph();
    let limits = Limits { runs: 1, per_device: Duration::ZERO, ..Limits::default() };
    let parts = MeasureParts { limits, ..parts(&graph, false) };
    let profile = measure(parts, &mut |_| ControlFlow::Continue(())).expect("a profile");
    let fitted = Fitted::new(&profile, Arc::clone(&graph)).expect("a fit");
    for (device, fit) in profile.devices.iter().zip(fitted.devices()) {
        assert!(
            device.samples.len() < device.asked / 4,
            "{} of {}",
            device.samples.len(),
            device.asked
        );
        assert!(fit.unmeasured.is_empty(), "{:?}", fit.unmeasured);
    }
}

#[test]
fn few_points_are_the_least_the_middle_and_the_largest_number_of_rows() {
    let graph = graph();
    let of = |points: Points| {
        let limits = Limits { runs: 1, ..Limits::default() };
        let clock = Arc::new(Readings::default());
        let parts = MeasureParts { limits, clock, points, ..parts(&graph, false) };
        measure(parts, &mut |_| ControlFlow::Continue(())).expect("a profile")
    };
    let (few, all) = (of(Points::Few), of(Points::All));
    // The other device has no more than three graph sizes.
    let (few, all) = (&few.devices[0], &all.devices[0]);
    assert_eq!(few.asked, few.samples.len());
    assert!(few.asked < all.asked, "{} of {}", few.asked, all.asked);
    for sample in &few.samples {
        let rows = |samples: &[Sample]| -> BTreeSet<usize> {
            samples.iter().filter(|one| one.shape == sample.shape).map(|one| one.m).collect()
        };
        let (some, every) = (rows(&few.samples), rows(&all.samples));
        assert!(some.len() <= 3, "{:?}: {some:?}", sample.shape);
        assert_eq!((some.first(), some.last()), (every.first(), every.last()));
    }
}

#[test]
fn a_failing_device_and_a_cancellation_end_the_measurement() {
    let graph = graph();
    let failed = measure(parts(&graph, true), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(failed, Err(MeasureError::Device { .. })), "{failed:?}");
    let stopped = measure(parts(&graph, false), &mut |step| match step.done {
        0..3 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert!(matches!(stopped, Err(MeasureError::Cancelled)), "{stopped:?}");
}
