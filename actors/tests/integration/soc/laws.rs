//! Laws that hold for every system.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::soc::{SocModel, SocOptions, SocOutcome, SocSimulation};
use lapwing_kernels::model::shape::ModelShape;
use lapwing_plan::soc::{PRESETS, Soc, SyncMode};
use lapwing_plan::strategy::{
    ChunkShape, PlanInput, PromptRows, Strategy, StrategyOptions, by_name, registry,
};
use lapwing_plan::{PlanError, Route};
use lapwing_traces::Timeline;
use lapwing_traces::event::Activity;
use proptest::prelude::*;

use super::{model, named, near, of, run, sd8gen3, short, zero_cost};

/// Two concurrent memory-bound matmuls of one row.
#[test]
fn devices_together_get_more_bandwidth_than_there_is() {
    let model = short(&ModelShape::all()[0]);
    let mut soc = zero_cost();
    let decode = |soc: &Soc| run(&model, soc, "row-cut", &of(64)).decode.expect("steps");
    let free = decode(&soc);
    for cap in [55.0, 40.0, 20.0, 10.0, 3.5] {
        soc.set("memory.cap", cap).expect("a number");
        let shared = decode(&soc);
        let rate = shared.gigabytes / shared.ms * 1e3;
        // Copies take no time here, but move bytes.
        assert!(rate <= cap * 1.005, "{rate} of {cap} GB/s");
        assert!(shared.ms > free.ms, "{cap}");
        near("bytes", shared.gigabytes, free.gigabytes, 1e-4);
    }
    // Below the smallest demand of any of them, only memory bandwidth counts.
    let shared = decode(&soc);
    near("time", shared.ms, shared.gigabytes / 3.5 * 1e3, 0.02);
}

/// Matmuls of many rows, which are compute-bound while there is enough bandwidth.
#[test]
fn work_that_computes_gets_more_bandwidth_than_there_is() {
    let model = short(&ModelShape::all()[0]);
    let mut soc = zero_cost();
    for strategy in ["gpu-only", "layer-level", "tensor-level", "row-cut", "sequence-cut"] {
        for rows in [2, 20, 64, 300] {
            for cap in [30.0, 5.0, 1.0, 0.1] {
                soc.set("memory.cap", cap).expect("a number");
                let options = SocOptions { decode: 0, record: true, ..of(rows) };
                let outcome = run(&model, &soc, strategy, &options);
                let timeline = Timeline::new(outcome.recording.as_ref().expect("a recording"));
                // Copies take no time here, but move bytes. The runtime counts twice as many bytes
                // as the system moves.
                let copies = timeline.spans.iter().filter(|span| span.activity == Activity::Copy);
                let copied: f64 = copies.map(|span| span.tags.bytes as f64 / 2e9).sum();
                let rate = (outcome.prefill.gigabytes - copied) / outcome.prefill.ms * 1e3;
                assert!(rate <= cap * 1.0001, "{strategy}, {rows} rows: {rate} of {cap} GB/s");
            }
        }
    }
}

/// Without overlap the longest chain is the whole run; with overlap it exceeds each processor's own
/// work.
#[test]
fn the_lower_bound_is_only_that_of_the_busiest_processor() {
    let (llama, soc) = (model("llama-3-8b"), sd8gen3());
    let options = SocOptions { decode: 4, ..of(256) };
    for strategy in ["gpu-only", "layer-level", "npu-padding"] {
        let outcome = run(&llama, &soc, strategy, &options);
        near(strategy, outcome.lower_bound_ms, outcome.makespan_ms, 1e-6);
    }
    let outcome = run(&llama, &soc, "tensor-level", &options);
    let busiest = |units: &[lapwing_actors::simulate::soc::SocUnit], at: usize| units[at].busy_ms;
    let decode = outcome.decode.as_ref().expect("steps");
    for at in 0..2 {
        let busy = busiest(&outcome.prefill.units, at) + busiest(&decode.units, at);
        assert!(busy < outcome.lower_bound_ms, "{busy} {}", outcome.lower_bound_ms);
    }
    assert!(outcome.lower_bound_ms <= outcome.makespan_ms * (1.0 + 1e-9));
}

/// Routes of a first run, for every run after it.
struct Fixed {
    inner: Arc<dyn Strategy>,
    rows: Mutex<HashMap<PromptRows, usize>>,
    routes: Mutex<HashMap<ChunkShape, Result<Arc<Route>, PlanError>>>,
}

impl Fixed {
    fn of(inner: Arc<dyn Strategy>) -> Arc<dyn Strategy> {
        Arc::new(Fixed { inner, rows: Mutex::default(), routes: Mutex::default() })
    }
}

impl Strategy for Fixed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        let mut rows = self.rows.lock().expect("no panic");
        *rows.entry(prompt).or_insert_with(|| self.inner.chunk_rows(input, prompt))
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let mut routes = self.routes.lock().expect("no panic");
        routes.entry(*shape).or_insert_with(|| self.inner.route(input, shape)).clone()
    }
}

/// Makes the same run twice. A run may fail only because no plan exists, and then both must fail.
fn both(
    model: &SocModel,
    strategy: &Arc<dyn Strategy>,
    runs: [(&Soc, &SocOptions); 2],
) -> Result<Option<[SocOutcome; 2]>, TestCaseError> {
    let [first, second] = runs.map(|(soc, options)| {
        SocSimulation::new(model, soc, strategy, options).and_then(SocSimulation::run)
    });
    match (first, second) {
        (Ok(first), Ok(second)) => Ok(Some([first, second])),
        (Err(SocRunError::Plan(first)), Err(SocRunError::Plan(second))) if first == second => {
            Ok(None)
        }
        (first, second) => {
            let error = |r: Result<SocOutcome, SocRunError>| r.err().map(|e| e.to_string());
            let reason = format!("{}: {:?} {:?}", strategy.name(), error(first), error(second));
            Err(TestCaseError::fail(reason))
        }
    }
}

fn strategy(at: usize) -> &'static str {
    let strategies = registry();
    strategies[at % strategies.len()].name()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Holds for the memory's total bandwidth, and for the bandwidth of a processor that runs alone or
    /// whose demand is met. Under contention a higher demand takes bandwidth from the others.
    #[test]
    fn more_bandwidth_makes_nothing_slower(
        shape in 0..6usize,
        at in 0..64usize,
        rows in 1..700usize,
        number in 0..8usize,
        cap in 3.0..62.0f64,
        factor in 1.01..4.0f64,
    ) {
        let paths = [
            "gpu.bandwidth", "npu.bandwidth", "memory.copy", "cpu.bandwidth",
            "npu.element_bandwidth", "memory.cap", "memory.cap", "memory.cap",
        ];
        let (strategy, model) = (strategy(at), short(&ModelShape::all()[shape]));
        let (path, mut soc) = (paths[number], sd8gen3());
        let alone = ["cpu-only", "gpu-only"].contains(&strategy);
        let limited = alone || path == "memory.cap";
        soc.set("memory.cap", if limited { cap } else { f64::INFINITY }).expect("a number");
        let mut more = soc.clone();
        more.set(path, soc.value(path).expect("a number") * factor).expect("a number");
        let options = SocOptions { decode: 2, ..of(rows) };
        // A choice between strategies follows a prediction, which does not model the order of arrival.
        let fixed = if strategy == "auto" { Fixed::of(named(strategy)) } else { named(strategy) };
        let runs = [(&soc, &options), (&more, &options)];
        let Some([before, after]) = both(&model, &fixed, runs)? else { return Ok(()) };
        prop_assert!(
            after.makespan_ms <= before.makespan_ms * (1.0 + 1e-6),
            "{strategy}, {rows} rows, cap {cap}, {path} × {factor}: {} then {}",
            before.makespan_ms, after.makespan_ms
        );
    }

    /// The routes stay those of the shorter time. Of several chunks in flight, one that comes later may let another pass.
    #[test]
    fn a_longer_launch_or_copy_makes_nothing_faster(
        shape in 0..6usize,
        at in 0..64usize,
        rows in 1..700usize,
        number in 0..3usize,
        micros in 0.0..500.0f64,
        more in 0.0..500.0f64,
        is_slow in proptest::bool::ANY,
    ) {
        let path = ["npu.launch", "sync.copy", "sync.fast"][number];
        let (model, mut soc) = (short(&ModelShape::all()[shape]), sd8gen3());
        // With a limit, work that starts later may meet less contention.
        soc.set("memory.cap", f64::INFINITY).expect("a number");
        soc.set(path, micros).expect("a number");
        let mut longer = soc.clone();
        longer.set(path, micros + more).expect("a number");
        let sync = if is_slow { SyncMode::Slow } else { SyncMode::Fast };
        let options = SocOptions { decode: 2, sync, in_flight: 1, ..of(rows) };
        let fixed = Fixed::of(named(strategy(at)));
        let Some([before, after]) = both(&model, &fixed, [(&soc, &options), (&longer, &options)])?
        else { return Ok(()) };
        prop_assert!(
            after.makespan_ms >= before.makespan_ms * (1.0 - 1e-9),
            "{}, {rows} rows, {path} {micros} + {more}: {} then {}",
            fixed.name(), before.makespan_ms, after.makespan_ms
        );
    }

    #[test]
    fn free_synchronisation_is_the_same_fast_and_slow(
        shape in 0..6usize,
        at in 0..64usize,
        rows in 1..700usize,
        preset in 0..PRESETS.len(),
        scale in proptest::collection::vec(0.25..4.0f64, 11),
        changed in proptest::bool::ANY,
    ) {
        let model = short(&ModelShape::all()[shape]);
        let mut soc = Soc::preset(PRESETS[preset].0).expect("a preset");
        let paths = [
            "gpu.rate", "gpu.kernel", "gpu.bandwidth", "npu.rate",
            "npu.bandwidth", "npu.launch", "cpu.rate", "memory.cap", "memory.copy",
            "gpu.small_rate", "npu.wide_rate",
        ];
        for (path, factor) in paths.iter().zip(&scale).filter(|_| changed) {
            soc.set(path, soc.value(path).expect("a number") * factor).expect("a number");
        }
        // A queue that was drained restarts, and its host submits anew.
        for path in ["sync.copy", "sync.fast", "gpu.submit_empty", "gpu.submit_queued"] {
            soc.set(path, 0.0).expect("a number");
        }
        let options = |sync| SocOptions { decode: 2, sync, planned_sync: sync, ..of(rows) };
        let (fast, slow) = (options(SyncMode::Fast), options(SyncMode::Slow));
        let runs = [(&soc, &fast), (&soc, &slow)];
        if let Some([fast, slow]) = both(&model, &named(strategy(at)), runs)? {
            prop_assert_eq!(fast, slow);
        }
    }
}

#[test]
fn chunks_in_flight_keep_the_busiest_processor_busy() {
    let (llama, mut soc) = (model("llama-3-8b"), sd8gen3());
    for rate in [0.1, 0.05, 0.04, 0.03] {
        soc.set("gpu.attention_rate", rate).expect("a number");
        for rows in [64, 128] {
            let options = StrategyOptions { chunk: Some(rows), ..StrategyOptions::default() };
            let strategy = by_name("chunk-graph", &options).expect("is known");
            let outcome = |in_flight| {
                let chunk_rows = Some(rows);
                let options = SocOptions { decode: 0, in_flight, chunk_rows, ..of(1024) };
                let simulation = SocSimulation::new(&llama, &soc, &strategy, &options);
                simulation.and_then(|simulation| simulation.run()).expect("an outcome")
            };
            let (one, all) = (outcome(1), outcome(16));
            // Up to submissions, which take less time on a busy queue.
            near("the same work", all.lower_bound_ms, one.lower_bound_ms, 1e-3);
            let ratio = all.makespan_ms / all.lower_bound_ms;
            assert!((1.0 - 1e-9..1.01).contains(&ratio), "{rate} TFLOP/s, {rows} rows: {ratio}");
            assert!(one.makespan_ms > 1.3 * all.makespan_ms, "{rate} TFLOP/s, {rows} rows");
        }
    }
}
