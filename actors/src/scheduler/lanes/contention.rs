//! How much longer than predicted the stages of a device take while others compute, because they share memory, power or cores. It is learned
//! from stages that have ended, of steps and of prompts apart: steps wait for memory, and prompts for operations.

use std::collections::VecDeque;

use crate::chunk::DeviceSet;

/// Real / predicted time of stages.
#[derive(Clone, Debug, Default)]
pub(super) struct Contention {
    devices: usize,
    /// Of prompts and of steps, by device and other device that computes meanwhile; by the device itself if none does. 0 where it is not
    /// known.
    factors: [Vec<f64>; 2],
    /// Errors of the latest stages beside others: of the prediction, and of what was learned before them.
    errors: VecDeque<[f64; 2]>,
}

/// A stage that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) is_step: bool,
    pub(super) device: usize,
    /// Other devices that computed meanwhile.
    pub(super) beside: DeviceSet,
    /// Predicted and real time, in ns.
    pub(super) predicted: f64,
    pub(super) time: f64,
}

/// How far predicted times of the latest stages are from real ones, of those stages beside which other devices computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageErrors {
    /// Number of these stages.
    pub stages: usize,
    /// Median of |predicted − real| / real by the cost model.
    pub predicted: f64,
    /// The same with what had been learned before each of them.
    pub learned: f64,
}

/// Weight of a new stage in an average.
const WEIGHT: f64 = 0.1;

/// A stage counts as at least and at most so many times its predicted time.
const FACTORS: [f64; 2] = [0.5, 4.0];

/// Stages whose errors are kept.
const ERRORS: usize = 200;

impl Contention {
    /// Real / predicted time of a device while others compute: that beside the one that slows it down most.
    pub(super) fn factor(&self, is_step: bool, device: usize, beside: DeviceSet) -> f64 {
        if device >= self.devices {
            return 1.0;
        }
        let known = |other: usize| {
            let row = &self.factors[usize::from(is_step)][device * self.devices..];
            if other < self.devices { row[other] } else { 0.0 }
        };
        let others = beside.without(DeviceSet::of(device)).devices().map(known);
        let most = others.fold(0.0, f64::max);
        let factor = if most > 0.0 { most } else { known(device) };
        if factor > 0.0 { factor } else { 1.0 }
    }

    /// Records a stage on one of so many devices.
    pub(super) fn record(&mut self, devices: usize, stage: Ended) {
        let Ended { is_step, device, beside, predicted, time } = stage;
        if devices > self.devices {
            *self = Contention::default();
            self.devices = devices;
            self.factors = [vec![0.0; devices * devices], vec![0.0; devices * devices]];
        }
        if device >= self.devices || predicted <= 0.0 || time <= 0.0 {
            return;
        }
        let others = beside.without(DeviceSet::of(device));
        if !others.is_empty() {
            let learned = predicted * self.factor(is_step, device, others);
            if self.errors.len() == ERRORS {
                self.errors.pop_front();
            }
            self.errors.push_back([predicted, learned].map(|it| (it - time).abs() / time));
        }
        let ratio = (time / predicted).clamp(FACTORS[0], FACTORS[1]);
        let row = &mut self.factors[usize::from(is_step)][device * self.devices..];
        let beside = if others.is_empty() { DeviceSet::of(device) } else { others };
        for other in beside.devices().take_while(|other| *other < self.devices) {
            row[other] = match row[other] {
                0.0 => ratio,
                known => known + WEIGHT * (ratio - known),
            };
        }
    }

    /// Errors of the latest stages beside others; `None` without any.
    pub(super) fn errors(&self) -> Option<StageErrors> {
        let median = |which: usize| {
            let mut errors: Vec<f64> = self.errors.iter().map(|error| error[which]).collect();
            errors.sort_by(f64::total_cmp);
            errors.get(errors.len() / 2).copied()
        };
        Some(StageErrors { stages: self.errors.len(), predicted: median(0)?, learned: median(1)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(device: usize, beside: &[usize], time: f64) -> Ended {
        let sets = beside.iter().map(|other| DeviceSet::of(*other));
        let beside = sets.fold(DeviceSet::default(), DeviceSet::with);
        Ended { is_step: false, device, beside, predicted: 100.0, time }
    }

    #[test]
    fn the_factor_is_that_of_the_worst_of_those_that_compute() {
        let mut contention = Contention::default();
        let set = DeviceSet::of;
        assert_eq!(contention.factor(false, 0, set(1)), 1.0);
        for _ in 0..50 {
            contention.record(3, stage(0, &[], 110.0));
            contention.record(3, stage(0, &[1], 150.0));
            contention.record(3, stage(0, &[2], 120.0));
        }
        let factor = |beside| (contention.factor(false, 0, beside) * 100.0).round();
        assert_eq!(factor(DeviceSet::default()), 110.0);
        assert_eq!(factor(set(0)), 110.0);
        assert_eq!(factor(set(1)), 150.0);
        assert_eq!(factor(set(2)), 120.0);
        assert_eq!(factor(set(1).with(set(2))), 150.0);
        // Of steps, and of the others, nothing is known.
        assert_eq!(contention.factor(true, 0, set(1)), 1.0);
        assert_eq!(contention.factor(false, 1, set(0)), 1.0);
        assert_eq!(contention.factor(false, 7, set(0)), 1.0);
    }

    #[test]
    fn a_single_stage_changes_little_and_no_factor_is_absurd() {
        let mut contention = Contention::default();
        for _ in 0..100 {
            contention.record(2, stage(1, &[0], 200.0));
        }
        contention.record(2, stage(1, &[0], 1e12));
        assert!((contention.factor(false, 1, DeviceSet::of(0)) - 2.2).abs() < 1e-9);
        for time in [1e12, 0.001, 0.0, -1.0] {
            (0..200).for_each(|_| contention.record(2, stage(1, &[0], time)));
            assert!((0.5..=4.0).contains(&contention.factor(false, 1, DeviceSet::of(0))));
        }
    }

    #[test]
    fn errors_shrink_once_the_factor_is_known() {
        let mut contention = Contention::default();
        assert_eq!(contention.errors(), None);
        (0..200).for_each(|_| contention.record(2, stage(0, &[], 100.0)));
        assert_eq!(contention.errors(), None);
        (0..400).for_each(|_| contention.record(2, stage(0, &[1], 160.0)));
        let StageErrors { stages, predicted, learned } = contention.errors().expect("stages");
        assert_eq!(stages, 200);
        assert!((predicted - 0.375).abs() < 1e-9 && learned < 1e-9, "{predicted} {learned}");
    }
}
