//! The routes that a chunk may take, and the choice among them by what the devices have to do at that moment.
//!
//! A route that is the fastest for a chunk alone need not be the one on which it ends first: its devices may be busy. Each candidate has
//! its predicted time alone and its work on each device; a moment has, of each device, when it will have done what it has begun. The chunk
//! takes the candidate that ends first (earliest finish time, as HEFT chooses a processor; Topcuoglu et al., 2002). That rule alone fills all
//! devices with routes that end early and take much work in all, so a chunk with others behind it takes the candidate with which it and the
//! next of them end first, as far as the least mean time of the best mix of candidates tells.

use std::time::Duration;

use lapwing_kernels::device::{Arithmetic, DeviceInfo};

use crate::device::DeviceId;
use crate::rule::Rule;

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
    /// Whether chunks of other models are among it. Rules are predicted for chunks of one model.
    pub has_other_models: bool,
    /// How many chunks like this one are still to be cut.
    pub behind: f64,
    /// Prices at which the time of all of them is bounded.
    pub prices: Prices,
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

/// A candidate other than the first must end earlier by this share.
const GAIN: f64 = 0.02;

/// The same where many chunks on the first candidate are done sooner than on others.
const FAR: f64 = 0.5;

/// What the end of a chunk counts beside that of the chunks behind it.
const SOON: f64 = 0.05;

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

    /// Whether no device has anything to do.
    fn is_idle(&self) -> bool {
        self.lanes.iter().all(|lane| lane.time.is_zero())
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

    /// The candidate on which a chunk ends first, of those that are ready, by their places; of those that hardly differ from the first one, the
    /// first. By their [`Rule`] it may be the one with which the next chunks behind it end first, too, or the first one unless another ends far earlier.
    ///
    /// # Panics
    /// Without candidates.
    pub fn choose(
        &self,
        candidates: &[Candidate],
        haste: Haste,
        is_ready: impl Fn(usize) -> bool,
    ) -> Choice {
        let rule = match self.has_other_models {
            true => Rule::First,
            false => candidates[0].route.rule,
        };
        self.choose_by(rule, candidates, haste, is_ready)
    }

    /// As [`choose`](Moment::choose), by this rule.
    pub(crate) fn choose_by(
        &self,
        rule: Rule,
        candidates: &[Candidate],
        haste: Haste,
        is_ready: impl Fn(usize) -> bool,
    ) -> Choice {
        let mut costs = [0.0; CANDIDATES_MAX];
        let costs = &mut costs[..candidates.len().min(CANDIDATES_MAX)];
        let ends = |at: usize| self.end_of(&candidates[at], haste);
        if self.behind > 0.0 && haste == Haste::InTurn && rule == Rule::Mix {
            self.end_of_all(candidates, costs);
        }
        let cost = |at: usize, end: Duration| {
            let (end, all) = (end.as_nanos() as f64, costs.get(at).copied().unwrap_or(0.0));
            if all > 0.0 { all.max(end) + SOON * end } else { end }
        };
        let first = ends(0);
        let (mut best, mut least) = (Choice { at: 0, end: first, first }, cost(0, first));
        let gain = match (rule, haste) {
            (Rule::Alone, Haste::InTurn) if self.is_idle() => {
                return Choice { at: 0, end: first, first };
            }
            (Rule::Alone, Haste::InTurn) => FAR,
            _ => GAIN,
        };
        let most = least - gain * first.as_nanos() as f64;
        for at in 1..candidates.len() {
            let end = ends(at);
            let cost = cost(at, end);
            if cost < most && cost < least && is_ready(at) {
                (best, least) = (Choice { at, end, ..best }, cost);
            }
        }
        best
    }
}

mod candidate;
mod known;
mod mix;
mod scene;
mod sent;
mod work;

pub use candidate::{CANDIDATES_MAX, Candidate};
pub(crate) use known::Known;
pub use mix::Prices;
pub use scene::{RatedCandidate, RatedMoment, RatedStep, Scene, SceneError};
pub(crate) use sent::Sent;
pub use work::{LaneWork, StepLoad};

#[cfg(test)]
mod tests;
