//! Simulates chunks on devices, by the rules of the runtime.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Batch, GraphKey, Prepare};
use lapwing_kernels::op::Op;

use super::chunks::PlannedChunk;
use super::prediction::Prediction;
use crate::device::DeviceId;
use crate::moment::LaneWork;
use crate::shape::transfer_bytes;
use crate::solve::terms::stage_merge_bytes;
use crate::stage::{Stage, StagePart, StageWork};
use crate::strategy::interface::PlanInput;
use crate::time::{Crossing, Job};

mod events;

use events::{Event, PartIndex, PartTimes};

/// Which graphs exist at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Graphs<'a> {
    /// All graphs of all routes.
    All,
    /// Graphs that are prepared ahead.
    Ahead,
    /// These graphs.
    Only(&'a HashSet<(DeviceId, GraphKey)>),
}

/// Simulates chunks until all have left their routes.
pub(super) fn simulate(
    input: &PlanInput<'_>,
    chunks: &[PlannedChunk],
    in_flight: usize,
    graphs: Graphs<'_>,
) -> Prediction {
    let batches = chunks.iter().map(|chunk| input.batch(&chunk.shape)).collect();
    let mut run = Simulation {
        input,
        chunks,
        batches,
        events: BinaryHeap::new(),
        number: 0,
        devices: (0..input.devices.len()).map(|_| DeviceQueue::default()).collect(),
        open: vec![0; chunks.len()],
        prepared: HashSet::new(),
        graphs,
        permits: in_flight.max(1),
        next: 0,
        is_preparing: false,
        times: HashMap::new(),
        parts: PartTimes::of(chunks),
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
    let lanes: Vec<LaneWork> = run.devices.iter().map(|lane| lane.work).collect();
    let busy = lanes.iter().map(|lane| lane.time).collect();
    let Simulation { end: makespan, parts, copy, .. } = run;
    let parts = parts.times;
    Prediction { makespan, busy, lanes, parts, chunks: chunks.len(), copy }
}

/// A device with its queue.
#[derive(Default)]
struct DeviceQueue {
    inbox: VecDeque<PartIndex>,
    occupied: bool,
    work: LaneWork,
    /// End of the last part.
    free: Duration,
}

struct Simulation<'a> {
    input: &'a PlanInput<'a>,
    chunks: &'a [PlannedChunk],
    batches: Vec<Batch>,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    number: u64,
    devices: Vec<DeviceQueue>,
    /// Unfinished parts of the current stage of each chunk.
    open: Vec<usize>,
    prepared: HashSet<(DeviceId, GraphKey)>,
    /// Graphs that exist at the start.
    graphs: Graphs<'a>,
    /// Free permits.
    permits: usize,
    /// The next chunk to enter.
    next: usize,
    /// Whether the next chunk waits for graph preparation.
    is_preparing: bool,
    /// Time of a part, by route, stage, part, context and whether it was queued.
    times: HashMap<(usize, usize, usize, usize, bool), Duration>,
    parts: PartTimes,
    copy: Duration,
    end: Duration,
}

impl Simulation<'_> {
    fn push(&mut self, at: Duration, event: Event) {
        self.events.push(Reverse((at, self.number, event)));
        self.number += 1;
    }

    fn stage(&self, index: PartIndex) -> &Stage {
        &self.chunks[index.chunk].route.stages[index.stage]
    }

    fn device(&self, index: PartIndex) -> DeviceId {
        self.stage(index).parts[index.part].device
    }

    /// Admits chunks in order, until no permit is free or a chunk waits for its graphs.
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
        self.send(self.next - 1, 0, None, at);
    }

    /// Time to prepare the missing graphs of the next chunk: that of the slowest device.
    fn preparation(&mut self) -> Duration {
        let Graphs::Only(ready) = self.graphs else { return Duration::ZERO };
        let mut lanes = vec![Duration::ZERO; self.devices.len()];
        for graph in &self.chunks[self.next].route.graphs {
            let (device, key) = graph;
            if !ready.contains(graph) && self.prepared.insert((*device, key.clone())) {
                lanes[device.0] += self.input.cost.prepare_time(*device, key);
            }
        }
        lanes.into_iter().max().unwrap_or_default()
    }

    /// Sends the parts of a stage to their devices.
    fn send(&mut self, chunk: usize, stage: usize, from: Option<DeviceId>, at: Duration) {
        let parts = self.chunks[chunk].route.stages[stage].parts.len();
        self.open[chunk] = parts;
        for part in 0..parts {
            let index = PartIndex { chunk, stage, part };
            let to = self.device(index);
            let way = from
                .map_or(Duration::ZERO, |from| self.input.cost.sync_time(Crossing { from, to }));
            self.push(at + way, Event::Arrived(index));
        }
    }

    /// Handles an event. Returns `true` if a chunk has left its last stage.
    fn handle(&mut self, at: Duration, event: Event) -> bool {
        match event {
            Event::Prepared(_) => {
                self.is_preparing = false;
                self.enter(at);
                self.admit(at);
                false
            }
            Event::Arrived(index) => {
                let device = self.device(index);
                self.devices[device.0].inbox.push_back(index);
                self.start(device, at, false);
                false
            }
            Event::Ran(index) => {
                let device = self.device(index);
                self.open[index.chunk] -= 1;
                let is_cut = self.stage(index).parts.len() > 1;
                if is_cut && self.open[index.chunk] == 0 {
                    let batch = &self.batches[index.chunk];
                    let bytes = stage_merge_bytes(self.input.graph, self.stage(index), batch);
                    let copy = self.input.cost.copy_time(bytes);
                    self.copy += copy;
                    self.devices[device.0].work.time += copy;
                    self.push(at + copy, Event::Merged(index));
                    return false;
                }
                let through = !is_cut && self.go_on(index, at);
                self.release(device, at);
                through
            }
            Event::Merged(index) => {
                let through = self.go_on(index, at);
                self.release(self.device(index), at);
                through
            }
        }
    }

    /// Sends a chunk to its next stage. Returns `true` if it has none.
    fn go_on(&mut self, index: PartIndex, at: Duration) -> bool {
        self.end = self.end.max(at);
        let next = index.stage + 1;
        // Tokens are chosen on the host, after the last stage that a device runs.
        let stages = &self.chunks[index.chunk].route.stages;
        let is_last = stages.get(next).is_none_or(Stage::decides);
        if !is_last {
            self.send(index.chunk, next, Some(self.device(index)), at);
        }
        is_last
    }

    fn release(&mut self, device: DeviceId, at: Duration) {
        let lane = &mut self.devices[device.0];
        (lane.occupied, lane.free) = (false, at);
        self.start(device, at, true);
    }

    /// Starts the next part of the queue if the device is free. `queued`: the part waited while the device was busy.
    fn start(&mut self, device: DeviceId, at: Duration, queued: bool) {
        let lane = &mut self.devices[device.0];
        if lane.occupied {
            return;
        }
        let Some(index) = lane.inbox.pop_front() else { return };
        lane.occupied = true;
        let time = self.part_time(index, queued);
        self.devices[device.0].work.add(time);
        self.parts.record(index, time);
        self.push(at + time, Event::Ran(index));
    }

    fn part_time(&mut self, index: PartIndex, queued: bool) -> Duration {
        let PlannedChunk { route, shape } = &self.chunks[index.chunk];
        let stage = &route.stages[index.stage];
        // Without attention, a stage takes the same time in every chunk of the route.
        let nodes = &self.input.graph.nodes()[stage.nodes.clone()];
        let attends = nodes.iter().any(|node| matches!(node.op, Op::Attention(_)));
        let context = if attends { shape.context } else { 0 };
        let key = (Arc::as_ptr(route) as usize, index.stage, index.part, context, queued);
        let time = match self.times.get(&key) {
            Some(known) => *known,
            None => {
                let time = self.job_time(index, queued);
                self.times.insert(key, time);
                time
            }
        };
        time + self.prepare_time(index)
    }

    fn job_time(&self, index: PartIndex, queued: bool) -> Duration {
        let route = &self.chunks[index.chunk].route;
        let stage = &route.stages[index.stage];
        let device = self.device(index);
        if let StageWork::Transfer { values, .. } = &stage.work {
            let bytes = transfer_bytes(self.input.graph, values, &self.batches[index.chunk]);
            return self.input.cost.transfer_time(device, bytes);
        }
        let before = index.stage.checked_sub(1).map(|at| &route.stages[at]);
        let job = Job {
            first: stage.nodes.start,
            end: stage.nodes.end,
            part: &stage.parts[index.part].part,
            batch: &self.batches[index.chunk],
            crossed: before.is_some_and(|before| before.only_device() != Some(device)),
            border: route.border(index.stage, device),
            queued,
        };
        self.input.cost.job_time(device, &job)
    }

    /// Time to prepare graphs on demand; each is prepared once.
    fn prepare_time(&mut self, index: PartIndex) -> Duration {
        let stage = &self.chunks[index.chunk].route.stages[index.stage];
        if stage.prepare != Prepare::OnTheSpot || self.graphs == Graphs::All {
            return Duration::ZERO;
        }
        let StagePart { device, part } = &stage.parts[index.part];
        let missing = stage
            .graphs(self.input.model, part)
            .filter(|key| self.prepared.insert((*device, key.clone())));
        missing.map(|key| self.input.cost.prepare_time(*device, &key)).sum()
    }
}
