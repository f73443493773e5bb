//! Differences between the values of an axis, from pairs of runs.

use serde::Serialize;

use super::{Axis, Results, SEED, Sweep, cell};
use crate::simulate::error::SimulateError;
use crate::simulate::repeated::interval;
use crate::table::table;

/// How a result differs between two values of an axis. Each run is paired with the run that is equal
/// otherwise, with the same seed of the noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The values of the other axes except the seed, in their order.
    pub others: Vec<String>,
    /// The value that is compared with the reference.
    pub value: String,
    /// Number of pairs.
    pub pairs: usize,
    /// Mean of the differences, value minus reference, in the unit of the result.
    pub mean: f64,
    /// The mean difference as a share of the reference's mean.
    pub relative: f64,
    /// Ends of the 95 % confidence interval of the mean difference (Student's t); `None` for a single pair.
    pub interval: Option<(f64, f64)>,
}

/// The values of the other axes, the compared value, and the pairs of results: its own, and the reference's.
type Group = (Vec<String>, String, Vec<(f64, f64)>);

impl<R: Results> Sweep<R> {
    /// How `figure` differs from the runs in which the axis `key` has the value `reference`, for each other
    /// value and each combination of the other axes. Runs without that result are left out.
    ///
    /// # Errors
    /// [`SimulateError::BadValue`] if the sweep has no such axis, or the axis not that value.
    pub fn differences(
        &self,
        figure: &str,
        key: &str,
        reference: &str,
    ) -> Result<Vec<Difference>, SimulateError> {
        let at = Axis::with_value(&self.axes, key, reference)?;
        let result = |values: &[String]| {
            let point = self.points.iter().find(|point| point.values == values)?;
            point.result(figure).filter(|value| value.is_finite())
        };
        let mut groups: Vec<Group> = Vec::new();
        for point in self.points.iter().filter(|point| point.values[at] != reference) {
            let mut of_reference = point.values.clone();
            reference.clone_into(&mut of_reference[at]);
            let others = self.axes.iter().zip(&point.values);
            let others = others.filter(|(axis, _)| axis.key != key && axis.key != SEED);
            let others: Vec<String> = others.map(|(_, value)| value.clone()).collect();
            let value = point.values[at].clone();
            let Some(pair) = result(&point.values).zip(result(&of_reference)) else { continue };
            match groups.iter_mut().find(|group| group.0 == others && group.1 == value) {
                Some(group) => group.2.push(pair),
                None => groups.push((others, value, vec![pair])),
            }
        }
        let difference = |(others, value, pairs): Group| {
            let differences: Vec<f64> = pairs.iter().map(|(found, known)| found - known).collect();
            let (mean, half) = interval(&differences);
            let known = pairs.iter().map(|(_, known)| known).sum::<f64>() / pairs.len() as f64;
            let interval = (pairs.len() > 1).then_some((mean - half, mean + half));
            Difference { others, value, pairs: pairs.len(), mean, relative: mean / known, interval }
        };
        Ok(groups.into_iter().map(difference).collect())
    }

    /// A CSV table of [`differences`](Sweep::differences).
    ///
    /// # Errors
    /// As there.
    pub fn differences_csv(
        &self,
        figure: &str,
        key: &str,
        reference: &str,
    ) -> Result<String, SimulateError> {
        let differences = self.differences(figure, key, reference)?;
        let others = self.axes.iter().map(|axis| &*axis.key);
        let others = others.filter(|other| *other != key && *other != SEED);
        let name = format!("{figure}_difference");
        let heads = others.chain([key, "against", "pairs", &name, "low", "high", "relative"]);
        let mut rows: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
        for found in differences {
            let mut cells = found.others;
            let (low, high) = found.interval.unzip();
            let end = |end: Option<f64>| end.map_or(String::new(), cell);
            cells.extend([found.value, reference.to_owned(), found.pairs.to_string()]);
            cells.extend([cell(found.mean), end(low), end(high), cell(found.relative)]);
            rows.push(cells);
        }
        Ok(table(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Runs, Scenario};

    #[test]
    fn pairs_have_the_same_seed_and_are_counted() {
        let mut base = Scenario::new("sd8gen3").expect("a preset");
        (base.prompt, base.decode) = (64, 0);
        base.set("noise.spread", "0.05").expect("a number");
        let axes = ["prompt=64,128", "strategy=pipe,gpu-only"].map(Axis::parse);
        let axes = axes.into_iter().chain([Axis::seeds(3, 6)]).collect::<Result<_, _>>();
        let sweep = Sweep::run(&base, axes.expect("axes"), &mut Runs::default()).expect("a sweep");
        let figure = "prefill_ms";
        let found = sweep.differences(figure, "strategy", "pipe").expect("differences");
        assert_eq!(found.len(), 2);
        for (found, prompt) in found.iter().zip(["64", "128"]) {
            assert_eq!((&found.others[..], found.pairs), (&[prompt.to_owned()][..], 6));
            let of = |strategy: &str| -> Vec<f64> {
                let points = sweep.points.iter();
                let points = points.filter(|p| p.values[0] == prompt && p.values[1] == strategy);
                points.map(|p| p.outcome.as_ref().expect("a run").prefill_ms).collect()
            };
            let pairs: Vec<f64> =
                of("gpu-only").iter().zip(of("pipe")).map(|(g, p)| g - p).collect();
            let (mean, half) = interval(&pairs);
            assert_eq!((found.mean, found.interval), (mean, Some((mean - half, mean + half))));
            let known: f64 = of("pipe").iter().sum::<f64>() / 6.0;
            assert!((found.relative - mean / known).abs() < 1e-12);
        }
        let csv = sweep.differences_csv(figure, "strategy", "pipe").expect("a table");
        assert!(
            csv.starts_with("prompt,strategy,against,pairs,prefill_ms_difference,low,"),
            "{csv}"
        );
        assert_eq!(csv.lines().count(), 3);
        for (key, value, says) in [
            ("policy", "pipe", "prompt, strategy"),
            ("strategy", "auto", "pipe, gpu-only"),
            ("seed", "3", "prompt"),
        ] {
            let error = sweep.differences(figure, key, value).expect_err(key).to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_single_pair_has_no_interval() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        let axes = vec![Axis::parse("gpu.rate=1x,2x").expect("an axis")];
        let sweep = Sweep::run(&base, axes, &mut Runs::default()).expect("a sweep");
        let figure = "prefill_ms";
        let found = sweep.differences(figure, "gpu.rate", "1x").expect("differences");
        assert!(
            found.len() == 1 && found[0].interval.is_none() && found[0].mean < 0.0,
            "{found:?}"
        );
    }
}
