//! Groups of ops that differ in output channels and rows only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::curve::{Curve, Point};
use crate::profile::data::Sample;
use crate::shape::OpShape;
use crate::tree::{Tree, cross_validated};

/// A shape of which a group predicts the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    /// Output channels.
    pub(super) n: usize,
    /// Rows.
    pub(super) m: usize,
    /// Rows before them in the KV cache; `None` if they belong to several sequences.
    pub(super) context: Option<usize>,
    /// Positions that they attend to, summed.
    pub(super) attended: f64,
}

/// Shapes of one op that differ in output channels.
pub(super) struct Group {
    /// The shape of the op, with `n` set to 0.
    pub(super) shape: OpShape,
    /// One series per width, ascending.
    series: Vec<Series>,
    /// Predicts unmeasured points of series without a curve.
    tree: Option<Arc<Tree>>,
}

/// Times of one shape.
struct Series {
    /// Output channels.
    n: usize,
    /// Nanoseconds by (rows, context).
    measured: BTreeMap<(usize, usize), f64>,
    curve: Option<Curve>,
}

impl Group {
    /// Predicted nanoseconds. A measured point is returned exactly.
    pub(super) fn time(&self, query: Query) -> f64 {
        let Query { n, m, context, attended } = query;
        let at = self.series.partition_point(|s| s.n < n);
        if let Some(series) = self.series.get(at).filter(|s| s.n == n) {
            let context = if self.shape.has_context() { context } else { Some(0) };
            let exact = context.and_then(|c| series.measured.get(&(m, c)).copied());
            let near = || context.and_then(|_| self.near_contexts(series, m, attended));
            return exact.or_else(near).unwrap_or_else(|| self.curve_time(series, m, attended));
        }
        if let Some(tree) = &self.tree {
            return tree_time(tree, &OpShape { n, ..self.shape.clone() }, m);
        }
        // Linear in the width between two series, proportional to the width beyond them.
        let time = |series: &Series| self.time(Query { n: series.n, ..query });
        match (at.checked_sub(1).map(|b| &self.series[b]), self.series.get(at)) {
            (Some(below), Some(above)) => {
                let share = (n - below.n) as f64 / (above.n - below.n) as f64;
                let (t0, t1) = (time(below), time(above));
                t0 + (t1 - t0) * share
            }
            (Some(one), None) | (None, Some(one)) => time(one) * n as f64 / one.n as f64,
            (None, None) => 0.0,
        }
    }

    /// Time of so many rows of one sequence, on the line through the two contexts around theirs that were measured with as many rows;
    /// beyond the last, on that through the last two. `None` without such contexts.
    fn near_contexts(&self, series: &Series, m: usize, attended: f64) -> Option<f64> {
        if !self.shape.has_context() {
            return None;
        }
        let of_rows = series.measured.range((m, 0)..=(m, usize::MAX));
        let point = |(&(_, context), &time): (&(usize, usize), &f64)| {
            (self.shape.attended(m, context), time)
        };
        let mut points: Vec<(f64, f64)> = of_rows.map(point).collect();
        // Behind a window, contexts differ in nothing.
        points.dedup_by_key(|point| point.0);
        let above = points.partition_point(|point| point.0 < attended);
        let above = above.min(points.len().checked_sub(1)?);
        let below = above.checked_sub(1)?;
        let ((x0, t0), (x1, t1)) = (points[below], points[above]);
        let share = (attended - x0) / (x1 - x0);
        // Beyond the last, a time that falls can only be noise.
        let rise = if share > 1.0 { (t1 - t0).max(0.0) } else { t1 - t0 };
        Some(t1 + rise * (share - 1.0))
    }

    fn curve_time(&self, series: &Series, m: usize, attended: f64) -> f64 {
        match (&series.curve, &self.tree) {
            (Some(curve), _) => curve.at(m, attended),
            (None, Some(tree)) => {
                tree_time(tree, &OpShape { n: series.n, ..self.shape.clone() }, m)
            }
            (None, None) => 0.0,
        }
    }

    /// Nanoseconds per work of each measured point.
    pub(super) fn rates(&self) -> impl Iterator<Item = f64> + '_ {
        self.series.iter().flat_map(|series| {
            let shape = OpShape { n: series.n, ..self.shape.clone() };
            series.measured.iter().map(move |((m, _), time)| time / shape.work(*m))
        })
    }
}

/// Groups with one curve per shape, and the errors at left-out points.
pub(super) fn with_curves(samples: &[(OpShape, Vec<&Sample>)]) -> (Vec<Group>, Vec<f64>) {
    let mut errors = Vec::new();
    let groups = samples.iter().map(|(shape, samples)| {
        let mut series = series(samples);
        for one in &mut series {
            let points: Vec<Point> = one
                .measured
                .iter()
                .map(|((m, context), time)| {
                    let attends = shape.has_context();
                    let attended = if attends { shape.attended(*m, *context) } else { 0.0 };
                    Point { m: *m, attended, time: *time }
                })
                .collect();
            if let Some((curve, left_out)) = Curve::best(&points) {
                one.curve = Some(curve);
                errors.extend(left_out);
            }
        }
        Group { shape: shape.clone(), series, tree: None }
    });
    (groups.collect(), errors)
}

/// Groups that share one tree per op and weight format, and the errors at left-out points. Attention
/// keeps its curves, since its time grows smoothly with the context.
pub(super) fn with_trees(samples: &[(OpShape, Vec<&Sample>)]) -> (Vec<Group>, Vec<f64>) {
    type Rows = Vec<([f64; 4], f64)>;
    let mut tables: HashMap<(&str, Option<&str>), Rows> = HashMap::new();
    for sample in samples.iter().flat_map(|(_, s)| s).filter(|s| !s.shape.has_context()) {
        let rows = tables.entry((&sample.shape.op, sample.shape.dtype.as_deref())).or_default();
        let time = sample.time.median_ns.max(1) as f64;
        let target = (time / padded_work(&sample.shape, sample.m)).ln();
        rows.push((features(&sample.shape, sample.m), target));
    }
    let mut errors = Vec::new();
    let mut trees = HashMap::new();
    let mut tables: Vec<_> = tables.into_iter().collect();
    tables.sort_by(|a, b| a.0.cmp(&b.0));
    for (key, rows) in tables {
        let (tree, left_out) = cross_validated(&rows);
        // The target is a logarithm, so e^difference = predicted / measured.
        errors.extend(left_out.into_iter().map(|difference| (difference.exp() - 1.0).abs()));
        trees.insert(key, Arc::new(tree));
    }
    let (attention, attention_errors): (Vec<_>, Vec<_>) = {
        let only: Vec<_> = samples.iter().filter(|(s, _)| s.has_context()).cloned().collect();
        with_curves(&only)
    };
    errors.extend(attention_errors);
    let mut attention = attention.into_iter();
    let groups = samples.iter().filter_map(|(shape, samples)| {
        if shape.has_context() {
            return attention.next();
        }
        let tree = trees.get(&(shape.op.as_str(), shape.dtype.as_deref())).cloned();
        Some(Group { shape: shape.clone(), series: series(samples), tree })
    });
    (groups.collect(), errors)
}

/// Errors at each inner width of a group when all points of that width are left out. They estimate
/// the error of an unmeasured share of the output channels.
pub(super) fn left_out_widths<'a>(
    samples: &[(OpShape, Vec<&'a Sample>)],
    grow: impl Fn(&[(OpShape, Vec<&'a Sample>)]) -> (Vec<Group>, Vec<f64>),
) -> Vec<f64> {
    let mut errors = Vec::new();
    for (shape, of_shape) in samples {
        let widths: BTreeSet<usize> = of_shape.iter().map(|s| s.shape.n).collect();
        let inner = widths.len().saturating_sub(2);
        for width in widths.into_iter().skip(1).take(inner) {
            // Groups of the same op and format share a tree.
            let related =
                samples.iter().filter(|(s, _)| s.op == shape.op && s.dtype == shape.dtype);
            let rest: Vec<(OpShape, Vec<&Sample>)> = related
                .map(|(s, all)| {
                    let keeps = |sample: &&&Sample| s != shape || sample.shape.n != width;
                    (s.clone(), all.iter().filter(keeps).copied().collect())
                })
                .collect();
            let (groups, _) = grow(&rest);
            let Some(group) = groups.iter().find(|group| group.shape == *shape) else { continue };
            for Sample { m, context, time, .. } in of_shape.iter().filter(|s| s.shape.n == width) {
                let attended = if shape.has_context() { shape.attended(*m, *context) } else { 0.0 };
                let query = Query { n: width, m: *m, context: Some(*context), attended };
                let truth = time.median_ns.max(1) as f64;
                errors.push((group.time(query) - truth).abs() / truth);
            }
        }
    }
    errors
}

fn series(samples: &[&Sample]) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for sample in samples {
        let Sample { shape, m, context, time } = sample;
        let at = series.iter().position(|s| s.n == shape.n).unwrap_or_else(|| {
            series.push(Series { n: shape.n, measured: BTreeMap::new(), curve: None });
            series.len() - 1
        });
        series[at].measured.insert((*m, *context), time.median_ns as f64);
    }
    series.sort_by_key(|s| s.n);
    series
}

/// Features of the tree: m, n and k, padded as the array pads them, so that no threshold falls inside
/// a step; and the ratio of rows to columns of the streamed operand, on which the array's rate depends
/// (HeteroLLM, arXiv 2501.14794, characteristics NPU-1 and NPU-3).
fn features(shape: &OpShape, m: usize) -> [f64; 4] {
    let [m, n, k] = [m, shape.n, shape.k].map(padded);
    let streamed = if shape.swapped { n } else { m };
    [m, n, k, streamed / k.max(1.0)]
}

fn padded(len: usize) -> f64 {
    len.next_multiple_of(lapwing_kernels::part::Share::ALIGN) as f64
}

fn padded_work(shape: &OpShape, m: usize) -> f64 {
    let inner = if shape.op == "matmul" { padded(shape.k).max(1.0) } else { 1.0 };
    padded(m) * padded(shape.n) * inner
}

fn tree_time(tree: &Tree, shape: &OpShape, m: usize) -> f64 {
    tree.at(&features(shape, m)).exp() * padded_work(shape, m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::data::Spread;

    /// Attention of one row behind contexts, in nanoseconds.
    fn attention(window: Option<usize>, times: &[(usize, u64)]) -> Group {
        let (op, dtype) = ("attention".to_owned(), None);
        let shape =
            OpShape { op, n: 64, k: 64, dtype, window, mask: None, swapped: false, experts: None };
        let sample = |&(context, ns): &(usize, u64)| {
            let time = Spread { median_ns: ns, min_ns: ns, max_ns: ns, runs: 1 };
            Sample { shape: shape.clone(), m: 1, context, time }
        };
        let samples: Vec<Sample> = times.iter().map(sample).collect();
        let (mut groups, _) = with_curves(&[(shape.clone(), samples.iter().collect())]);
        groups.remove(0)
    }

    fn time(group: &Group, context: usize) -> f64 {
        let attended = group.shape.attended(1, context);
        group.time(Query { n: 64, m: 1, context: Some(context), attended })
    }

    #[test]
    fn a_context_is_between_its_neighbours_whatever_the_others_take() {
        let group = attention(None, &[(0, 100), (128, 5000), (512, 1000), (1536, 2024)]);
        assert_eq!([0, 512].map(|context| time(&group, context)), [100.0, 1000.0]);
        assert!((time(&group, 1024) - 1512.0).abs() < 1e-6);
        assert!((time(&group, 3584) - 4072.0).abs() < 1e-6, "the slope goes on");
    }

    #[test]
    fn beyond_a_window_no_context_takes_longer() {
        let group = attention(Some(512), &[(0, 100), (128, 300), (512, 1000), (1536, 1030)]);
        assert_eq!(time(&group, 1024), 1000.0);
        let falling = attention(None, &[(0, 100), (512, 1000), (1536, 900)]);
        assert_eq!(time(&falling, 4096), 900.0);
    }
}
