//! What the devices have to do, as far as the scheduler knows: the chunks in flight with their predicted times. By it the routes of the
//! next chunks are chosen. What chunks took that ran alone corrects the time of crossings between devices.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lapwing_plan::moment::{Candidate, Choice, Haste, LaneWork, Moment};
use lapwing_plan::{Phase, Route};
use lapwing_traces::Nanos;

use super::effect::RouteChosen;
use super::graphs::Readiness;
use super::pace::STEPS_WAITED;
use super::selection::Selection;
use super::state::Scheduler;
use crate::chunk::Life;

mod learned;
mod steps;

use learned::Learned;
use steps::Steps;

/// A route that was chosen for a chunk, among those that it could take.
pub(super) struct Chosen {
    candidates: Arc<[Candidate]>,
    choice: Choice,
    /// Whether it passes chunks that wait for its devices.
    pub(super) haste: Haste,
    /// How long the streams of a step may wait for its end, in ns; `None` for other chunks.
    allowed: Option<f64>,
}

impl Chosen {
    pub(super) fn route(&self) -> &Arc<Route> {
        &self.candidate().route
    }

    fn candidate(&self) -> &Candidate {
        &self.candidates[self.choice.at]
    }

    /// Its predicted work on each device.
    pub(super) fn lanes(&self) -> Arc<[LaneWork]> {
        Arc::clone(&self.candidate().lanes)
    }

    /// How long a step may let others pass, so that its streams have their tokens just in time.
    pub(super) fn spare(&self) -> Duration {
        let allowed = self.allowed.map_or(Duration::ZERO, |ns| Duration::from_nanos(ns as u64));
        allowed.saturating_sub(self.choice.end)
    }

    /// What a recording may tell of it; `None` if there was no choice.
    fn told(&self) -> Option<RouteChosen> {
        let (alone, Choice { end, first, .. }) = (&self.candidates[0], self.choice);
        let is_due = self.haste == Haste::Due;
        (is_due || self.candidates.len() > 1).then(|| RouteChosen {
            devices: Arc::clone(&self.candidate().devices),
            end,
            alone: Arc::clone(&alone.devices),
            alone_end: first,
            is_due,
        })
    }
}

/// A chunk in flight.
struct Flight {
    chunk: u64,
    chosen: Chosen,
    since: Nanos,
    /// Whether no other chunk was in flight since then.
    is_alone: bool,
    life: Weak<Life>,
}

impl Flight {
    /// Makes a step due that would wait too long for a chunk which is sent after it.
    fn pass(&mut self, later: &Chosen) {
        let Chosen { allowed: Some(allowed), haste: Haste::Step, .. } = self.chosen else {
            return;
        };
        let lanes = self.chosen.candidate().lanes.iter().zip(&*later.candidate().lanes);
        let shared = lanes.filter(|(own, _)| !own.time.is_zero()).map(|(_, later)| later.time);
        let wait = shared.sum::<Duration>().as_nanos() as f64;
        if wait > allowed
            && let Some(life) = self.life.upgrade()
        {
            life.make_due();
            self.chosen.haste = Haste::Due;
        }
    }
}

/// Chunks in flight, and what was learned of those that ran alone.
#[derive(Default)]
pub(super) struct Lanes {
    flights: Vec<Flight>,
    learned: Learned,
    steps: Steps,
}

/// A chunk that is late counts as having this share of its work left.
const LEFT_LEAST: f64 = 0.1;

impl Lanes {
    /// What each of so many devices has to do.
    pub(super) fn moment(&self, devices: usize, now: Nanos) -> Moment {
        let mut lanes = vec![LaneWork::default(); devices];
        for Flight { chosen, since, .. } in &self.flights {
            let past = now.since(*since).as_secs_f64() / chosen.choice.end.as_secs_f64().max(1e-9);
            let left = (1.0 - past).max(LEFT_LEAST);
            for (lane, own) in lanes.iter_mut().zip(&*chosen.candidate().lanes) {
                lane.time += own.time.mul_f64(left);
                lane.longest = lane.longest.max(own.longest);
            }
        }
        let steps = self.steps.load(now);
        Moment { lanes, steps, crossing: Duration::from_nanos(self.learned.crossing() as u64) }
    }

    /// Records that a chunk is sent. Returns what a recording may tell of its route.
    pub(super) fn on_sent(
        &mut self,
        chunk: u64,
        chosen: Chosen,
        life: &Arc<Life>,
        now: Nanos,
    ) -> Option<RouteChosen> {
        if chosen.candidate().lanes.is_empty() {
            return None;
        }
        let told = chosen.told();
        if chosen.allowed.is_some() {
            self.steps.record(&chosen.candidate().lanes, now);
        }
        for flight in &mut self.flights {
            flight.is_alone = false;
            if chosen.haste == Haste::InTurn {
                flight.pass(&chosen);
            }
        }
        let is_alone = self.flights.is_empty();
        self.flights.push(Flight {
            chunk,
            chosen,
            since: now,
            is_alone,
            life: Arc::downgrade(life),
        });
        told
    }

    /// Records that a chunk has ended; `is_whole` says whether all of it was computed.
    pub(super) fn on_ended(&mut self, chunk: u64, is_whole: bool, now: Nanos) {
        let Some(at) = self.flights.iter().position(|flight| flight.chunk == chunk) else { return };
        let flight = self.flights.remove(at);
        if flight.is_alone && is_whole {
            let time = now.since(flight.since).as_nanos() as f64;
            let Candidate { alone, crossings, .. } = flight.chosen.candidate();
            self.learned.record(*alone, *crossings, time);
        }
    }
}

impl Scheduler {
    /// The one of these routes on which a chunk ends first, and whether its graphs are ready. Where those of the first route are missing,
    /// this one is chosen, so that they are prepared. A step passes prompts only if its streams would wait too long in its turn.
    pub(super) fn chosen(
        &self,
        candidates: Arc<[Candidate]>,
        selection: &Selection,
    ) -> (Chosen, Readiness) {
        let first = self.graphs.readiness(&candidates[0].route);
        let alone = candidates[0].alone;
        // A device that is kept for a step must not be the one that rows before the step's wait for.
        let mut sequences = selection.rows.iter().map(|(at, _)| &self.running[*at]);
        let may_pass = selection.shape.phase == Phase::Decode
            && sequences.all(|sequence| sequence.in_flight == 0);
        let allowed = may_pass.then(|| self.time_for_step(selection, &candidates));
        let mut choice = Choice { at: 0, end: alone, first: alone };
        let mut haste = if allowed.is_some() { Haste::Step } else { Haste::InTurn };
        if let (false, Readiness::Ready) = (candidates[0].lanes.is_empty(), &first) {
            let moment = self.lanes.moment(candidates[0].lanes.len(), self.queue.now);
            let is_ready = |candidate: &Candidate| {
                matches!(self.graphs.readiness(&candidate.route), Readiness::Ready)
            };
            choice = moment.choose(&candidates, haste, is_ready);
            let in_turn = |at: usize| moment.end_of(&candidates[at], Haste::InTurn);
            (choice.end, choice.first) = (in_turn(choice.at), in_turn(0));
            if allowed.is_some_and(|allowed| choice.end.as_nanos() as f64 > allowed) {
                haste = Haste::Due;
                choice = moment.choose(&candidates, haste, is_ready);
            }
        }
        (Chosen { candidates, choice, haste, allowed }, first)
    }

    /// How long the streams of a step may wait for its end, in ns: until their tokens are due, or without targets a few times as long as
    /// the step takes alone.
    fn time_for_step(&self, step: &Selection, candidates: &[Candidate]) -> f64 {
        let streams = step.rows.iter().map(|(at, _)| &self.running[*at]);
        let due = streams.filter_map(|stream| {
            self.gap_of(stream).map(|gap| self.time_left(stream, gap).max(0.0))
        });
        let alone = candidates.iter().map(|it| it.alone.as_nanos() as f64).fold(f64::MAX, f64::min);
        due.min_by(f64::total_cmp).unwrap_or((1.0 + STEPS_WAITED) * alone)
    }
}

#[cfg(test)]
mod tests {
    use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId};
    use lapwing_kernels::formats::DType;
    use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
    use lapwing_kernels::op::Op;
    use lapwing_plan::{DeviceId, RouteFor, Stage};

    use super::*;

    fn candidate(alone_ms: u64, crossings: u32) -> Candidate {
        let mut graph = Graph::default();
        let table = WeightSpec { name: "w".into(), rows: 8, cols: 8, dtype: DType::F32 };
        let table = graph.add_weight(table);
        let op = Op::Embed { table, scale: 1.0 };
        graph.push(NewNode { op, inputs: &[], width: 8, layer: None, role: "test" });
        let devices = [DeviceInfo::new("cpu", DeviceKind::Cpu)];
        let (model, rows, selected) = (ModelId::default(), 1, 1);
        let of = RouteFor { model, graph: &graph, devices: &devices, rows, selected };
        let stages = vec![Stage::whole(DeviceId(0), 0..1)];
        let route = Route::new(stages, String::new(), None, of).expect("a route");
        let alone = Duration::from_millis(alone_ms);
        let lanes = Arc::new([LaneWork { time: alone, longest: alone, parts: 1 }]);
        Candidate { route, devices: Arc::default(), alone, lanes, crossings }
    }

    #[test]
    fn a_device_is_busy_for_the_rest_of_what_it_was_sent() {
        let mut lanes = Lanes::default();
        let end = Duration::from_millis(100);
        let chosen = Chosen {
            candidates: Arc::new([candidate(100, 0)]),
            choice: Choice { at: 0, end, first: end },
            haste: Haste::InTurn,
            allowed: None,
        };
        let life = Arc::default();
        lanes.on_sent(1, chosen, &life, Nanos(0));
        let left = |at: u64| lanes.moment(1, Nanos(at * 1_000_000)).lanes[0].time;
        assert_eq!(left(0), end);
        assert_eq!(left(75), Duration::from_millis(25));
        assert_eq!(left(500), Duration::from_millis(10));
        lanes.on_ended(1, true, Nanos(1));
        assert_eq!(lanes.moment(1, Nanos(2)).lanes[0], LaneWork::default());
    }
}
