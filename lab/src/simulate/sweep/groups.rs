//! Runs that differ in their seeds only, together.

use super::{Results, SEED, Sweep};
use crate::simulate::repeated::interval;

/// Runs that have the same values of some axes.
pub(super) struct Group {
    /// These values, in the order of the axes.
    pub(super) values: Vec<String>,
    /// The result of each run; NaN of a run without it.
    pub(super) results: Vec<f64>,
}

/// The mean of a result over runs that differ in their seeds only.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GroupMean {
    /// The values of the axes except the seed, in their order.
    pub values: Vec<String>,
    /// Number of runs.
    pub runs: usize,
    /// The mean; NaN if a run does not have the result.
    pub mean: f64,
    /// Ends of the 95 % confidence interval of the mean (Student's t); `None` of a single run.
    pub interval: Option<(f64, f64)>,
}

impl<R: Results> Sweep<R> {
    /// The results of the runs that are equal on the axes, by their places, that `tells` the groups apart.
    pub(super) fn groups(&self, figure: &str, tells: impl Fn(usize) -> bool) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for point in &self.points {
            let values = point.values.iter().enumerate().filter(|(at, _)| tells(*at));
            let values: Vec<String> = values.map(|(_, value)| value.clone()).collect();
            let result = point.result(figure).unwrap_or(f64::NAN);
            match groups.iter_mut().rfind(|group| group.values == values) {
                Some(group) => group.results.push(result),
                None => groups.push(Group { values, results: vec![result] }),
            }
        }
        groups
    }

    /// The mean of a result for each combination of the axes except the seed.
    pub fn means(&self, figure: &str) -> Vec<GroupMean> {
        let groups = self.groups(figure, |at| self.axes[at].key != SEED);
        let mean = |Group { values, results }: Group| match results[..] {
            [only] => GroupMean { values, runs: 1, mean: only, interval: None },
            _ => {
                let (mean, half) = interval(&results);
                let interval = Some((mean - half, mean + half)).filter(|_| half.is_finite());
                GroupMean { values, runs: results.len(), mean, interval }
            }
        };
        groups.into_iter().map(mean).collect()
    }
}
