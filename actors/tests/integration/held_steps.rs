//! Steps of streams beside prompts on several devices: they come as often as the streams need, and the prompts have the devices meanwhile.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::message::{Shutdown, StreamEvent};
use lapwing_plan::strategy::{ChunkShape, PlanInput, Strategy};
use lapwing_plan::time::FixedRate;
use lapwing_plan::{DeviceId, PlanError, Route, Stage};
use lapwing_traces::{Nanos, Recording, Scope, Timeline};

use crate::support::{Setup, World, foretell, generate, live, prompt, recorder, request};
use crate::token_gap::{MICRO, arrivals, long_answer, micros};

/// Each op is a stage of its own; all are on one of the devices, on any of them.
pub(crate) struct OneOfThem;

impl OneOfThem {
    fn on(
        device: usize,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Arc<Route>, PlanError> {
        let nodes = 0..input.graph.nodes().len();
        let stages = nodes.map(|node| Stage::whole(DeviceId(device), node..node + 1)).collect();
        Route::new(stages, format!("on device {device}"), None, input.route_for(shape))
    }
}

impl Strategy for OneOfThem {
    fn name(&self) -> &str {
        "one-of-them"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        OneOfThem::on(0, input, shape)
    }

    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        (0..input.devices.len()).map(|device| OneOfThem::on(device, input, shape)).collect()
    }
}

/// Time of a stage of one row, and of each further row, in µs.
const STAGE: u64 = 100;
const ROW: u64 = 1;

/// Devices that are equally fast.
fn setup(devices: usize) -> Setup {
    let rate = FixedRate { per_stage: micros(STAGE - ROW), per_row: micros(ROW) };
    let strategy: Arc<dyn Strategy> = Arc::new(OneOfThem);
    let mut setup = Setup {
        chunk_rows: 256,
        rates: vec![rate],
        pages: 4096,
        devices,
        strategy: Some(strategy),
        ..Setup::default()
    };
    (setup.config.context, setup.config.permits) = (8192, 4);
    setup
}

/// A recording of a stream and of prompts that arrive beside it.
struct Beside {
    recording: Recording,
    /// Stages of a route.
    stages: u64,
    prompts: u64,
    arrived: u64,
}

impl Beside {
    /// A stream of 200 tokens, and so many prompts of so many tokens.
    fn new(setup: &Setup, prompts: u64, tokens: usize) -> Beside {
        let mut world = World::new(setup);
        world.sim.recorder().set_scope(Scope::All);
        let ids = long_answer(40, 200);
        let stream = world.submit(Nanos(0), &ids, generate(&ids, 200));
        let arrived = 60_000 * MICRO;
        let mut all = vec![(stream, foretell(&ids, 200).0)];
        for seed in 0..prompts {
            let ids = prompt(seed as u32 + 3, tokens);
            let one = world.submit(Nanos(arrived), &ids, generate(&ids, 1));
            all.push((one, foretell(&ids, 1).0));
        }
        world.sim.run();
        world.assert_empty();
        for (stream, expected) in &mut all {
            stream.drain();
            assert_eq!(stream.tokens, *expected);
        }
        let stages = world.layers as u64 * 6 + 3;
        Beside { recording: world.sim.recorder().recording(), stages, prompts, arrived }
    }

    /// Time of a step alone.
    fn step(&self) -> u64 {
        self.stages * STAGE * MICRO
    }

    /// When the last prompt has its token.
    fn end(&self) -> u64 {
        let last = |request| arrivals(&self.recording, request)[0];
        (1..=self.prompts).map(last).max().unwrap_or(self.arrived)
    }

    /// Gaps of the stream while there are prompts.
    fn gaps(&self) -> Vec<u64> {
        let tokens = arrivals(&self.recording, 0);
        let pairs =
            tokens.windows(2).filter(|pair| pair[0] >= self.arrived && pair[1] <= self.end());
        pairs.map(|pair| pair[1] - pair[0]).collect()
    }

    /// How often the scheduler was woken at a time that it had asked for.
    fn alarms(&self) -> usize {
        let timeline = Timeline::new(&self.recording);
        timeline.spans.iter().filter(|span| &*span.name == "alarm").count()
    }

    /// Least time of the prompts and of the stream's steps beside them, in chunks of 256 rows on two devices.
    fn least(&self) -> u64 {
        let prompt = 3000 * ROW + 3000 * (STAGE - ROW) / 256;
        (self.prompts * prompt * self.stages * MICRO + self.gaps().len() as u64 * self.step()) / 2
    }
}

#[test]
fn a_step_is_sent_when_its_stream_needs_it() {
    let beside = Beside::new(&setup(2), 4, 3000);
    let (gaps, gap) = (beside.gaps(), 3 * beside.step());
    assert!(gaps.len() > 10, "{gaps:?}");
    // The longest stage has 256 rows.
    let longest = (STAGE + 255 * ROW) * MICRO;
    assert!(gaps.iter().all(|it| *it <= gap + longest), "{gaps:?}");
    let mean = gaps.iter().sum::<u64>() / gaps.len() as u64;
    assert!(mean >= gap * 4 / 5, "{mean} ns, not {gap}");
    // A chunk takes 1.25 gaps on its device: there are at most two steps for each chunk of the prompts.
    let chunks = 4 * 3000 / 256;
    assert!(gaps.len() <= 2 * chunks, "{} steps", gaps.len());
    assert!(beside.alarms() > 5, "{}", beside.alarms());
    let (took, least) = (beside.end() - beside.arrived, beside.least());
    assert!(took * 100 <= least * 125, "{took} ns, at least {least}");
}

#[test]
fn a_target_says_how_long_a_step_is_held_back() {
    for target in [8_000, 12_000, 25_000] {
        let beside = Beside::new(&Setup { token_gap: Some(micros(target)), ..setup(2) }, 4, 3000);
        let (gaps, longest) = (beside.gaps(), (STAGE + 255 * ROW) * MICRO);
        assert!(gaps.iter().all(|gap| *gap <= target * MICRO + longest), "{target}: {gaps:?}");
        let mean = gaps.iter().sum::<u64>() / gaps.len() as u64;
        assert!(mean >= target * MICRO * 4 / 5, "{target}: {gaps:?}");
    }
}

#[test]
fn no_step_is_held_back_where_no_prompt_needs_its_device() {
    let alone = Beside::new(&setup(2), 0, 0);
    let tokens = arrivals(&alone.recording, 0);
    assert!(tokens.windows(2).all(|pair| pair[1] - pair[0] == alone.step()), "{tokens:?}");
    assert_eq!(alone.alarms(), 0);
    // A chunk has one of the devices, and the stream the other.
    let beside = Beside::new(&setup(2), 1, 250);
    assert!(beside.gaps().len() > 1, "{:?}", beside.gaps());
    assert!(beside.gaps().iter().all(|gap| *gap == beside.step()), "{:?}", beside.gaps());
    assert_eq!(beside.alarms(), 0);
}

#[test]
fn held_steps_are_the_same_each_time() {
    let run = || Beside::new(&setup(2), 3, 1000).recording.events;
    assert_eq!(run(), run());
}

#[test]
fn a_live_engine_holds_steps_back_and_goes_on() {
    let setup = Setup { token_gap: Some(Duration::from_millis(20)), ..setup(2) };
    let (live, pool) = live(&setup, 8, &recorder());
    let submit = |ids: &[u32], tokens| {
        live.submit(live.admit().expect("room"), request(ids, tokens)).expect("an engine")
    };
    let ids = long_answer(40, 60);
    let mut all = vec![(submit(&ids, 60), foretell(&ids, 60).0)];
    for seed in 0..3 {
        let ids = prompt(seed, 1500);
        all.push((submit(&ids, 1), foretell(&ids, 1).0));
    }
    for (mut events, expected) in all {
        let mut found = Vec::new();
        loop {
            match events.next_blocking() {
                StreamEvent::Token(token) => found.push(token.id),
                StreamEvent::Finished(_) => break,
                other => assert!(matches!(other, StreamEvent::Prompt(_)), "{other:?}"),
            }
        }
        assert_eq!(found, expected);
    }
    live.shutdown(Shutdown::Drain);
    assert_eq!(pool.free_pages(), pool.capacity());
}
