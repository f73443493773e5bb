//! The routes that a chunk may take, and the choice among them by what the devices have to do at that moment.
//!
//! A route that is the fastest for a chunk alone need not be the one on which it ends first: its devices may be busy. Each candidate has
//! its predicted time alone and its work on each device; a moment has, of each device, when it will have done what it has begun. The chunk
//! takes the candidate that ends first (earliest finish time, as HEFT chooses a processor; Topcuoglu et al., 2002).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Arithmetic, DeviceInfo};

use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::predict::alone;
use crate::route::Route;
use crate::strategy::interface::PlanInput;

/// What a chunk needs of a device, or what a device has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneWork {
    /// Time of all parts of stages.
    pub time: Duration,
    /// Time of the longest: nothing interrupts one that has begun.
    pub longest: Duration,
    /// Number of these parts.
    pub parts: u32,
}

impl LaneWork {
    /// With another part.
    pub(crate) fn add(&mut self, part: Duration) {
        self.time += part;
        self.longest = self.longest.max(part);
        self.parts += 1;
    }

    /// Mean time of a part.
    pub fn mean(self) -> Duration {
        self.time / self.parts.max(1)
    }
}

/// A route that chunks of a shape may take, with predicted times.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The route.
    pub route: Arc<Route>,
    /// Names of its devices, by number.
    pub devices: Arc<str>,
    /// Time of a chunk alone.
    pub alone: Duration,
    /// Work of each device, by number.
    pub lanes: Arc<[LaneWork]>,
    /// Time of each part of its stages, in order.
    pub parts: Arc<[Duration]>,
    /// How often it goes from one device to another.
    pub crossings: u32,
}

/// Whether a chunk passes others that wait for the same device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// It passes those in turn.
    Due,
    /// A step of streams in its turn, which comes again and again: it goes where it delays other chunks least.
    Step,
    /// In its turn.
    InTurn,
}

/// What the steps of streams take of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepLoad {
    /// Share of its time.
    pub share: f64,
    /// Time of a part.
    pub part: Duration,
}

/// What all devices have to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// Of each device, by number, what it has begun or been sent.
    pub lanes: Vec<LaneWork>,
    /// Of each device, by number, what steps of streams take of it again and again.
    pub steps: Vec<StepLoad>,
    /// What each crossing between devices takes longer than predicted.
    pub crossing: Duration,
    /// Of each device, by number, how many times as long as predicted it takes while the others have this to do; 1 where it is not known.
    pub slow: Vec<f64>,
}

/// A chosen candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its place among the candidates.
    pub at: usize,
    /// Predicted time until the chunk ends.
    pub end: Duration,
    /// The same for the first candidate, which is chosen where nothing else is to be done.
    pub first: Duration,
}

/// Devices that give the same bits, class by class, in order: those with the arithmetic of the CPU kernels together, and each other device
/// alone.
pub fn arithmetic_classes(devices: &[DeviceInfo]) -> Vec<Vec<DeviceId>> {
    let ids = (0..devices.len()).map(DeviceId);
    let (common, own): (Vec<DeviceId>, Vec<DeviceId>) =
        ids.partition(|id| devices[id.0].arithmetic == Arithmetic::Cpu);
    let own = own.into_iter().map(|device| vec![device]);
    let mut classes: Vec<Vec<DeviceId>> = std::iter::once(common).chain(own).collect();
    classes.retain(|class| !class.is_empty());
    classes.sort();
    classes
}

/// Candidates of a shape at most.
pub const CANDIDATES_MAX: usize = 8;

/// A candidate other than the first must end earlier by this share.
const GAIN: f64 = 0.02;

impl Candidate {
    /// A candidate, with the times of a chunk of that shape.
    pub fn new(input: &PlanInput<'_>, shape: &ChunkShape, route: Arc<Route>) -> Candidate {
        let prediction = alone(input, shape, &route);
        let (alone, lanes) = (prediction.makespan, prediction.lanes.into());
        let computed = route.compute_stages().flat_map(|stage| &stage.parts);
        let used: BTreeSet<usize> = computed.map(|part| part.device.0).collect();
        let names = used.into_iter().filter_map(|device| input.devices.get(device));
        let names: Vec<&str> = names.map(|device| &*device.name).collect();
        let (devices, crossings) = (names.join("+").into(), crossings(&route));
        let parts = prediction.parts.into();
        Candidate { route, devices, alone, lanes, parts, crossings }
    }

    /// Those of the routes that a chunk may take ([`best`](Candidate::best)). With one device nothing is predicted.
    pub fn of_routes(
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        routes: Vec<Arc<Route>>,
    ) -> Vec<Candidate> {
        let candidate = |route| match input.devices.len() > 1 {
            true => Candidate::new(input, shape, route),
            false => Candidate::only(route),
        };
        Candidate::best(routes.into_iter().map(candidate).collect())
    }

    /// The only route. Nothing is predicted.
    pub fn only(route: Arc<Route>) -> Candidate {
        let crossings = crossings(&route);
        let (devices, alone) = (Arc::default(), Duration::ZERO);
        let (lanes, parts) = Default::default();
        Candidate { route, devices, alone, lanes, parts, crossings }
    }

    /// Those of which no other one is as good on every device: at most [`CANDIDATES_MAX`], always the first, then of each set of devices the
    /// fastest alone.
    pub fn best(candidates: Vec<Candidate>) -> Vec<Candidate> {
        let mut best: Vec<Candidate> = Vec::new();
        let mut candidates = candidates.into_iter();
        best.extend(candidates.next());
        let mut others: Vec<Candidate> = candidates.collect();
        others.sort_by_key(|candidate| candidate.alone);
        let mut sets = BTreeSet::new();
        let (fastest, rest): (Vec<Candidate>, Vec<Candidate>) =
            others.into_iter().partition(|candidate| sets.insert(candidate.used()));
        for candidate in fastest.into_iter().chain(rest) {
            let is_new = !best.iter().any(|other| candidate.is_dominated_by(other));
            if is_new && best.len() < CANDIDATES_MAX {
                best.push(candidate);
            }
        }
        best
    }

    fn is_dominated_by(&self, other: &Candidate) -> bool {
        let mut lanes = other.lanes.iter().zip(&*self.lanes);
        other.alone <= self.alone
            && other.crossings <= self.crossings
            && lanes.all(|(other, own)| other.time <= own.time && other.longest <= own.longest)
    }

    /// Whether it uses each device.
    fn used(&self) -> Vec<bool> {
        self.lanes.iter().map(|lane| !lane.time.is_zero()).collect()
    }

    /// The devices of its first stage.
    fn first(&self) -> impl Iterator<Item = DeviceId> {
        self.route.stages.first().into_iter().flat_map(|stage| &stage.parts).map(|part| part.device)
    }
}

/// Borders of stages at which not all of the work stays on one device.
fn crossings(route: &Route) -> u32 {
    let devices = |at: usize| route.stages[at].parts.iter().map(|part| part.device);
    let borders = 1..route.stages.len();
    let crosses =
        |at: &usize| devices(at - 1).chain(devices(*at)).collect::<BTreeSet<_>>().len() > 1;
    u32::try_from(borders.filter(crosses).count()).unwrap_or(u32::MAX)
}

impl Moment {
    /// Predicted time until a chunk would have ended.
    pub fn end_of(&self, candidate: &Candidate, haste: Haste) -> Duration {
        let path = self.path(candidate) + self.crossing * candidate.crossings;
        let lanes = candidate.lanes.iter().zip(&self.lanes).enumerate();
        let used = lanes.filter(|(_, (own, _))| !own.time.is_zero());
        let used = used.map(|(at, (own, lane))| (self.slowed(at, own.time), lane));
        match haste {
            Haste::Step => {
                // On a device with other work, the step waits for that, and delays it by its own time.
                let ends = used.map(|(own, lane)| match lane.time.is_zero() {
                    true => Duration::ZERO,
                    false => own + lane.time,
                });
                path + ends.sum::<Duration>()
            }
            // Once on each device it waits for what has begun there.
            Haste::Due => path + used.map(|(_, lane)| lane.time.min(lane.longest)).sum(),
            Haste::InTurn => {
                let free = |device: DeviceId| self.lanes.get(device.0).map(|lane| lane.time);
                let path = path + self.wait_for_steps(candidate);
                let start = candidate.first().filter_map(free).max().unwrap_or_default();
                let ends = used.map(|(own, lane)| own + lane.time);
                ends.chain([start + path]).max().unwrap_or_default()
            }
        }
    }

    /// Longest time until one of the devices of a candidate has done what it has begun or been sent.
    pub fn busy(&self, candidate: &Candidate) -> Duration {
        let lanes = candidate.lanes.iter().zip(&self.lanes);
        let used = lanes.filter(|(own, _)| !own.time.is_zero());
        used.map(|(_, lane)| lane.time).max().unwrap_or_default()
    }

    /// Time of a part of a device, as long as it takes at this moment.
    fn slowed(&self, device: usize, time: Duration) -> Duration {
        match self.slow.get(device) {
            Some(slow) if *slow != 1.0 => time.mul_f64(*slow),
            _ => time,
        }
    }

    /// Time of a chunk whose stages take as long as they do at this moment.
    fn path(&self, candidate: &Candidate) -> Duration {
        if self.slow.iter().all(|slow| *slow == 1.0) {
            return candidate.alone;
        }
        let all: Duration = candidate.lanes.iter().map(|lane| lane.time).sum();
        let lanes = candidate.lanes.iter().enumerate();
        let slowed: Duration = lanes.map(|(at, lane)| self.slowed(at, lane.time)).sum();
        match all.is_zero() {
            true => candidate.alone,
            false => candidate.alone.mul_f64(slowed.as_secs_f64() / all.as_secs_f64()),
        }
    }

    /// How long the parts of a chunk wait for steps of streams that have begun before them: as often as the device computes steps, and
    /// then for half of one.
    fn wait_for_steps(&self, candidate: &Candidate) -> Duration {
        let lanes = candidate.lanes.iter().zip(&self.steps);
        lanes.map(|(own, step)| step.part.mul_f64(f64::from(own.parts) * step.share / 2.0)).sum()
    }

    /// The candidate on which a chunk ends first, of those that are ready, by their places; of those that hardly differ from the first one, the first.
    ///
    /// # Panics
    /// Without candidates.
    pub fn choose(
        &self,
        candidates: &[Candidate],
        haste: Haste,
        is_ready: impl Fn(usize) -> bool,
    ) -> Choice {
        let first = self.end_of(&candidates[0], haste);
        let mut best = Choice { at: 0, end: first, first };
        for (at, candidate) in candidates.iter().enumerate().skip(1) {
            let end = self.end_of(candidate, haste);
            let gains = end < first.mul_f64(1.0 - GAIN);
            if gains && end < best.end && is_ready(at) {
                best = Choice { at, end, ..best };
            }
        }
        best
    }
}

mod scene;

pub use scene::{RatedCandidate, RatedMoment, RatedStep, Scene, SceneError};

#[cfg(test)]
mod tests;
