//! Random plans: every block on a random device, or divided at random between several, with
//! random durations, cancellations, device errors, and evicted or refused graphs. In all cases nothing
//! hangs, is lost, leaks, or is computed twice or out of order, and every successful stream has exactly
//! its tokens.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::message::{RollBack, SchedulerMessage};
use lapwing_actors::sequence::SequenceId;
use lapwing_kernels::device::{DeviceError, DeviceKind, GraphKey, Prepare};
use lapwing_kernels::graph::RowSet;
use lapwing_kernels::part::{OperandOrder, Part, Share};
use lapwing_plan::blocks::{BlockKind, blocks};
use lapwing_plan::strategy::{ChunkShape, PlanInput, PromptRows, Strategy};
use lapwing_plan::time::{Job, TimeModel};
use lapwing_plan::{DeviceId, PlanError, Route, Stage, StagePart, StageWork};
use lapwing_traces::event::Activity;
use lapwing_traces::{Nanos, Recording, Scope, Timeline};

use crate::cases::cases;
use crate::requests::{Draw, Request, play};
use crate::support::{Fault, SIZES, Setup, World};

/// Random numbers that depend only on a seed.
struct Dice(u64);

impl Dice {
    fn of(seed: impl Hash) -> Dice {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        Dice(hasher.finish() | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        ((self.0 >> 33) % limit as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A strategy that plans at random.
pub struct RandomPlans(pub u64);

impl Strategy for RandomPlans {
    fn name(&self) -> &str {
        "random"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        1 + Dice::of((self.0, prompt)).below(prompt.remaining.min(input.chunk_rows))
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let mut dice = Dice::of((self.0, shape));
        let mut stages: Vec<Stage> = Vec::new();
        for block in blocks(input.graph) {
            let nodes = &input.graph.nodes()[block.nodes.clone()];
            let mut able: Vec<usize> = (0..input.devices.len())
                .filter(|d| nodes.iter().all(|node| input.devices[*d].runs(&node.op)))
                .collect();
            let selected =
                nodes.iter().all(|n| input.graph.value(n.output).rows == RowSet::Selected);
            let rows = if selected { shape.selected } else { shape.rows };
            let first = able.remove(dice.below(able.len()));
            let cut_rows = block.kind != BlockKind::Dynamic
                && input.graph.can_cut_rows(block.nodes.clone())
                && rows > 1;
            let cut_features = block.kind == BlockKind::Matmul;
            let parts = if able.is_empty() || dice.one_in(2) {
                vec![(first, None, Share::WHOLE)]
            } else {
                let second = able.remove(dice.below(able.len()));
                if cut_features && (!cut_rows || dice.one_in(2)) {
                    let share = |from, to| Share { from, to, of: 2 };
                    vec![(first, None, share(0, 1)), (second, None, share(1, 2))]
                } else if cut_rows {
                    let border = 1 + dice.below(rows - 1);
                    let mut parts = vec![
                        (first, Some(0..border), Share::WHOLE),
                        (second, Some(border..rows), Share::WHOLE),
                    ];
                    if let (Some(third), true) = (able.first(), rows - border > 1) {
                        parts[1].1 = Some(border..border + 1);
                        parts.push((*third, Some(border + 1..rows), Share::WHOLE));
                    }
                    parts
                } else {
                    vec![(first, None, Share::WHOLE)]
                }
            };
            let prepare = if dice.one_in(8) { Prepare::OnTheSpot } else { Prepare::Ahead };
            let parts = parts.into_iter().map(|(device, part_rows, features)| {
                let count = part_rows.as_ref().map_or(rows, ExactSizeIterator::len);
                let npu = input.devices[device].kind == DeviceKind::Npu;
                let graphs = match (npu, prepare) {
                    (false, _) => Vec::new(),
                    (true, Prepare::OnTheSpot) => vec![count.max(1).next_multiple_of(32)],
                    (true, Prepare::Ahead) => graphs(count, &mut dice),
                };
                let order = OperandOrder::Straight;
                let part = Part { rows: part_rows, features, graphs, order, ..Part::WHOLE };
                StagePart { device: DeviceId(device), part }
            });
            let stage = Stage {
                work: StageWork::Nodes,
                nodes: block.nodes,
                parts: parts.collect(),
                prepare,
            };
            match stages.last_mut() {
                Some(last) if joins(last, &stage) && dice.one_in(2) => {
                    last.nodes.end = stage.nodes.end;
                }
                _ => stages.push(stage),
            }
        }
        Route::new(stages, "by dice".to_owned(), None, input.route_for(shape))
    }

    /// Of half of the shapes several, among which the scheduler chooses.
    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        let others = if Dice::of((self.0, shape, "several")).one_in(2) { 4 } else { 0 };
        let seeds = (0..=others).map(|other| self.0.wrapping_add(other));
        seeds.map(|seed| RandomPlans(seed).route(input, shape)).collect()
    }
}

/// Merges adjacent whole stages of one device if it accepts any number of rows.
fn joins(last: &Stage, next: &Stage) -> bool {
    let whole = |stage: &Stage| stage.parts.len() == 1 && stage.parts[0].part == Part::WHOLE;
    whole(last) && whole(next) && last.only_device() == next.only_device()
}

fn graphs(rows: usize, dice: &mut Dice) -> Vec<usize> {
    let mut graphs = Vec::new();
    while graphs.iter().sum::<usize>() < rows {
        graphs.push(SIZES[dice.below(SIZES.len())]);
    }
    graphs
}

/// A random duration, the same for the same job.
struct RandomTimes(u64);

impl TimeModel for RandomTimes {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        let mut dice = Dice::of((self.0, job.first, job.part, job.crossed, job.queued));
        Duration::from_nanos(dice.below(50_000) as u64)
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let mut dice = Dice::of((self.0, node, job.part, &job.batch.positions));
        let worst = if dice.one_in(10) { 2_000_000 } else { 20_000 };
        Duration::from_nanos(dice.below(worst) as u64)
    }

    fn prepare_time(&self, key: &GraphKey) -> Duration {
        Duration::from_nanos(Dice::of((self.0, key)).below(3_000_000) as u64)
    }
}

fn setup(seed: u64, dice: &mut Dice) -> Setup {
    let kinds = [DeviceKind::Cpu, DeviceKind::Npu, DeviceKind::Gpu];
    let devices = 1 + dice.below(3);
    let mut setup = Setup {
        devices,
        kinds: kinds[..devices].to_vec(),
        graphs: (1 + dice.below(40), dice.one_in(6).then(|| 1 + dice.below(30))),
        strategy: Some(Arc::new(RandomPlans(seed))),
        layers: 1 + dice.below(2),
        chunk_rows: 1 + dice.below(20),
        time: Some(Arc::new(RandomTimes(seed))),
        // From plenty to hardly enough for the longest sequence (24 + 12 rows in pages of 4).
        pages: 10 + dice.below(40) as u32,
        ..Setup::default()
    };
    // The CPU works in host memory, where tokens are sampled; the others may be late queues.
    if dice.one_in(2) {
        setup.late = (0..devices).map(|d| if d == 0 { 0 } else { dice.below(4) }).collect();
    }
    setup.config.sequences_max = 1 + dice.below(6);
    setup.config.permits = 1 + dice.below(5);
    if dice.one_in(4) {
        let period = 2 + dice.below(40);
        let fault: Fault = Arc::new(move |n| {
            n.is_multiple_of(period).then(|| DeviceError::Failed {
                device: "oracle".to_owned(),
                reason: "planted".to_owned(),
            })
        });
        setup.fault = fault;
    }
    if dice.one_in(2) {
        setup.prefixes = Some(dice.one_in(2).then(|| 1 + dice.below(5)));
    }
    setup
}

/// Runs one schedule to its end and checks it.
fn run(seed: u64) -> Recording {
    let mut dice = Dice::of(seed);
    let setup = setup(seed, &mut dice);
    let mut world = World::new(&setup);
    world.sim.recorder().set_scope(Scope::All);
    let requests = (0..1 + dice.below(6)).map(|i| {
        let (prompt_tokens, tokens_max) = (1 + dice.below(24), dice.below(12));
        let at = Nanos(dice.below(4_000_000) as u64);
        let cancel_at = dice.one_in(4).then(|| Nanos(at.0 + dice.below(9_000_000) as u64));
        let drafted = dice.one_in(2).then(|| seed + i as u64);
        let embeds = (i % 4 == 3).then_some(tokens_max / 2..);
        let draw = Draw { prompt_tokens, tokens_max, at, cancel_at, drafted, embeds };
        // Some begin alike.
        Request::submit(&mut world, seed as u32 + dice.below(1 + i) as u32, draw)
    });
    let requests: Vec<Request> = requests.collect();
    for _ in 0..dice.below(6) {
        let (sequence, row) = (SequenceId(dice.below(requests.len()) as u64), dice.below(30));
        let at = Nanos(dice.below(9_000_000) as u64);
        world.sim.send_at(at, SchedulerMessage::RollBack(RollBack { sequence, row }));
    }
    play(&mut world, requests, seed)
}

/// No device runs a stage of a chunk twice. The oracle's memory checks that each node takes the chunks
/// of a sequence in order: each value that it writes for a row continues the value of the previous row.
fn check_once(seed: u64, timeline: &Timeline) {
    let mut runs: HashMap<(u64, u16, usize), usize> = HashMap::new();
    let stages = timeline.spans.iter().filter(|s| {
        s.parent.is_none() && s.activity == Activity::Compute && s.tags.stage.is_some()
    });
    for span in stages {
        let (Some(chunk), Some(stage)) = (span.tags.chunk, span.tags.stage) else { continue };
        *runs.entry((chunk, stage, span.lane)).or_default() += 1;
    }
    assert!(runs.values().all(|count| *count == 1), "seed {seed}: a stage ran twice");
}

#[test]
fn random_plans_lose_leak_and_repeat_nothing() {
    let (mut spans, seeds) = (0, cases(500, 10_000));
    // Where a sequence leased a page of the prefix cache without the pages before it, and no page came free.
    let seen_before = 1339;
    for seed in (0..seeds).chain([seen_before]) {
        let recording = run(seed);
        if seed % 10 == 0 {
            let timeline = Timeline::new(&recording);
            assert_eq!(timeline.orphans, 0, "seed {seed}");
            check_once(seed, &timeline);
            spans += timeline.spans.len();
        }
    }
    assert!(spans > 10 * seeds as usize, "{spans} spans are too few to have shown anything");
}
