//! Times of chunks, predicted and measured.

use std::ops::RangeInclusive;

use lapwing_kernels::device::ModelId;
use lapwing_traces::Nanos;

mod fit;

use fit::Fit;

use super::rows::PlannedBy;

/// A chunk in flight whose time was predicted.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredictedChunk {
    /// Number of the chunk.
    pub(super) id: u64,
    pub(super) model: ModelId,
    /// Whose route it has.
    pub(super) by: PlannedBy,
    /// Its rows.
    pub(super) rows: usize,
    /// Its time, as the cost model has it.
    pub(super) time: ModelTime,
    /// Time of its dispatch.
    pub(super) since: Nanos,
    /// Whether streams limit its prompt rows.
    pub(super) is_limited: bool,
}

/// Chunks in flight whose times were predicted, and when the latest chunk ended.
#[derive(Debug, Default)]
pub(super) struct ChunkTimes {
    in_flight: Vec<PredictedChunk>,
    latest_end: Nanos,
}

impl ChunkTimes {
    /// Records that a chunk is sent.
    pub(super) fn on_sent(&mut self, chunk: PredictedChunk) {
        self.in_flight.push(chunk);
    }

    /// Records that a chunk has ended. Returns its prediction and its real time in ns: since it was sent, or since the chunk
    /// before it ended.
    pub(super) fn on_ended(&mut self, id: u64, now: Nanos) -> Option<(PredictedChunk, f64)> {
        let before = std::mem::replace(&mut self.latest_end, now);
        let at = self.in_flight.iter().position(|chunk| chunk.id == id)?;
        let chunk = self.in_flight.remove(at);
        let begin = chunk.since.max(before);
        (now > begin).then(|| (chunk, now.since(begin).as_nanos() as f64))
    }
}

/// Time of a chunk in ns, as the cost model has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ModelTime {
    /// Without rows before it in the KV cache.
    pub(super) alone: f64,
    /// What the rows before it add.
    pub(super) context: f64,
}

/// How the times of a model's chunks differ from those of its cost model: by a factor, by another one of the time that the
/// context adds, and by the chunk's size.
#[derive(Clone, Debug, Default)]
pub(super) struct Corrections {
    fit: Fit,
    /// By the binary logarithm of the number of rows: what the fit leaves.
    sizes: Vec<Option<Ratio>>,
}

/// Real time / fitted time: a moving average, and the mean distance from it.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    mean: f64,
    spread: f64,
}

/// Weight of a new ratio in an average.
const WEIGHT: f64 = 0.25;

/// Ratios beyond these were disturbed, and count as these.
const RATIOS: RangeInclusive<f64> = 0.5..=2.0;

/// First spread of a ratio, where nothing was measured before.
const FIRST_SPREAD: f64 = 0.1;

/// Share by which each new ratio makes those of other sizes less pessimistic. A size that was disturbed is tried again.
const FORGET: f64 = 0.02;

/// Spreads that are added to a mean. A spread is a mean deviation: of times that vary normally, one of 43 is longer.
const SPREADS: f64 = 2.5;

/// Smallest spread: times of a device vary a little, however steady the latest were.
const SPREAD_MIN: f64 = 0.025;

fn size_of(rows: usize) -> usize {
    rows.max(1).ilog2() as usize
}

impl Corrections {
    /// Records that a chunk took `time` ns.
    pub(super) fn record(&mut self, rows: usize, model: ModelTime, time: f64) {
        let fitted = self.fit.time(model);
        if !(fitted > 0.0 && time > 0.0) {
            return;
        }
        let is_first = self.sizes.is_empty();
        self.fit.record(model, time);
        // Before anything is measured, the fit is a guess.
        let fitted = if is_first { self.fit.time(model) } else { fitted };
        let ratio = (time / fitted).clamp(*RATIOS.start(), *RATIOS.end());
        let (size, nearest) = (size_of(rows), self.nearest(rows));
        if self.sizes.len() <= size {
            self.sizes.resize(size + 1, None);
        }
        let first = nearest.map_or(ratio * FIRST_SPREAD, |it| it.spread);
        let new = match self.sizes[size] {
            None => Ratio { mean: ratio, spread: first },
            Some(Ratio { mean, spread }) => Ratio {
                mean: mean + WEIGHT * (ratio - mean),
                spread: spread + WEIGHT * ((ratio - mean).abs() - spread),
            },
        };
        for other in self.sizes.iter_mut().flatten() {
            other.mean -= FORGET * (other.mean - new.mean).max(0.0);
            other.spread *= 1.0 - FORGET;
        }
        self.sizes[size] = Some(new);
    }

    /// Whether any chunk was measured.
    pub(super) fn are_known(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// A time in ns that a chunk of so many rows rarely exceeds.
    pub(super) fn at_most(&self, rows: usize, model: ModelTime) -> f64 {
        let ratio =
            self.nearest(rows).map_or(1.0, |it| it.mean + SPREADS * it.spread.max(SPREAD_MIN));
        ratio * self.fit.time(model)
    }

    /// The time in ns that a chunk of so many rows takes on average.
    pub(super) fn on_average(&self, rows: usize, model: ModelTime) -> f64 {
        self.nearest(rows).map_or(1.0, |it| it.mean) * self.fit.time(model)
    }

    /// The time in ns of a chunk, whatever its size: times of chunks beside streams and of others are not comparable, because
    /// they were measured under different loads.
    pub(super) fn of_any_size(&self, model: ModelTime) -> f64 {
        self.fit.time(model)
    }

    /// The ratio of chunks of the nearest size that was measured; of two, the smaller.
    fn nearest(&self, rows: usize) -> Option<Ratio> {
        let size = size_of(rows);
        let known = self.sizes.iter().enumerate().filter_map(|(at, ratio)| Some((at, (*ratio)?)));
        known.min_by_key(|(at, _)| at.abs_diff(size)).map(|(_, ratio)| ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(alone: f64, context: f64) -> ModelTime {
        ModelTime { alone, context }
    }

    #[test]
    fn a_time_is_corrected_by_what_chunks_of_its_size_took() {
        let mut corrections = Corrections::default();
        for _ in 0..60 {
            corrections.record(64, model(100.0, 0.0), 300.0);
            corrections.record(512, model(1000.0, 0.0), 2000.0);
        }
        for (rows, expected) in [(64, 300.0), (100, 300.0), (32, 300.0), (512, 200.0), (999, 200.0)]
        {
            let found = corrections.on_average(rows, model(100.0, 0.0));
            assert!((found / expected - 1.0).abs() < 0.1, "{rows} rows: {found}");
        }
        // Between the sizes, the nearer one counts, and of two the smaller.
        assert!(corrections.on_average(128, model(100.0, 0.0)) > 270.0);
        assert!(corrections.on_average(256, model(100.0, 0.0)) < 220.0);
    }

    #[test]
    fn times_that_grow_otherwise_with_the_context_leave_little_room() {
        let mut corrections = Corrections::default();
        for chunk in 0..60 {
            let at = model(1000.0, f64::from(chunk) * 50.0);
            let time = 0.1 * at.alone + 0.3 * at.context;
            if chunk > 10 {
                let most = corrections.at_most(128, at);
                assert!((time..1.1 * time).contains(&most), "chunk {chunk}: {most} for {time}");
            }
            corrections.record(128, at, time);
        }
    }

    #[test]
    fn unsteady_times_leave_more_room() {
        let mut corrections = Corrections::default();
        for at in 0..50 {
            corrections.record(64, model(100.0, 0.0), if at % 2 == 0 { 80.0 } else { 120.0 });
        }
        let most = corrections.at_most(64, model(100.0, 0.0));
        assert!((120.0..170.0).contains(&most), "{most}");
    }

    #[test]
    fn a_size_that_was_disturbed_is_tried_again() {
        let mut corrections = Corrections::default();
        (0..20).for_each(|_| corrections.record(32, model(100.0, 0.0), 100.0));
        corrections.record(256, model(100.0, 0.0), 1000.0);
        assert!(corrections.at_most(256, model(100.0, 0.0)) > 150.0);
        (0..200).for_each(|_| corrections.record(32, model(100.0, 0.0), 100.0));
        assert!(corrections.at_most(256, model(100.0, 0.0)) < 120.0);
    }

    #[test]
    fn a_chunk_that_waited_for_another_is_timed_from_its_end() {
        let mut times = ChunkTimes::default();
        let chunk = |id, since| PredictedChunk {
            id,
            model: ModelId::default(),
            by: PlannedBy::Strategy,
            rows: 1,
            time: model(1.0, 0.0),
            since: Nanos(since),
            is_limited: false,
        };
        times.on_sent(chunk(1, 10));
        times.on_sent(chunk(2, 20));
        let mut took = |id, now| times.on_ended(id, Nanos(now)).map(|(_, time)| time);
        assert_eq!(took(1, 110), Some(100.0));
        assert_eq!(took(2, 150), Some(40.0));
        assert_eq!(took(3, 160), None, "its time was not predicted");
    }
}
