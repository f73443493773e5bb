//! Ops as they follow each other in a step. A device prefetches the weights of the next op, and does not wait between two, so
//! that a chain of ops takes another time than they take alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceError, DeviceInfo, Payload};
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::part::Part;
use lapwing_plan::profile::{Sample, Spread};
use lapwing_plan::shape::OpShape;

use super::MeasureError;
use super::device::DeviceBench;
use super::inputs;

/// Runs of a chain that are measured at least, after one that warms up.
const RUNS_MIN: usize = 3;

/// How much longer the whole model takes than its ops alone, at a number of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Factor {
    m: usize,
    factor: f64,
}

/// Makes the sums of all samples the times that the whole model takes with one row and with the most rows that were measured, if
/// the device computes all of it. Samples between have factors between.
///
/// # Errors
/// [`MeasureError`] if the device fails.
pub(super) fn fit_to_whole(
    bench: &mut DeviceBench<'_>,
    info: &DeviceInfo,
    graph: &Graph,
    samples: &mut [Sample],
) -> Result<(), MeasureError> {
    let most = samples.iter().map(|sample| sample.m).max().unwrap_or(0);
    let computes_all = graph.nodes().iter().all(|node| info.runs(&node.op));
    if most == 0 || !computes_all || bench.between.is_none() {
        return Ok(());
    }
    let deepest = samples.iter().filter(|sample| sample.m == 1).map(|sample| sample.context);
    let deepest = deepest.max().unwrap_or(0);
    let mut whole = |m: usize, context: usize| {
        let failed = |source| MeasureError::Device { what: "the whole model".to_owned(), source };
        bench.whole(graph, m, context).map(|time| time.as_nanos() as f64).map_err(failed)
    };
    let mut factors = Vec::new();
    for m in if most > 1 { vec![1, most] } else { vec![1] } {
        let Some(alone) = sum(graph, samples, m, 0) else { continue };
        factors.push(Factor { m, factor: whole(m, 0)? / alone });
    }
    let mut of_context = None;
    if let [Some(none), Some(all)] = [0, deepest].map(|context| sum(graph, samples, 1, context)) {
        let more = whole(1, deepest)? - whole(1, 0)?;
        of_context = (all > none && more > 0.0).then(|| more / (all - none));
    }
    scale(samples, &factors, of_context);
    Ok(())
}

/// Multiplies the times: all by the factor of their rows, and what a context adds to one row by a factor of its own.
fn scale(samples: &mut [Sample], factors: &[Factor], of_context: Option<f64>) {
    let at_once: HashMap<OpShape, u64> = samples
        .iter()
        .filter(|sample| sample.m == 1 && sample.context == 0)
        .map(|sample| (sample.shape.clone(), sample.time.median_ns))
        .collect();
    for sample in samples {
        let Some(factor) = between(factors, sample.m) else { return };
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

/// Nanoseconds of all ops alone, of a chunk of `m` rows behind so many others, whose last row is selected. `None` if one was not
/// measured.
fn sum(graph: &Graph, samples: &[Sample], m: usize, context: usize) -> Option<f64> {
    let time = |(at, node): (usize, &lapwing_kernels::graph::Node)| {
        let shape = OpShape::of(graph, at, &Part::WHOLE);
        let rows = if graph.value(node.output).rows == RowSet::Selected { 1 } else { m };
        let fits =
            |sample: &&Sample| sample.shape == shape && sample.m == rows && sample.context == 0;
        samples.iter().find(fits).map(|sample| sample.time.median_ns as f64)
    };
    graph.nodes().iter().enumerate().map(time).sum()
}

/// The factor of so many rows: on the line through the factors of the least and the most, over the logarithm of the rows.
fn between(factors: &[Factor], m: usize) -> Option<f64> {
    match factors {
        [] => None,
        [one] => Some(one.factor),
        [least, .., most] => {
            let place = |m: usize| (m as f64).ln();
            let share = (place(m) - place(least.m)) / (place(most.m) - place(least.m));
            Some(least.factor + share.clamp(0.0, 1.0) * (most.factor - least.factor))
        }
    }
}

impl DeviceBench<'_> {
    /// Median time of the whole model, of a chunk of `m` rows behind so many others.
    fn whole(&mut self, graph: &Graph, m: usize, context: usize) -> Result<Duration, DeviceError> {
        let batch = inputs::batch(m, context, false, self.page_rows);
        let values = Default::default();
        let payload = Arc::new(Payload { batch, values });
        let mut times = Vec::new();
        let mut spent = Duration::ZERO;
        while times.len() <= RUNS_MIN
            || (spent < self.limits.per_op && times.len() <= self.limits.runs)
        {
            let time = self.time_of(0..graph.nodes().len(), &payload)?;
            spent += time;
            times.push(time);
        }
        times.remove(0);
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(m: usize, context: usize, ns: u64) -> Sample {
        let shape =
            OpShape { op: "attention".to_owned(), n: 64, k: 64, dtype: None, ..OpShape::default() };
        let time = Spread { median_ns: ns, min_ns: ns, max_ns: ns, runs: 1 };
        Sample { shape, m, context, time }
    }

    #[test]
    fn what_a_context_adds_has_a_factor_of_its_own() {
        let mut samples = [sample(1, 0, 100), sample(1, 512, 300), sample(256, 512, 1000)];
        let factors = [Factor { m: 1, factor: 0.5 }, Factor { m: 256, factor: 2.0 }];
        scale(&mut samples, &factors, Some(3.0));
        let scaled = samples.map(|sample| sample.time.median_ns);
        assert_eq!(scaled, [50, 50 + 3 * 200, 2000]);
    }

    #[test]
    fn factors_between_two_numbers_of_rows_lie_between_theirs() {
        let factors = [Factor { m: 1, factor: 0.5 }, Factor { m: 256, factor: 1.0 }];
        for (m, factor) in [(1, 0.5), (16, 0.75), (256, 1.0), (1024, 1.0)] {
            assert_eq!(between(&factors, m), Some(factor), "{m}");
        }
        assert_eq!(between(&factors[..1], 64), Some(0.5));
        assert_eq!(between(&[], 64), None);
    }
}
