//! Ops as they follow each other in a step. A device prefetches the weights of the next op, and does not wait between two, so
//! that a chain of ops takes another time than they take alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceError, DeviceInfo, MemoryDomain, Payload, TensorSet};
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;
use lapwing_plan::profile::{Sample, Spread};
use lapwing_plan::shape::OpShape;

use super::MeasureError;
use super::choice::Choice;
use super::device::{DeviceBench, Fixed};
use super::inputs;

/// What is measured.
pub(super) const WHAT: &str =
    "the whole model: a step, a step after a context, and a chunk, in turns";

/// Runs of a chain that are measured at least, after one that warms up.
const RUNS_MIN: usize = 3;

/// Time for which a chain runs before another has its turn, or one run if that takes longer: within it, most runs find in the caches what
/// the same chain left there. The time of a turn is the mean of its runs, since every stall of the machine delays the text, too.
const TURN: Duration = Duration::from_millis(100);

/// Rows that are written to the KV cache at once.
const ROWS_AT_ONCE: usize = 256;

/// How much longer the whole model takes than its ops alone, at a number of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Factor {
    m: usize,
    factor: f64,
}

/// What is known before the whole model is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// What a job of its own takes more than its ops.
    pub(super) submit: Duration,
    /// Spent on measuring ops.
    pub(super) ops: Duration,
}

/// Rows of the whole model, behind a context.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    m: usize,
    context: usize,
}

/// The turns of a chunk.
struct Turns {
    payload: Arc<Payload>,
    spent: Duration,
    runs: usize,
    /// Mean time of a run in each turn.
    means: Vec<Duration>,
}

/// Makes the sums of all samples the times that the whole model takes with one row and with the most rows that were measured.
/// Samples between have factors between. All stay as they are without one of these sums, and on a device that does not compute all
/// of the model, may not have room for it, or has no time left, and with experts, of which equal rows would all choose the same.
///
/// # Errors
/// [`MeasureError`] if the device fails.
pub(super) fn fit_to_whole(
    bench: &mut DeviceBench<'_>,
    info: &DeviceInfo,
    time: Time,
    samples: &mut [Sample],
) -> Result<(), MeasureError> {
    let graph = bench.graph;
    let Some(left) = bench.limits.per_device.checked_sub(time.ops) else { return Ok(()) };
    // Half as long again as the ops.
    let measured = left.min(time.ops.mul_f64(1.5));
    let computes_all = graph.nodes().iter().all(|node| info.runs(&node.op));
    let routes = graph.nodes().iter().any(|node| matches!(node.op, Op::Experts(_)));
    if routes || !computes_all || info.memory != MemoryDomain::Host || bench.between.is_none() {
        return Ok(());
    }
    let most = samples.iter().map(|sample| sample.m).max().unwrap_or(0);
    let at_once = samples.iter().filter(|sample| sample.m == 1);
    let deepest = at_once.map(|sample| sample.context).max().unwrap_or(0);
    // Without a second number of rows, or a context, that chunk is the first again.
    let chunks = [
        Chunk { m: 1, context: 0 },
        Chunk { m: 1, context: deepest },
        Chunk { m: most, context: 0 },
    ];
    let sums = chunks.map(|chunk| sum(graph, samples, chunk));
    let [Some(step), Some(late), Some(chunk)] = sums else { return Ok(()) };
    let failed = |source| MeasureError::Device { what: "the whole model".to_owned(), source };
    let times = bench.whole(&chunks, measured / chunks.len() as u32).map_err(failed)?;
    let times = times.iter().map(|all| all.saturating_sub(time.submit).as_nanos() as f64);
    let [whole_step, whole_late, whole_chunk] = times.collect::<Vec<f64>>()[..] else {
        return Ok(());
    };
    let factors = [
        Factor { m: 1, factor: whole_step / step },
        Factor { m: most, factor: whole_chunk / chunk },
    ];
    let (added, alone) = (whole_late - whole_step, late - step);
    let of_context = (added > 0.0 && alone > 0.0).then(|| added / alone);
    scale(samples, factors, of_context);
    Ok(())
}

/// Multiplies the times: all by the factor of their rows, and what a context adds to one row by a factor of its own.
fn scale(samples: &mut [Sample], factors: [Factor; 2], of_context: Option<f64>) {
    let at_once: HashMap<OpShape, u64> = samples
        .iter()
        .filter(|sample| sample.m == 1 && sample.context == 0)
        .map(|sample| (sample.shape.clone(), sample.time.median_ns))
        .collect();
    for sample in samples {
        let factor = between(factors, sample.m);
        let bare = at_once.get(&sample.shape).filter(|_| sample.m == 1 && sample.context > 0);
        let scaled = |ns: u64| {
            let ns = match (bare, of_context) {
                (Some(bare), Some(of_context)) => {
                    let (bare, ns) = (*bare as f64, ns as f64);
                    bare * factor + (ns - bare).max(0.0) * of_context
                }
                _ => ns as f64 * factor,
            };
            (ns.round() as u64).max(1)
        };
        let Spread { median_ns, min_ns, max_ns, .. } = &mut sample.time;
        (*median_ns, *min_ns, *max_ns) = (scaled(*median_ns), scaled(*min_ns), scaled(*max_ns));
    }
}

/// Nanoseconds of all ops of a chunk alone, whose last row is selected. `None` if one was not measured.
fn sum(graph: &Graph, samples: &[Sample], Chunk { m, context }: Chunk) -> Option<f64> {
    let time = |(at, node): (usize, &lapwing_kernels::graph::Node)| {
        let shape = OpShape::of(graph, at, &Part::WHOLE);
        let rows = if graph.value(node.output).rows == RowSet::Selected { 1 } else { m };
        let context = if shape.has_context() { context } else { 0 };
        let fits = |sample: &&Sample| {
            sample.shape == shape && sample.m == rows && sample.context == context
        };
        samples.iter().find(fits).map(|sample| sample.time.median_ns as f64)
    };
    graph.nodes().iter().enumerate().map(time).sum()
}

/// The factor of so many rows: on the line through the factors of the least and the most, over the logarithm of the rows.
fn between([least, most]: [Factor; 2], m: usize) -> f64 {
    let place = |m: usize| (m as f64).ln();
    let all = place(most.m) - place(least.m);
    let share = if all > 0.0 { (place(m) - place(least.m)) / all } else { 0.0 };
    least.factor + share.clamp(0.0, 1.0) * (most.factor - least.factor)
}

impl DeviceBench<'_> {
    /// Writes so many rows to the KV cache, and measures the times that do not depend on the op.
    ///
    /// # Errors
    /// [`MeasureError`] if the device fails.
    pub(super) fn prepared(
        &mut self,
        info: &DeviceInfo,
        rows: usize,
    ) -> Result<Fixed, MeasureError> {
        self.fill_cache(info, rows)?;
        self.fixed(info)
    }

    /// Writes so many rows of keys and values of each layer. The system shows memory that nothing has written as one page of zeros,
    /// which is read from the caches.
    ///
    /// # Errors
    /// [`MeasureError`] if the device fails.
    fn fill_cache(&mut self, info: &DeviceInfo, rows: usize) -> Result<(), MeasureError> {
        if self.between.is_none() {
            return Ok(());
        }
        let graph = Arc::clone(self.graph);
        for (at, node) in graph.nodes().iter().enumerate() {
            let appends = match &node.op {
                Op::Attention(op) => node.inputs.len() == 3 && !op.mask.sees_later(),
                _ => false,
            };
            if !appends || !info.runs(&node.op) {
                continue;
            }
            for start in (0..rows).step_by(ROWS_AT_ONCE) {
                let batch =
                    inputs::batch(ROWS_AT_ONCE.min(rows - start), start, false, self.page_rows);
                let values = inputs::values(&graph, at..at + 1, &batch);
                let payload = Arc::new(Payload { batch, values });
                let failed = |source| MeasureError::Device {
                    what: "filling the KV cache".to_owned(),
                    source,
                };
                self.time_of(at..at + 1, &payload).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Times of the whole model, of each of these chunks: medians of turns. The one that has run for the shortest time has the next
    /// turn, so that slow changes of the machine reach all of them; each runs for `time` at least, and [`RUNS_MIN`] times. As in an
    /// engine, a token is chosen between two runs: meanwhile the device is idle, and its other threads may fall asleep.
    fn whole(&mut self, chunks: &[Chunk], time: Duration) -> Result<Vec<Duration>, DeviceError> {
        let nodes = 0..self.graph.nodes().len();
        let mut choice = Choice::new(self.graph.value(self.graph.output()).width);
        let mut timed: Vec<Turns> = Vec::with_capacity(chunks.len());
        for Chunk { m, context } in chunks {
            let batch = inputs::batch(*m, *context, false, self.page_rows);
            let payload = Arc::new(Payload { batch, values: TensorSet::default() });
            self.time_of(nodes.clone(), &payload)?;
            timed.push(Turns { payload, spent: Duration::ZERO, runs: 0, means: Vec::new() });
        }
        let is_open = |one: &&mut Turns| one.runs < RUNS_MIN || one.spent < time;
        while let Some(next) = timed.iter_mut().filter(is_open).min_by_key(|one| one.spent) {
            let (mut turn, mut runs) = (Duration::ZERO, 0);
            while turn < TURN {
                choice.run();
                let took = self.time_of(nodes.clone(), &next.payload)?.max(Duration::from_nanos(1));
                turn += took;
                runs += 1;
            }
            next.spent += turn;
            next.runs += runs;
            next.means.push(turn / runs as u32);
        }
        let median = |mut one: Turns| {
            one.means.sort_unstable();
            one.means[one.means.len() / 2]
        };
        Ok(timed.into_iter().map(median).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(m: usize, context: usize, ns: u64) -> Sample {
        let shape = OpShape {
            op: "attention".to_owned(),
            n: 64,
            k: 64,
            dtype: None,
            window: None,
            mask: None,
            swapped: false,
            experts: None,
        };
        let time = Spread { median_ns: ns, min_ns: ns, max_ns: ns, runs: 1 };
        Sample { shape, m, context, time }
    }

    #[test]
    fn what_a_context_adds_has_a_factor_of_its_own() {
        let mut samples = [sample(1, 0, 100), sample(1, 512, 300), sample(256, 512, 1000)];
        let factors = [Factor { m: 1, factor: 0.5 }, Factor { m: 256, factor: 2.0 }];
        scale(&mut samples, factors, Some(3.0));
        let scaled = samples.map(|sample| sample.time.median_ns);
        assert_eq!(scaled, [50, 50 + 3 * 200, 2000]);
    }

    #[test]
    fn factors_between_two_numbers_of_rows_lie_between_theirs() {
        let factors = [Factor { m: 1, factor: 0.5 }, Factor { m: 256, factor: 1.0 }];
        for (m, factor) in [(1, 0.5), (16, 0.75), (256, 1.0), (1024, 1.0)] {
            assert_eq!(between(factors, m), factor, "{m}");
        }
        let same = Factor { m: 1, factor: 0.5 };
        assert_eq!(between([same; 2], 64), 0.5);
    }
}
