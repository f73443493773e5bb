//! Random runs: resources return, figures add up, and every idle nanosecond has a cause.

use std::collections::BTreeMap;

use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::soc::{
    Fault, SocOptions, SocOutcome, SocPhase, SocSimulation, SocUnit,
};
use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::model::shape::ModelShape;
use lapwing_plan::soc::{PRESETS, Soc, SyncMode};
use lapwing_plan::strategy::registry;
use lapwing_traces::analysis::IdleCause;
use lapwing_traces::event::Activity;
use lapwing_traces::{Analysis, Nanos, Recording, Timeline};

use super::{named, near, of, sd8gen3, short};
use crate::cases::cases;

/// Busy time and attributed idle time of every lane add up to the makespan, and the lower bound does
/// not exceed it.
fn conserves(what: &str, recording: &Recording) {
    let timeline = Timeline::new(recording);
    let analysis = Analysis::new(&timeline);
    assert!(analysis.overlap.lower_bound <= timeline.makespan(), "{what}");
    for (lane, info) in timeline.lanes.iter().enumerate() {
        let makespan = if info.slots == 0 { 0 } else { timeline.makespan() };
        let gaps = analysis.gaps.iter().filter(|gap| gap.lane == lane);
        let unknown = gaps.clone().find(|gap| gap.cause == IdleCause::Unknown);
        assert_eq!(unknown, None, "{what}: {}", info.name);
        let idle: u64 = gaps.map(|gap| gap.end - gap.start).sum();
        let spans = timeline.spans.iter().filter(|s| s.lane == lane && s.parent.is_none());
        let busy: u64 = spans.map(|span| span.duration()).sum();
        assert_eq!(idle + busy, makespan, "{what}: {}", info.name);
    }
}

/// The figures of every processor add up to each phase.
fn adds_up(what: &str, outcome: &SocOutcome) {
    for phase in [Some(&outcome.prefill), outcome.decode.as_ref()].into_iter().flatten() {
        for unit in &phase.units {
            let all = unit.busy_ms + unit.waiting_ms + unit.held_ms + unit.merging_ms;
            let all = all + unit.idle_ms;
            assert!((all - phase.ms).abs() < 1e-6 * (1.0 + phase.ms), "{what}: {all} {unit:?}");
            assert!(unit.spinning_ms <= unit.waiting_ms && unit.co_run_ms <= unit.busy_ms);
        }
    }
}

/// The spans of a completed run give the same figures.
fn is_recorded(what: &str, outcome: &SocOutcome, recording: &Recording) {
    let timeline = Timeline::new(recording);
    let phases = || [Some(&outcome.prefill), outcome.decode.as_ref()].into_iter().flatten();
    for (lane, info) in timeline.lanes.iter().enumerate() {
        let of_lane = |phase: &SocPhase, of: fn(&SocUnit) -> f64| {
            phase.units.iter().find(|unit| unit.name == info.name).map(of)
        };
        let unit = |of: fn(&SocUnit) -> f64| phases().filter_map(|p| of_lane(p, of)).sum::<f64>();
        let spans = |inner: bool, activities: &[Activity]| {
            let spans = timeline.spans.iter().filter(|span| span.lane == lane);
            let spans = spans.filter(|s| s.parent.is_some() == inner);
            let spans = spans.filter(|span| activities.contains(&span.activity));
            spans.map(|span| span.duration() as f64 / 1e6).sum::<f64>()
        };
        if !phases().any(|phase| of_lane(phase, |unit| unit.idle_ms).is_some()) {
            continue;
        }
        let work = [Activity::Compute, Activity::Prepare, Activity::Convert];
        let rows = [
            ("busy", unit(|u| u.busy_ms), spans(true, &work)),
            ("waiting", unit(|u| u.waiting_ms), spans(true, &[Activity::Sync])),
            ("held", unit(|u| u.held_ms), spans(true, &[Activity::Other])),
            ("merging", unit(|u| u.merging_ms), spans(false, &[Activity::Copy])),
        ];
        for (figure, found, recorded) in rows {
            let error = (found - recorded).abs();
            assert!(error < 1e-6 * (1.0 + found), "{what}: {figure}: {found} {recorded}");
        }
    }
}

/// A run with recording, and its result.
fn record(what: &str, simulation: SocSimulation, cancels: bool) -> Result<SocOutcome, SocRunError> {
    let recorder = simulation.recorder().clone();
    let result = simulation.run();
    let recording = recorder.recording();
    assert_eq!(recording.dropped, 0, "{what}");
    conserves(what, &recording);
    if let Ok(outcome) = &result
        && !cancels
    {
        is_recorded(what, outcome, &recording);
    }
    result
}

#[test]
fn an_idle_nanosecond_has_no_cause() {
    let (soc, strategies) = (sd8gen3(), registry());
    for shape in [&ModelShape::all()[0], &ModelShape::all()[5]] {
        for strategy in strategies {
            for (sync, renderer) in [(SyncMode::Fast, false), (SyncMode::Slow, true)] {
                let options = SocOptions { sync, renderer, record: true, decode: 3, ..of(300) };
                let what = format!("{} {sync:?}", strategy.name());
                match SocSimulation::new(&short(shape), &soc, &named(strategy.name()), &options) {
                    Ok(run) => adds_up(&what, &record(&what, run, false).expect("an outcome")),
                    Err(SocRunError::Plan(_)) => {}
                    Err(error) => panic!("{what}: {error}"),
                }
            }
        }
    }
}

/// Only fast synchronisation between processors uses energy for a polling core.
#[test]
fn spinning_is_billed_for_a_wait_that_does_not_poll() {
    let mut soc = sd8gen3();
    soc.set("power.spin", 1.0).expect("a number");
    let model = short(&ModelShape::all()[0]);
    let spun = |strategy: &str, sync| {
        let options = SocOptions { sync, decode: 0, ..of(64) };
        let run = SocSimulation::new(&model, &soc, &named(strategy), &options).expect("a route");
        let phase = run.run().expect("an outcome").prefill;
        let spun = phase.units.iter().map(|unit| unit.spinning_ms).sum::<f64>();
        (spun, phase)
    };
    assert_eq!(spun("gpu-only", SyncMode::Fast).0, 0.0);
    assert_eq!(spun("layer-level", SyncMode::Slow).0, 0.0);
    let (fast, phase) = spun("layer-level", SyncMode::Fast);
    let poll = (soc.value("sync.fast").expect("a number") * 1e3).round() / 1e6;
    near("polling", fast, phase.hand_overs as f64 * poll, 1e-9);
    let power = |path: &str| soc.value(path).expect("a number");
    let mut energy = power("power.base") * phase.ms + fast;
    for unit in &phase.units {
        let alone = unit.busy_ms - unit.co_run_ms;
        energy += match &*unit.name {
            "gpu" => power("power.gpu") * (alone + unit.co_run_ms * power("power.co_run")),
            _ => power("power.npu") * unit.busy_ms,
        };
    }
    near("energy", phase.energy_j.expect("known powers") * 1e3, energy, 1e-9);
}

/// A run of random shape, and its options.
struct Random {
    strategy: &'static str,
    soc: Soc,
    shape: usize,
    options: SocOptions,
}

impl Random {
    fn new(dice: &mut impl FnMut(u64) -> u64, record: bool) -> Random {
        let mut soc = Soc::preset(PRESETS[dice(3) as usize].0).expect("a preset");
        if dice(4) == 0 {
            soc.set("noise.spread", 0.1).expect("a number");
        }
        if dice(4) == 0 {
            soc.set("memory.cap", 5.0 + dice(60) as f64).expect("a number");
        }
        let others = registry().iter().map(|known| known.name()).filter(|name| *name != "auto");
        let others: Vec<&str> = others.collect();
        // `auto` is drawn rarely, because it plans with all other strategies and takes as long.
        let auto = dice(20) == 0;
        let strategy = if auto { "auto" } else { others[dice(others.len() as u64) as usize] };
        let kinds = [DeviceKind::Gpu, DeviceKind::Npu];
        let options = SocOptions {
            prompt: 1 + dice(700) as usize,
            decode: dice(6) as usize,
            verify: 1 + (dice(4) == 0) as usize * dice(4) as usize,
            sync: if dice(2) == 0 { SyncMode::Fast } else { SyncMode::Slow },
            stepped_preparation: dice(2) == 0,
            renderer: dice(3) == 0,
            seed: dice(1000),
            chunk_rows: (dice(2) == 0).then(|| 16 + dice(300) as usize),
            in_flight: 1 + dice(3) as usize,
            fault: (dice(5) == 0)
                .then(|| Fault { kind: kinds[dice(2) as usize], run: dice(40) as usize }),
            cancel: (dice(5) == 0).then(|| Nanos(dice(400_000_000))),
            record,
            ..SocOptions::default()
        };
        Random { strategy, soc, shape: dice(ModelShape::all().len() as u64) as usize, options }
    }

    fn run(&self, what: &str) -> Result<SocOutcome, SocRunError> {
        let model = short(&ModelShape::all()[self.shape]);
        let run = SocSimulation::new(&model, &self.soc, &named(self.strategy), &self.options)?;
        match self.options.record {
            true => record(what, run, self.options.cancel.is_some()),
            false => run.run(),
        }
    }
}

#[test]
fn random_runs_stand_still_or_leak() {
    let (mut ended, mut failed, mut cancelled) = (0, 0, 0);
    let mut plans: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let seeds = cases(1_000, 10_000u64);
    for seed in 0..seeds {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut dice = |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % limit
        };
        let random = Random::new(&mut dice, seed % 50 == 0);
        let what = format!("seed {seed}, {}", random.strategy);
        let plan = plans.entry(random.strategy).or_default();
        plan.0 += 1;
        match random.run(&what) {
            Ok(outcome) => {
                ended += 1;
                let slack = outcome.makespan_ms * (1.0 + 1e-9);
                assert!(outcome.lower_bound_ms <= slack, "{what}: {outcome:?}");
                assert!(outcome.lower_bound_ms > 0.0, "{what}");
                adds_up(&what, &outcome);
            }
            Err(SocRunError::Plan(_)) => plan.1 += 1,
            Err(SocRunError::Cancelled) => cancelled += 1,
            Err(SocRunError::Failed { .. }) => failed += 1,
            Err(error) => panic!("{what}: {error}"),
        }
    }
    let few = seeds as usize / 50;
    assert!(
        ended > seeds as usize / 2 && failed > few && cancelled > few,
        "{ended} {failed} {cancelled}"
    );
    assert_eq!(plans.len(), registry().len());
    // Most shapes of a strategy have a plan.
    for (strategy, (runs, without)) in &plans {
        assert!(*runs > few / 2 && without * 4 <= *runs, "{strategy}: {without} of {runs}");
    }
}
