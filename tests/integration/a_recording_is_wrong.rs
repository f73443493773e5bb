//! Recordings of a real model, live and in virtual time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lapwing::compare::Compare;
use lapwing::traces::analysis::IdleCause;
use lapwing::traces::event::{Activity, Milestone};
use lapwing::traces::timeline::{RequestMilestone, Span};
use lapwing::traces::{Analysis, Clock, OsClock, Scope, Timeline};
use lapwing::{Engine, Shutdown};
use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::Simulation;
use lapwing_actors::message::{Generate, SchedulerMessage, Submit, Task};
use lapwing_actors::policy::{ClientId, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::sample::{Sampler, SamplingParams};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_kernels::cpu::roofline::Roofline;
use lapwing_kernels::cpu::{Cpu, Isa};
use lapwing_plan::strategy::LayerSplit;
use lapwing_plan::time::FixedRate;
use lapwing_traces::Nanos;

use crate::simulated::Simulated;
use crate::support::{SMOLLM2, builder, collect_ids, greedy, ids, needs, reference};

/// The stages of a chunk, and layer and name of each of its dispatches.
type OpsOfChunk<'a> = (usize, Vec<(Option<u16>, &'a str)>);

/// Two devices with half of the layers each, in virtual time, computing true values.
fn two_devices() -> Simulation {
    let rate =
        FixedRate { per_stage: Duration::from_micros(300), per_row: Duration::from_micros(20) };
    let strategy = Arc::new(LayerSplit);
    Simulated { devices: &["front", "back"], strategy, rate, chunk_rows: 32, pages: 64 }.start()
}

#[test]
fn idle_time_of_a_simulated_run_has_one_cause() {
    needs!(SMOLLM2);
    let reference = reference("greedy/smollm2.json");
    let prompts = reference["prompts"].as_array().expect("prompts").iter();
    let mut prompts: Vec<_> = prompts.map(|p| ids(&p["prompt_ids"])).collect();
    prompts.sort_by_key(Vec::len);
    let mut simulation = two_devices();
    simulation.recorder().set_scope(Scope::All);
    let limit = AdmissionLimit::new(4);
    let receivers: Vec<_> = [prompts.len() - 1, 0, prompts.len() / 2]
        .into_iter()
        .enumerate()
        .map(|(number, prompt)| {
            let ids = prompts[prompt].clone();
            let (sink, receiver) = ChannelSink::new(100);
            let task = Task::Generate(Box::new(Generate {
                sampler: Sampler::new(SamplingParams::greedy(), &ids),
                stop_ids: [].into(),
                tokens_max: 12,
                drafts: None,
            }));
            let admission = limit.try_take().expect("a admission");
            let trace = tracing::Span::none();
            let submit = Submit {
                model: Default::default(),
                client: ClientId::anonymous(),
                urgency: Urgency::default(),
                prefix: PrefixUse::Off,
                ids,
                task,
                sink,
                admission,
                trace,
            };
            let at = Nanos(number as u64 * 2_500_000);
            simulation.send_at(at, SchedulerMessage::Submit(Box::new(submit)));
            receiver
        })
        .collect();
    simulation.run();
    // Twelve tokens and the end.
    assert!(receivers.iter().all(|receiver| receiver.len() == 13));
    let timeline = Timeline::new(&simulation.recorder().recording());
    let analysis = Analysis::new(&timeline);
    assert!(timeline.is_virtual() && timeline.makespan() > 10_000_000);
    let gaps = |cause| analysis.gaps.iter().filter(move |gap| gap.cause == cause);
    assert_eq!(gaps(IdleCause::Unknown).count(), 0);
    for (lane, info) in timeline.lanes.iter().enumerate() {
        // Ops within a stage add up to the stage's time.
        let outer = timeline.spans.iter().filter(|span| span.parent.is_none());
        let spans: Vec<_> = outer.filter(|span| span.lane == lane).collect();
        let busy: u64 = spans.iter().map(|span| span.duration()).sum();
        let idle = analysis.gaps.iter().filter(|gap| gap.lane == lane);
        let idle: u64 = idle.map(|gap| gap.end - gap.start).sum();
        if !spans.is_empty() {
            assert_eq!(busy + idle, timeline.makespan(), "{}", info.name);
        }
    }
    // In decode each of the two devices waits for the other.
    for name in ["front", "back"] {
        let lane = timeline.lanes.iter().position(|lane| lane.name == name).expect("a lane");
        assert!(gaps(IdleCause::Dependency(lane)).count() > 5, "no wait for {name} was recorded");
    }
}

/// An engine that computes a prompt each time.
async fn engine() -> Engine {
    builder(SMOLLM2).chunk_rows(16).prefix_cache(false).build().await.expect("an engine")
}

const TEXT: &str = "The capital of France is Paris, and the capital of Italy is Rome. There are \
                    many more, such as";

async fn generate(engine: &Engine, tokens: usize, traced: bool) -> Vec<u32> {
    let mut request = greedy(TEXT, tokens);
    request.traced = traced;
    collect_ids(engine.generate(request).await.expect("a stream")).await
}

#[tokio::test]
async fn every_op_message_and_token_is_recorded() {
    needs!(SMOLLM2);
    let engine = engine().await;
    let plain = generate(&engine, 24, false).await;
    engine.recorder().set_scope(Scope::All);
    let recorded = generate(&engine, 24, false).await;
    engine.shutdown(Shutdown::Drain).await.expect("an end");
    assert_eq!(recorded, plain, "recording changes the tokens");
    let recording = engine.recorder().recording();
    assert_eq!(recording.meta["architecture"], "llama");
    assert_eq!(recording.meta["strategy"], "cpu-only");
    assert_eq!(recording.meta["threads"], "2");
    let timeline = Timeline::new(&recording);
    assert_eq!((timeline.dropped, timeline.orphans), (0, 0));
    let tokens = timeline.milestones.iter().filter(|s| s.milestone == Milestone::Token).count();
    assert_eq!(tokens, 24);
    let lost: Vec<_> = timeline.messages.iter().filter(|m| m.received.is_none()).collect();
    // The message that reports the end of a stream may arrive at an ended one.
    assert!(lost.iter().all(|m| m.name == "wake"), "{lost:?}");
    let ops = engine.placement().stages[0].ops;
    let last_layer = engine.model().layers as u16 - 1;
    // By chunk: its stages, and the ops of its dispatches.
    let mut of_chunk: HashMap<u64, OpsOfChunk<'_>> = HashMap::new();
    for span in &timeline.spans {
        assert!(span.finished, "{span:?}");
        let Some(chunk) = span.tags.chunk.filter(|_| span.activity == Activity::Compute) else {
            continue;
        };
        let (stages, inner) = of_chunk.entry(chunk).or_default();
        match span.parent {
            None => *stages += 1,
            Some(parent) => {
                let parent = &timeline.spans[parent];
                assert!(parent.start <= span.start && span.end <= parent.end);
                // In the first chunk of the prompt, no row is selected for the last layer.
                let selects = span.tags.layer.is_none_or(|layer| layer == last_layer);
                assert!(span.tags.bytes > 0 || selects, "{span:?}");
                inner.extend(span.ops().map(|op| (span.tags.layer, op)));
            }
        }
    }
    // Two chunks of a prompt of 17 to 32 tokens, and one for each token after the first.
    assert_eq!(of_chunk.len(), 2 + 23);
    for (stages, mut inner) in of_chunk.into_values() {
        assert_eq!((stages, inner.len()), (1, ops));
        inner.sort_unstable();
        assert!(inner.windows(2).all(|pair| pair[0] != pair[1]), "an op twice: {inner:?}");
    }
    check_sums(&timeline);
    check_peak(&timeline);
}

/// Bytes and FLOPs of a stage are the sums of those of its ops.
fn check_sums(timeline: &Timeline) {
    for (index, stage) in timeline.spans.iter().enumerate() {
        if stage.parent.is_some() || stage.activity != Activity::Compute {
            continue;
        }
        let ops: Vec<_> = timeline.spans.iter().filter(|op| op.parent == Some(index)).collect();
        assert_eq!(stage.tags.flops, ops.iter().map(|op| op.tags.flops).sum::<u64>());
        assert_eq!(stage.tags.bytes, ops.iter().map(|op| op.tags.bytes).sum::<u64>());
        // 135 million weights, each used once per row, those of the head only for the selected rows.
        let per_row = stage.tags.flops / u64::from(stage.tags.rows);
        assert!((150_000_000..400_000_000).contains(&per_row), "{per_row}");
    }
}

/// No op computes faster than the processor can: its time is the time of all of its work. Other programs can
/// make a measured peak too low, never too high, so the highest of several is taken.
fn check_peak(timeline: &Timeline) {
    /// Clocks differ between the measurement and the run.
    const NOISE: f64 = 4.0;
    const MEASUREMENTS: usize = 50;
    let ops = timeline.spans.iter().filter(|span| span.parent.is_some());
    let rate = |span: &Span| span.tags.flops as f64 / (span.duration().max(1) as f64 / 1e9);
    let Some(fastest) = ops.max_by(|a, b| rate(a).total_cmp(&rate(b))) else { return };
    let cpu = Cpu::new(2, Isa::best());
    let clock = OsClock::start();
    let elapsed = || Duration::from_nanos(clock.now().0);
    let mut peak = 0.0f64;
    for _ in 0..MEASUREMENTS {
        let roofline = Roofline::measure(&cpu, 5, &elapsed).expect("memory to read");
        let peaks = [roofline.int8, roofline.bf16, roofline.f32].into_iter().flatten();
        peak = peaks.map(|peak| peak.ops_per_second).fold(peak, f64::max);
        if rate(fastest) <= NOISE * peak {
            return;
        }
    }
    panic!("{:e} of a peak of {peak:e} FLOP/s: {fastest:?}", rate(fastest));
}

#[tokio::test]
async fn only_marked_requests_are_recorded() {
    needs!(SMOLLM2);
    let engine = engine().await;
    let alone = generate(&engine, 12, false).await;
    assert_eq!(engine.recorder().recording().events, [], "recording was off");
    engine.recorder().set_scope(Scope::Marked);
    let (plain, marked) = tokio::join!(generate(&engine, 12, false), generate(&engine, 12, true));
    assert_eq!((&plain, &marked), (&alone, &alone));
    let timeline = Timeline::new(&engine.recorder().recording());
    let submitted = timeline.milestones.iter().filter(|s| s.milestone == Milestone::Submitted);
    let requests: Vec<_> = submitted.map(|s| s.request).collect();
    let [marked] = requests[..] else { panic!("{requests:?}") };
    assert!(timeline.milestones.iter().all(|s| s.request == marked));
    let tokens = timeline.milestones.iter().filter(|s| s.milestone == Milestone::Token).count();
    assert_eq!(tokens, 12);
    assert!(timeline.spans.iter().all(|s| s.tags.request.is_none_or(|r| r == marked)));
    assert!(timeline.spans.iter().any(|s| s.activity == Activity::Sample));
}

/// A clock that holds up the device's worker: it records each event a while after the event.
struct LateWorker(OsClock);

impl Clock for LateWorker {
    fn now(&self) -> Nanos {
        let now = self.0.now();
        if std::thread::current().name() == Some("lapwing-cpu") {
            #[expect(clippy::disallowed_methods, reason = "a slow thread")]
            std::thread::sleep(Duration::from_millis(2));
        }
        now
    }
}

#[tokio::test]
async fn the_last_event_of_a_request_is_late_and_not_in_the_next_recording() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let compare = Compare::new(Engine::builder().model(model).threads(1));
    let compare = compare.strategy("cpu-only").lengths([4, 6]).tokens(2).repetitions(2);
    let compare = compare.clock(Arc::new(LateWorker(OsClock::start())));
    let compared = compare.run(|_| {}).await.expect("a comparison");
    for run in compared.lengths.iter().flat_map(|length| &length.runs) {
        let timeline = &run.timeline;
        let submitted = |of: &&RequestMilestone| of.milestone == Milestone::Submitted;
        let begins: Vec<_> = timeline.milestones.iter().filter(submitted).collect();
        let [begin] = begins[..] else { panic!("{begins:?}") };
        assert!(timeline.milestones.iter().all(|of| of.request == begin.request));
        for span in &timeline.spans {
            assert!(span.start >= begin.at && span.finished, "{span:?} before {begin:?}");
        }
        assert_eq!(timeline.orphans, 0);
        // The worker sends this message from the span that it records last.
        let reports: Vec<_> = timeline.messages.iter().filter(|m| m.name == "progress").collect();
        assert!(!reports.is_empty() && reports.iter().all(|m| m.from.is_some()), "{reports:?}");
    }
}
