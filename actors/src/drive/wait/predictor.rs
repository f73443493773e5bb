//! Predicts the length of a wait from the latest waits of its kind.

use std::collections::HashMap;

use super::WaitKey;

/// Waits kept per kind.
const KEPT: usize = 16;
/// Waits of a kind required for a prediction.
const NEEDED: usize = 3;
/// Maximum kinds. When they are exceeded, all kinds are cleared.
const KINDS_MAX: usize = 1024;

/// Online predictor of waits, by kind.
#[derive(Clone, Debug, Default)]
pub struct Predictor {
    kinds: HashMap<WaitKey, Latest>,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    waits: [u64; KEPT],
    seen: usize,
}

/// The predicted length of a wait, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicted {
    /// Median of the latest waits of its kind.
    pub median: u64,
    /// Median − minimum, without waits below half the median.
    pub earlier: u64,
    /// Maximum − median, without waits above one and a half medians.
    pub later: u64,
}

impl Predictor {
    /// Predicts the next wait of a kind; `None` without enough waits.
    pub fn predict(&self, key: WaitKey) -> Option<Predicted> {
        let latest = self.kinds.get(&key).filter(|latest| latest.seen >= NEEDED)?;
        let mut waits = latest.waits;
        let waits = &mut waits[..latest.seen.min(KEPT)];
        waits.sort_unstable();
        let median = waits[waits.len() / 2];
        let near =
            |wait: &&u64| **wait >= median / 2 && **wait <= median.saturating_add(median / 2);
        let shortest = waits.iter().find(near).map_or(median, |wait| *wait);
        let longest = waits.iter().rev().find(near).map_or(median, |wait| *wait);
        Some(Predicted { median, earlier: median - shortest, later: longest - median })
    }

    /// Records a wait of a kind, in ns.
    pub fn learn(&mut self, key: WaitKey, ns: u64) {
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&key) {
            self.kinds.clear();
        }
        let latest = self.kinds.entry(key).or_insert(Latest { waits: [0; KEPT], seen: 0 });
        latest.waits[latest.seen % KEPT] = ns;
        latest.seen += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(waits: impl IntoIterator<Item = u64>) -> Option<Predicted> {
        let mut predictor = Predictor::default();
        waits.into_iter().for_each(|ns| predictor.learn(WaitKey::default(), ns));
        predictor.predict(WaitKey::default())
    }

    #[test]
    fn too_few_waits_predict_nothing() {
        assert_eq!(after([1000, 1000]), None);
        assert_eq!(after([1000; 3]), Some(Predicted { median: 1000, earlier: 0, later: 0 }));
    }

    #[test]
    fn a_rare_tail_does_not_move_the_prediction() {
        let waits = (0..64).map(|i| if i % 8 == 0 { 1_000_000 } else { 950 + i % 3 * 50 });
        assert_eq!(after(waits), Some(Predicted { median: 1000, earlier: 50, later: 50 }));
    }

    #[test]
    fn a_clock_that_stepped_spoils_one_wait_and_no_prediction() {
        let waits = [1000, 1000, 1000, u64::MAX, 0, 1000];
        assert_eq!(after(waits), Some(Predicted { median: 1000, earlier: 0, later: 0 }));
    }

    #[test]
    fn a_new_length_is_learnt_within_the_kept_waits() {
        let waits = std::iter::repeat_n(5000, 100).chain(std::iter::repeat_n(300, KEPT / 2 + 1));
        assert_eq!(after(waits).unwrap().median, 300);
    }

    #[test]
    fn kinds_do_not_mix_and_cannot_fill_the_memory() {
        let mut predictor = Predictor::default();
        for op in 0..5000 {
            for _ in 0..NEEDED {
                predictor.learn(WaitKey::new(op, 33, 0), u64::from(op));
            }
            let predicted = predictor.predict(WaitKey::new(op, 64, 0)).unwrap();
            assert_eq!(predicted.median, u64::from(op));
            assert!(predictor.predict(WaitKey::new(op, 65, 0)).is_none());
            assert!(predictor.predict(WaitKey::new(op, 64, 1)).is_none());
        }
        assert!(predictor.kinds.len() <= KINDS_MAX);
    }
}
