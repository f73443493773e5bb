//! What the devices have to do, as far as the scheduler knows: the chunks in flight with their predicted times. By it the routes of the
//! next chunks are chosen. What chunks took that ran alone corrects the time of crossings between devices.

use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lapwing_kernels::device::ModelId;
use lapwing_plan::Phase;
use lapwing_plan::moment::{Candidate, Choice, Haste, LaneWork, Moment};
use lapwing_plan::pace::STEPS_WAITED;
use lapwing_traces::Nanos;

use super::effect::RouteChosen;
use super::graphs::Readiness;
use super::running::Sequence;
use super::selection::Selection;
use super::state::Scheduler;
use crate::chunk::{Computing, DeviceSet, Life, Runs};

mod chosen;
pub(super) mod contention;
mod learned;
mod steps;

pub(super) use chosen::Chosen;
use contention::{Contention, Ended, StageErrors};
use learned::Learned;
use steps::Steps;

/// A chunk in flight.
struct Flight {
    chunk: u64,
    chosen: Chosen,
    since: Nanos,
    /// Whether no other chunk was in flight since then.
    is_alone: bool,
    life: Weak<Life>,
    runs: Option<Arc<Runs>>,
}

/// A chunk that is sent.
pub(super) struct SentChunk<'a> {
    pub(super) id: u64,
    pub(super) life: &'a Arc<Life>,
    pub(super) runs: &'a Option<Arc<Runs>>,
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
    /// Of chunks with prompt rows, and of steps.
    learned: [Learned; 2],
    contention: Contention,
    computing: Arc<Computing>,
    steps: Steps,
    /// That of the latest choice, whose memory the next one uses.
    moment: Moment,
}

/// A chunk that is late counts as having this share of its work left.
const LEFT_LEAST: f64 = 0.1;

impl Lanes {
    /// What each of so many devices has to do. A choice that is done gives it back.
    fn moment(&mut self, devices: usize, is_step: bool, now: Nanos) -> Moment {
        let Moment { mut lanes, mut steps, mut slow, mut prices, .. } =
            std::mem::take(&mut self.moment);
        prices.fit(devices);
        lanes.clear();
        lanes.resize(devices, LaneWork::default());
        for Flight { chosen, since, .. } in &self.flights {
            let past = now.since(*since).as_secs_f64() / chosen.choice.end.as_secs_f64().max(1e-9);
            let left = (1.0 - past).max(LEFT_LEAST);
            for (lane, own) in lanes.iter_mut().zip(&*chosen.candidate().lanes) {
                lane.time += own.time.mul_f64(left);
                lane.longest = lane.longest.max(own.longest);
            }
        }
        self.steps.load(now, &mut steps);
        let busy = lanes.iter().enumerate().filter(|(_, lane)| !lane.time.is_zero());
        let busy = busy.fold(DeviceSet::default(), |all, (at, _)| all.with(DeviceSet::of(at)));
        slow.clear();
        slow.extend((0..devices).map(|at| self.contention.factor(is_step, at, busy)));
        let crossing = Duration::from_nanos(self.learned[usize::from(is_step)].crossing() as u64);
        Moment { lanes, steps, crossing, slow, prices, ..Moment::default() }
    }

    /// Whether chunks of other models than that are in flight.
    fn has_others(&self, model: ModelId) -> bool {
        self.flights.iter().any(|flight| flight.chosen.route().model != model)
    }

    /// Bandwidth in GB/s that the chunks in flight take.
    pub(super) fn bandwidth(&self) -> f64 {
        self.flights.iter().map(|flight| flight.chosen.bandwidth).sum()
    }

    /// Where the times of a chunk's stages are kept; `None` if nothing is predicted.
    pub(super) fn runs_of(&self, chosen: &Chosen) -> Option<Arc<Runs>> {
        let is_predicted = !chosen.candidate().lanes.is_empty();
        is_predicted.then(|| Arc::new(Runs::new(&self.computing)))
    }

    /// Learns from the times of a chunk's stages. They have ended in the order of the route.
    fn learn(&mut self, flight: &Flight) {
        let Some(runs) = &flight.runs else { return };
        let Candidate { route, parts, lanes, .. } = flight.chosen.candidate();
        let (mut stage, mut before) = (0, 0);
        for run in runs.take() {
            while stage < run.stage {
                before += route.stages[stage].parts.len();
                stage += 1;
            }
            let Some(predicted) = parts.get(before + run.part) else { continue };
            let (predicted, time) = (predicted.as_nanos() as f64, run.time.as_nanos() as f64);
            let (is_step, device) = (flight.chosen.is_step, run.device.0);
            let ended = Ended { is_step, device, beside: run.beside, predicted, time };
            self.contention.record(lanes.len(), ended);
        }
    }

    /// Records that a chunk is sent. Returns what a recording may tell of its route.
    pub(super) fn on_sent(
        &mut self,
        sent: SentChunk<'_>,
        chosen: Chosen,
        now: Nanos,
    ) -> Option<RouteChosen> {
        let (chunk, life) = (sent.id, Arc::downgrade(sent.life));
        if chosen.candidate().lanes.is_empty() {
            return None;
        }
        let told = chosen.told(&self.moment);
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
            life,
            runs: sent.runs.clone(),
        });
        told
    }

    /// Records that a chunk has ended; `is_whole` says whether all of it was computed.
    pub(super) fn on_ended(&mut self, chunk: u64, is_whole: bool, now: Nanos) {
        let Some(at) = self.flights.iter().position(|flight| flight.chunk == chunk) else { return };
        let flight = self.flights.remove(at);
        self.learn(&flight);
        if flight.is_alone && is_whole {
            let time = now.since(flight.since).as_nanos() as f64;
            let Candidate { alone, crossings, .. } = flight.chosen.candidate();
            self.learned[usize::from(flight.chosen.is_step)].record(*alone, *crossings, time);
        }
    }
}

impl Scheduler {
    /// How far predicted times of the latest stages are from real ones, of those beside which other devices computed. `None` without any.
    pub fn stage_errors(&self) -> Option<StageErrors> {
        self.lanes.contention.errors()
    }

    /// The one of these routes on which a chunk ends first, and whether its graphs are ready. Where those of the first route are missing,
    /// this one is chosen, so that they are prepared. Those of other routes on which the chunk would have ended earlier are prepared while
    /// the engine is idle. A step passes prompts only if its streams would wait too long in its turn.
    pub(super) fn chosen(
        &mut self,
        candidates: Arc<[Candidate]>,
        selection: &Selection,
    ) -> (Chosen, Readiness) {
        let first = self.graphs.readiness(&candidates[0].route);
        let alone = candidates[0].alone;
        // A device that is kept for a step must not be the one that rows before the step's wait for.
        let mut sequences = selection.rows.iter().map(|(at, _)| &self.running[*at]);
        let is_step = selection.shape.phase == Phase::Decode;
        let may_pass = is_step && sequences.all(|sequence| sequence.in_flight == 0);
        let allowed = may_pass.then(|| self.time_for_step(selection, &candidates));
        let mut choice = Choice { at: 0, end: alone, first: alone };
        let mut haste = if allowed.is_some() { Haste::Step } else { Haste::InTurn };
        let mut compared = None;
        if let (false, Readiness::Ready) = (candidates[0].lanes.is_empty(), &first) {
            let mut moment = self.lanes.moment(candidates[0].lanes.len(), is_step, self.queue.now);
            // A step is one of those, and after the last stream there are none.
            if is_step || !self.running.iter().any(Sequence::is_streaming) {
                moment.steps.clear();
            }
            moment.behind = self.chunks_behind(selection);
            moment.has_other_models = self.lanes.has_others(candidates[0].route.model);
            let unready = Cell::new(0);
            let is_ready = |at: usize| {
                let route = &candidates[at].route;
                let is_ready = matches!(self.graphs.readiness(route), Readiness::Ready);
                if !is_ready {
                    unready.set(unready.get() | 1 << at);
                }
                is_ready
            };
            choice = moment.choose(&candidates, haste, is_ready);
            let in_turn = |at: usize| moment.end_of(&candidates[at], Haste::InTurn);
            (choice.end, choice.first) = (in_turn(choice.at), in_turn(0));
            if allowed.is_some_and(|allowed| choice.end.as_nanos() as f64 > allowed) {
                haste = Haste::Due;
                choice = moment.choose(&candidates, haste, is_ready);
            }
            self.lanes.moment = moment;
            let unready = unready.get();
            compared = Some(unready);
            let is_missing = |at: &usize| unready & 1 << at != 0;
            for at in (0..candidates.len()).filter(is_missing) {
                self.graphs.want_too(&candidates[at].route);
            }
        }
        let (unready, bandwidth) = (compared, 0.0);
        (Chosen { candidates, choice, haste, is_step, allowed, unready, bandwidth }, first)
    }

    /// How many chunks with prompt rows are to follow that are like this one: by the rows of the running requests that are ready, and one for
    /// each waiting request at least.
    fn chunks_behind(&self, selection: &Selection) -> f64 {
        if selection.prompts == 0 {
            return 0.0;
        }
        let prompts = self.running.iter().filter(|sequence| !sequence.is_decoding());
        let rows: usize = prompts.map(Sequence::due).sum();
        let behind = rows.saturating_sub(selection.prompts).div_ceil(selection.prompts);
        (behind + self.waiting.len()) as f64
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
mod tests;
