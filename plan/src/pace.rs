//! Prompt rows of a chunk beside streams: as many as a time allows, or as few as keep most of the prefill rate.

use std::time::Duration;

use crate::chunk::ChunkShape;
use crate::moment::Candidate;
use crate::phase::Phase;
use crate::planner::Planner;

/// Prompt rows of a chunk are limited to a multiple of this number, as far as so many fit.
pub const TILE: usize = 16;

/// Fewest prompt rows of a chunk that a time limits: fewer cost as much.
pub const FITTING_MIN: usize = 4;

/// Fewest prompt rows that are taken to keep most of the prefill rate. Device models know little of the price of small chunks.
pub const EFFICIENT_MIN: usize = 128;

/// Most prompt rows of a chunk beside streams on several devices: chunks of so many overlap with each other, and each takes the route on
/// which it ends first.
const OVERLAPPED_ROWS: usize = 256;

/// Times of a step for which it may wait for prompts on several devices, without a target.
pub const STEPS_WAITED: f64 = 2.0;

/// Share of the prefill rate that chunks beside streams without a target keep.
pub const KEPT: f64 = 0.94;

/// The most prompt rows, of `most`, whose time fits: a multiple of [`TILE`], or half a tile and so on down to [`FITTING_MIN`], which
/// are taken to fit. So is a number of rows without a predicted time.
pub fn fitting_rows(most: usize, limit: f64, mut time: impl FnMut(usize) -> Option<f64>) -> usize {
    let (mut fits, mut exceeds) = (1, most.div_ceil(TILE) + 1);
    while exceeds - fits > 1 {
        let tiles = usize::midpoint(fits, exceeds);
        match time(tiles * TILE) {
            Some(time) if time > limit => exceeds = tiles,
            _ => fits = tiles,
        }
    }
    let mut rows = fits * TILE;
    while fits == 1 && rows > FITTING_MIN && time(rows).is_some_and(|time| time > limit) {
        rows /= 2;
    }
    rows
}

/// The fewest prompt rows that keep [`KEPT`] of the prefill rate of chunks with `whole` rows: at least [`EFFICIENT_MIN`], if
/// there are as many.
pub fn efficient_rows(whole: usize, mut time: impl FnMut(usize) -> Option<f64>) -> usize {
    let mut of_a_row = |rows: usize| time(rows).map(|time| time / rows as f64);
    let Some(best) = of_a_row(whole) else { return EFFICIENT_MIN.min(whole) };
    let mut rows = EFFICIENT_MIN;
    while rows < whole {
        match of_a_row(rows) {
            Some(time) if time > best / KEPT => rows *= 2,
            _ => break,
        }
    }
    rows.min(whole)
}

/// The prompt rows of a chunk on several devices beside streams, of `most`, for whose stages a step waits no longer than a slack in ns: a
/// power of two, so that few shapes are planned and graphs have these sizes.
pub fn rows_between_steps(
    most: usize,
    slack: f64,
    mut wait: impl FnMut(usize) -> Option<f64>,
) -> usize {
    let mut rows = most.next_power_of_two().min(OVERLAPPED_ROWS);
    while rows > TILE && wait(rows).is_some_and(|wait| wait > slack) {
        rows /= 2;
    }
    rows
}

/// How long a step waits at most for stages of a chunk that have begun, in ns, on the best of its routes.
pub fn wait_of_step(steps: &[Candidate], chunk: &Candidate) -> Option<f64> {
    let waits = steps.iter().map(|step| {
        let lanes = step.lanes.iter().zip(&*chunk.lanes);
        let waits = lanes.filter(|(own, _)| !own.time.is_zero()).map(|(_, lane)| lane.longest);
        waits.sum::<Duration>().as_nanos() as f64
    });
    waits.min_by(f64::total_cmp)
}

/// A prompt that is computed beside a stream, by predicted times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BesideStream {
    /// Prompt rows of its largest chunk.
    pub rows: usize,
    /// The longest time of a chunk, for which the stream waits.
    pub gap: Duration,
    /// Time of the prompt.
    pub time: Duration,
}

impl Planner {
    /// Predicts a prompt beside a stream with that target, or without one. `None` if the strategy has no route.
    pub fn beside_stream(&mut self, prompt: usize, gap: Option<Duration>) -> Option<BesideStream> {
        let (mut done, mut rows_max, mut longest, mut whole) = (0, 0, 0.0_f64, 0.0);
        while done < prompt {
            let most = (prompt - done).min(self.chunk_rows_max());
            // The stream has a row in each chunk.
            let mut time = |rows: usize| {
                let shape = ChunkShape {
                    phase: Phase::Mixed,
                    rows: rows + 1,
                    selected: 2,
                    context: done,
                    prompt,
                };
                self.time(shape)
            };
            let rows = match gap {
                Some(gap) => fitting_rows(most, gap.as_nanos() as f64, &mut time),
                None => efficient_rows(most, &mut time),
            };
            let rows = rows.min(most);
            let time = time(rows)?;
            (longest, whole, rows_max) = (longest.max(time), whole + time, rows.max(rows_max));
            done += rows;
        }
        let [gap, time] = [longest, whole].map(|nanos| Duration::from_nanos(nanos as u64));
        Some(BesideStream { rows: rows_max, gap, time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_tiles_fit_whose_time_does() {
        let time = |rows: usize| Some(20.0 + rows as f64);
        for (most, limit, rows) in [
            (512, 1000.0, 512),
            (500, 1000.0, 512),
            (512, 340.0, 320),
            (512, 339.0, 304),
            (512, 36.0, 16),
            (512, 35.0, 8),
            (512, 27.0, 4),
            (512, 1.0, 4),
            (3, 1000.0, 16),
        ] {
            assert_eq!(fitting_rows(most, limit, time), rows, "{limit} for {most} rows");
        }
        assert_eq!(fitting_rows(512, 1.0, |_| None), 512);
    }

    #[test]
    fn the_fewest_rows_keep_most_of_the_rate() {
        let chunks = |overhead: f64| move |rows: usize| Some(overhead + rows as f64);
        for (overhead, rows) in [(0.0, 128), (10.0, 128), (20.0, 256), (60.0, 512)] {
            assert_eq!(efficient_rows(512, chunks(overhead)), rows, "{overhead}");
        }
        assert_eq!(efficient_rows(16, chunks(50.0)), 16);
        assert_eq!(efficient_rows(512, |_| None), 128);
    }
}
