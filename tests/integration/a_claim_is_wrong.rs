//! Short forms of the benches: devices overlap in real time, predictions hold, a strategy that prepares
//! graphs on the spot is timed with their preparation, and recording is cheap.
//!
//! Bounds are wide, and a busy machine has several attempts.

use std::path::PathBuf;

use lapwing::compare::{Compare, Comparison, StrategyRun};
use lapwing::devices::DeviceSpec;
use lapwing::traces::Scope;
use lapwing::traces::event::Activity;
use lapwing::{Engine, EngineBuilder, Prompt, Request};

use crate::support::{SMOLLM2, builder};

const ATTEMPTS: usize = 8;
/// So slow that computing true values takes a small part of the time.
const DEVICES: &str = "cpu=throttled:gflops=0.05,gbps=1+gpu=throttled:gflops=0.15,gbps=1+\
                       npu=systolic:gflops=0.45,gbps=1";

fn tiny(devices: &str) -> EngineBuilder {
    let model =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/tiny/llama.gguf"));
    let devices = DeviceSpec::list(devices).expect("devices");
    devices.into_iter().fold(Engine::builder().model(model), EngineBuilder::device)
}

fn run<'a>(compared: &'a Comparison, strategy: &str) -> &'a StrategyRun {
    let runs = &compared.lengths[0].runs;
    runs.iter().find(|run| run.strategy == strategy).expect(strategy)
}

/// The bounds that a comparison misses.
fn missed(compared: &Comparison) -> Vec<String> {
    let mut missed = Vec::new();
    let mut check = |kept: bool, what: String| {
        if !kept {
            missed.push(what);
        }
    };
    let ttft = |strategy| run(compared, strategy).ttft_ms.median;
    let overlap = run(compared, "tensor-level").figures().overlap.unwrap_or(0.0);
    check(overlap >= 0.2, format!("devices overlap during {overlap:.2} of their busy time"));
    let ratio = ttft("tensor-level") / ttft("gpu-only");
    check(ratio <= 0.8, format!("three devices take {ratio:.2} of the time of one"));
    let fastest = compared.lengths[0].runs[compared.lengths[0].fastest].ttft_ms.median;
    let ratio = ttft("auto") / fastest;
    check(ratio <= 1.3, format!("auto takes {ratio:.2} of the fastest strategy's time"));
    for run in &compared.lengths[0].runs {
        let predicted = run.predicted.expect("known times").as_secs_f64() * 1e3;
        let ratio = run.ttft_ms.median / predicted;
        check((0.7..=1.5).contains(&ratio), format!("{}: {ratio:.2} of predicted", run.strategy));
    }
    missed
}

#[tokio::test]
async fn devices_overlap_in_real_time_as_predicted() {
    let mut all = Vec::new();
    for _ in 0..ATTEMPTS {
        let compare = Compare::new(tiny(DEVICES)).lengths([200]).tokens(1).repetitions(1);
        let strategies = ["gpu-only", "npu-padding", "tensor-level", "auto"];
        let compare = strategies.into_iter().fold(compare, Compare::strategy);
        let compared = compare.run(|_| {}).await.expect("a comparison");
        assert!(compared.lengths[0].same_tokens);
        match missed(&compared) {
            none if none.is_empty() => return,
            missed => all.push(missed),
        }
    }
    panic!("{all:?}");
}

#[tokio::test]
async fn a_strategy_that_prepares_on_the_spot_is_timed_with_its_preparation() {
    let devices = "cpu+npu=systolic:gflops=50,gbps=50,prepare=30ms";
    let compare = Compare::new(tiny(devices)).strategy("online-prepare").strategy("npu-padding");
    let compare = compare.lengths([70, 20]).tokens(2).repetitions(3);
    let compared = compare.run(|progress| assert!(progress.done < progress.all)).await;
    for length in compared.expect("a comparison").lengths {
        assert!(length.same_tokens, "{} tokens", length.tokens);
        for run in &length.runs {
            let on_the_spot = run.strategy == "online-prepare";
            assert_eq!(run.figures().prepares_on_the_spot, on_the_spot, "{}", run.strategy);
            let prepares = run.timeline.spans.iter().filter(|s| s.activity == Activity::Prepare);
            let prepared = prepares.count();
            let what = format!("{}, {} tokens: {prepared}", run.strategy, length.tokens);
            assert_eq!(prepared > 0, on_the_spot, "{what} graphs prepared in the recorded run");
            assert!(!on_the_spot || run.ttft_ms.min >= 30.0, "{what}, {:?}", run.ttft_ms);
        }
    }
}

/// Median time of a generated token divided by its predicted time.
async fn decode_of_predicted(strategy: &str) -> f64 {
    let devices = "cpu=throttled:gflops=0.05,gbps=0.02+npu=systolic:gflops=0.05,gbps=0.02";
    let engine = tiny(devices).strategy(strategy).context(64);
    let engine = engine.build().await.expect("an engine");
    let predicted = engine.plan_decode(1, 8).expect("a plan").predicted.expect("known speeds");
    let request = Request::new(Prompt::Ids(vec![1])).greedy().ignore_eos().max_tokens(12);
    let mut stream = engine.generate(request).await.expect("a stream");
    let clock = engine.recorder().clock();
    let mut times = Vec::new();
    while let Some(token) = stream.next().await {
        token.expect("a token");
        times.push(clock.now());
    }
    let mut gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort();
    gaps[gaps.len() / 2].as_secs_f64() / predicted.as_secs_f64()
}

#[tokio::test]
async fn a_row_cut_of_decode_takes_its_predicted_time() {
    for strategy in ["row-cut", "cpu-only"] {
        let mut all = Vec::new();
        while !all.last().is_some_and(|ratio| (0.7..=1.5).contains(ratio)) {
            assert!(all.len() < ATTEMPTS, "{strategy}: {all:?} of the predicted time");
            all.push(decode_of_predicted(strategy).await);
        }
    }
}

/// Tokens between two switches of the recorder.
const BLOCK: usize = 4;

/// Median time of a token without recording divided by that with recording.
async fn speed_with_recording(engine: &Engine, tokens: usize) -> f64 {
    let recorder = engine.recorder();
    let request = Request::new(Prompt::Ids(vec![1])).greedy().ignore_eos().max_tokens(tokens);
    let mut stream = engine.generate(request).await.expect("a stream");
    let mut gaps = [Vec::new(), Vec::new()];
    let mut last = recorder.clock().now();
    let mut count = 0;
    while let Some(token) = stream.next().await {
        token.expect("a token");
        let now = recorder.clock().now();
        let on = recorder.scope() == Scope::All;
        // The first gap after a switch is part on and part off; the first blocks warm up.
        if count % BLOCK >= 2 && count > 2 * BLOCK {
            gaps[usize::from(on)].push((now - last).as_nanos() as f64);
        }
        last = now;
        count += 1;
        if count % BLOCK == 0 {
            recorder.set_scope(if on { Scope::Off } else { Scope::All });
        }
    }
    recorder.set_scope(Scope::Off);
    assert!(recorder.take().events.len() > tokens, "half of the tokens are recorded");
    let [off, on] = gaps.map(|mut gaps| {
        gaps.sort_by(f64::total_cmp);
        gaps[gaps.len() / 2]
    });
    off / on
}

#[tokio::test]
async fn recording_costs_little_of_the_decode_speed() {
    let engine = builder(SMOLLM2).threads(1).context(128).build().await.expect("an engine");
    let mut ratios = Vec::new();
    while ratios.len() < ATTEMPTS {
        ratios.push(speed_with_recording(&engine, 96).await);
        if ratios.last().is_some_and(|ratio| *ratio >= 0.9) {
            return;
        }
    }
    panic!("speed with recording / without: {ratios:?}");
}
