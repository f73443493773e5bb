//! Predicted time of a whole prompt: its chunks, their stages and parts, laid out over the devices
//! by the rules of the runtime. Strategies that win because chunks overlap are seen to win.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Batch, GraphKey, Prepare};
use lapwing_kernels::op::Op;

use super::shape::transfer_bytes;
use super::solve::merge_bytes;
use super::strategy::{ChunkShape, PlanInput, PromptRows, Strategy};
use super::time::{Crossing, Job};
use super::{DeviceId, PlanError, Route, Stage, StagePart, StageWork};
use crate::Phase;

/// What is to be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Rows of the prompt.
    pub prompt: usize,
    /// Rows before it in the cache.
    pub context: usize,
    /// Chunks that may be in flight.
    pub in_flight: usize,
}

/// A chunk on its route.
#[derive(Clone, Debug)]
pub struct PlannedChunk {
    /// Its shape.
    pub shape: ChunkShape,
    /// Its route.
    pub route: Arc<Route>,
}

impl PlannedChunk {
    /// The shape that its route was asked for.
    pub fn asked(&self) -> ChunkShape {
        self.shape.asked()
    }
}

/// A predicted run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// First start to last finish.
    pub makespan: Duration,
    /// How long each device computes, by its number; copies to put parts together included.
    pub busy: Vec<Duration>,
    /// Number of chunks.
    pub chunks: usize,
    /// Sum of all copies.
    pub copy: Duration,
}

impl Prediction {
    /// No order of the work ends earlier than the busiest device.
    pub fn busiest(&self) -> Duration {
        self.busy.iter().max().copied().unwrap_or_default()
    }
}

/// The chunks of a prompt as a strategy cuts them, each with its route.
///
/// # Errors
/// [`PlanError`] when the strategy has no route.
pub fn plan(
    strategy: &dyn Strategy,
    input: &PlanInput<'_>,
    work: Workload,
) -> Result<Vec<PlannedChunk>, PlanError> {
    let mut chunks: Vec<PlannedChunk> = Vec::new();
    let mut routes: HashMap<ChunkShape, Arc<Route>> = HashMap::new();
    let (mut due, mut context) = (work.prompt, work.context);
    while due > 0 {
        let most = due.min(input.chunk_rows);
        let rows = strategy
            .chunk_rows(input, PromptRows { all: work.prompt, due })
            .clamp(most.min(1), most.max(1));
        due -= rows;
        let selected = usize::from(due == 0);
        let (phase, prompt) = (Phase::Prefill, work.prompt);
        let shape = ChunkShape { phase, rows, selected, context, prompt };
        let asked = shape.asked();
        let route = match routes.get(&asked) {
            Some(known) => Arc::clone(known),
            None => strategy.route(input, &asked)?,
        };
        routes.insert(asked, Arc::clone(&route));
        chunks.push(PlannedChunk { shape, route });
        context += rows;
    }
    Ok(chunks)
}

/// Lays chunks out over the devices.
///
/// A device runs one part at a time, in the order of arrival; a chunk's stage follows its last
/// one; the next chunk enters when one of `in_flight` permits is free; a part that comes from
/// another device takes T_sync more on its way; the last part of a cut puts the parts together on
/// its own device.
///
/// Graphs that must be ready ahead are ([`predict_cold`] is where they are not); those that are made
/// on the spot are made, as a prompt of a new length has them made ([`predict_warm`] is where they
/// are there).
pub fn predict(input: &PlanInput<'_>, chunks: &[PlannedChunk], in_flight: usize) -> Prediction {
    lay_out(input, chunks, (in_flight, Graphs::Ahead))
}

/// As [`predict`], of a prompt of a length that the engine has had before: no graph is missing.
pub fn predict_warm(
    input: &PlanInput<'_>,
    chunks: &[PlannedChunk],
    in_flight: usize,
) -> Prediction {
    lay_out(input, chunks, (in_flight, Graphs::All))
}

/// As [`predict`], with devices that have no graphs yet. A chunk enters when the graphs of its
/// route are ready: the preparation lane of each device makes those that are missing one after
/// another, beside what the device computes, once the chunk is the next and has a permit.
pub fn predict_cold(
    input: &PlanInput<'_>,
    chunks: &[PlannedChunk],
    in_flight: usize,
) -> Prediction {
    lay_out(input, chunks, (in_flight, Graphs::None))
}

/// Which graphs there are at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Graphs {
    All,
    /// Those that must be ready ahead.
    Ahead,
    None,
}

fn lay_out(
    input: &PlanInput<'_>,
    chunks: &[PlannedChunk],
    (in_flight, graphs): (usize, Graphs),
) -> Prediction {
    let batches = chunks.iter().map(|chunk| chunk.shape.batch()).collect();
    let mut run = Run {
        input,
        chunks,
        batches,
        events: BinaryHeap::new(),
        number: 0,
        devices: (0..input.devices.len()).map(|_| Lane::default()).collect(),
        open: vec![0; chunks.len()],
        prepared: HashSet::new(),
        graphs,
        permits: in_flight.max(1),
        next: 0,
        is_preparing: false,
        times: HashMap::new(),
        copy: Duration::ZERO,
        end: Duration::ZERO,
    };
    run.admit(Duration::ZERO);
    while let Some(Reverse((at, _, event))) = run.events.pop() {
        if run.handle(at, event) {
            run.permits += 1;
            run.admit(at);
        }
    }
    let busy = run.devices.iter().map(|lane| lane.busy).collect();
    Prediction { makespan: run.end, busy, chunks: chunks.len(), copy: run.copy }
}

/// A part of a chunk's stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    chunk: usize,
    stage: usize,
    part: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The graphs of that chunk are there.
    Prepared(usize),
    Arrived(Piece),
    Ran(Piece),
    Merged(Piece),
}

#[derive(Default)]
struct Lane {
    inbox: VecDeque<Piece>,
    occupied: bool,
    busy: Duration,
    /// When the device was last done.
    free: Duration,
}

struct Run<'a> {
    input: &'a PlanInput<'a>,
    chunks: &'a [PlannedChunk],
    batches: Vec<Batch>,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    number: u64,
    devices: Vec<Lane>,
    /// Parts of each chunk's stage that are not done.
    open: Vec<usize>,
    prepared: HashSet<(DeviceId, GraphKey)>,
    /// Graphs that are there at first.
    graphs: Graphs,
    /// Chunks that may still enter.
    permits: usize,
    /// The next chunk to enter.
    next: usize,
    /// Whether the next chunk waits for its graphs.
    is_preparing: bool,
    /// Time of a stage's part, by route, stage, part, context and whether it was queued.
    times: HashMap<(usize, usize, usize, usize, bool), Duration>,
    copy: Duration,
    end: Duration,
}

impl Run<'_> {
    fn push(&mut self, at: Duration, event: Event) {
        self.events.push(Reverse((at, self.number, event)));
        self.number += 1;
    }

    fn stage(&self, piece: Piece) -> &Stage {
        &self.chunks[piece.chunk].route.stages[piece.stage]
    }

    fn device(&self, piece: Piece) -> DeviceId {
        self.stage(piece).parts[piece.part].device
    }

    /// Lets chunks in, in order, until there is no permit or one has to wait for its graphs.
    fn admit(&mut self, at: Duration) {
        while !self.is_preparing && self.permits > 0 && self.next < self.chunks.len() {
            self.permits -= 1;
            let wait = self.preparation();
            if wait > Duration::ZERO {
                self.is_preparing = true;
                self.push(at + wait, Event::Prepared(self.next));
                return;
            }
            self.enter(at);
        }
    }

    fn enter(&mut self, at: Duration) {
        self.next += 1;
        self.send((self.next - 1, 0), None, at);
    }

    /// Time until the graphs of the next chunk are ready: that of the busiest preparation lane.
    fn preparation(&mut self) -> Duration {
        if self.graphs != Graphs::None {
            return Duration::ZERO;
        }
        let mut lanes = vec![Duration::ZERO; self.devices.len()];
        for (device, key) in &self.chunks[self.next].route.graphs {
            if self.prepared.insert((*device, key.clone())) {
                lanes[device.0] += self.input.cost.prepare_time(*device, key);
            }
        }
        lanes.into_iter().max().unwrap_or_default()
    }

    /// Sends a chunk's parts to the devices of a stage.
    fn send(&mut self, (chunk, stage): (usize, usize), from: Option<DeviceId>, at: Duration) {
        let parts = self.chunks[chunk].route.stages[stage].parts.len();
        self.open[chunk] = parts;
        for part in 0..parts {
            let piece = Piece { chunk, stage, part };
            let to = self.device(piece);
            let way = from
                .map_or(Duration::ZERO, |from| self.input.cost.sync_time(Crossing { from, to }));
            self.push(at + way, Event::Arrived(piece));
        }
    }

    /// Handles an event; `true` if a chunk is through.
    fn handle(&mut self, at: Duration, event: Event) -> bool {
        match event {
            Event::Prepared(_) => {
                self.is_preparing = false;
                self.enter(at);
                self.admit(at);
                false
            }
            Event::Arrived(piece) => {
                let device = self.device(piece);
                self.devices[device.0].inbox.push_back(piece);
                self.start(device, at, false);
                false
            }
            Event::Ran(piece) => {
                let device = self.device(piece);
                self.open[piece.chunk] -= 1;
                let is_cut = self.stage(piece).parts.len() > 1;
                if is_cut && self.open[piece.chunk] == 0 {
                    let nodes = self.stage(piece).nodes.clone();
                    let batch = &self.batches[piece.chunk];
                    let bytes = merge_bytes(self.input.graph, nodes, batch);
                    let copy = self.input.cost.copy_time(bytes);
                    self.copy += copy;
                    self.devices[device.0].busy += copy;
                    self.push(at + copy, Event::Merged(piece));
                    return false;
                }
                let through = !is_cut && self.go_on(piece, at);
                self.release(device, at);
                through
            }
            Event::Merged(piece) => {
                let through = self.go_on(piece, at);
                self.release(self.device(piece), at);
                through
            }
        }
    }

    /// Sends a chunk on to its next stage; `true` if there is none.
    fn go_on(&mut self, piece: Piece, at: Duration) -> bool {
        self.end = self.end.max(at);
        let next = piece.stage + 1;
        // Tokens are chosen on the host, after the last stage that a device runs.
        let stages = &self.chunks[piece.chunk].route.stages;
        let is_last = stages.get(next).is_none_or(Stage::decides);
        if !is_last {
            self.send((piece.chunk, next), Some(self.device(piece)), at);
        }
        is_last
    }

    fn release(&mut self, device: DeviceId, at: Duration) {
        let lane = &mut self.devices[device.0];
        (lane.occupied, lane.free) = (false, at);
        self.start(device, at, true);
    }

    /// Starts the next part, if there is one and the device is free. `queued`: it was waiting
    /// while the device was busy.
    fn start(&mut self, device: DeviceId, at: Duration, queued: bool) {
        let lane = &mut self.devices[device.0];
        if lane.occupied {
            return;
        }
        let Some(piece) = lane.inbox.pop_front() else { return };
        lane.occupied = true;
        let time = self.piece_time(piece, queued);
        self.devices[device.0].busy += time;
        self.push(at + time, Event::Ran(piece));
    }

    fn piece_time(&mut self, piece: Piece, queued: bool) -> Duration {
        let PlannedChunk { route, shape } = &self.chunks[piece.chunk];
        let stage = &route.stages[piece.stage];
        // What does not attend takes the same time in every chunk of the route.
        let nodes = &self.input.graph.nodes()[stage.nodes.clone()];
        let attends = nodes.iter().any(|node| matches!(node.op, Op::Attention(_)));
        let context = if attends { shape.context } else { 0 };
        let key = (Arc::as_ptr(route) as usize, piece.stage, piece.part, context, queued);
        let known = self.times.get(&key).copied();
        let time = known.unwrap_or_else(|| self.job_time(piece, queued));
        self.times.insert(key, time);
        time + self.prepare_time(piece)
    }

    fn job_time(&self, piece: Piece, queued: bool) -> Duration {
        let route = &self.chunks[piece.chunk].route;
        let stage = &route.stages[piece.stage];
        let device = self.device(piece);
        if let StageWork::Transfer { values, .. } = &stage.work {
            let bytes = transfer_bytes(self.input.graph, values, &self.batches[piece.chunk]);
            return self.input.cost.copy_time(bytes);
        }
        let before = piece.stage.checked_sub(1).map(|at| &route.stages[at]);
        let job = Job {
            first: stage.nodes.start,
            end: stage.nodes.end,
            part: &stage.parts[piece.part].part,
            batch: &self.batches[piece.chunk],
            crossed: before.is_some_and(|before| before.only_device() != Some(device)),
            queued,
        };
        self.input.cost.job_time(device, &job)
    }

    /// Time of graphs that are made on the spot, each the first time that it is needed.
    fn prepare_time(&mut self, piece: Piece) -> Duration {
        let stage = &self.chunks[piece.chunk].route.stages[piece.stage];
        if stage.prepare != Prepare::OnTheSpot || self.graphs == Graphs::All {
            return Duration::ZERO;
        }
        let StagePart { device, part } = &stage.parts[piece.part];
        let missing = stage
            .graphs(self.input.model, part)
            .filter(|key| self.prepared.insert((*device, key.clone())));
        missing.map(|key| self.input.cost.prepare_time(*device, &key)).sum()
    }
}

/// Predicted time of one chunk alone.
pub fn alone(input: &PlanInput<'_>, shape: &ChunkShape, route: &Arc<Route>) -> Prediction {
    let chunk = PlannedChunk { shape: *shape, route: Arc::clone(route) };
    predict(input, &[chunk], 1)
}
