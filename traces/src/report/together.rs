//! Computes which kinds of work ran at the same time, and how close the run is to the least time of its devices.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::{Bound, Concurrent, WorkSet};
use crate::timeline::Timeline;

/// Kinds of work at the same time, and the least time of the devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TogetherReport {
    /// By set of kinds of work, as in `draft+verify+prompt`: share of the makespan during which at least one stage of each kind ran, each
    /// on a device of its own. `null` if no stage says which kind it is of.
    pub concurrent: BTreeMap<String, Option<f64>>,
    /// Least time of the chunks of the run on its devices, whatever routes they take, in ns, by predicted times; `null` without these.
    pub bound_ns: Option<f64>,
    /// Its part by the work of all devices together.
    pub bound_area_ns: Option<f64>,
    /// Its part by the longest request.
    pub bound_path_ns: Option<f64>,
    /// Makespan divided by the bound.
    #[serde(rename = "makespan/bound")]
    pub makespan_by_bound: Option<f64>,
}

impl TogetherReport {
    pub(super) fn of(timeline: &Timeline) -> TogetherReport {
        let (concurrent, makespan) = (Concurrent::new(timeline), timeline.makespan() as f64);
        let share = |time: u64| if makespan > 0.0 { time as f64 / makespan } else { 0.0 };
        let concurrent =
            WorkSet::all().map(|set| (set.name(), concurrent.time(set).map(share))).collect();
        let bound = Bound::new(timeline);
        let least = bound.map(|bound| bound.least());
        TogetherReport {
            concurrent,
            bound_ns: least,
            bound_area_ns: bound.map(|bound| bound.area),
            bound_path_ns: bound.map(|bound| bound.path),
            makespan_by_bound: least.filter(|least| *least > 0.0).map(|least| makespan / least),
        }
    }

    /// Sets of several kinds that ran at the same time, with their shares of the makespan: small sets first.
    pub fn overlaps(&self) -> Vec<(WorkSet, f64)> {
        let share = |set: WorkSet| Some((set, self.concurrent.get(&set.name()).copied()??));
        let mut overlaps: Vec<(WorkSet, f64)> = WorkSet::all()
            .filter(|set| set.len() > 1)
            .filter_map(share)
            .filter(|(_, share)| *share > 0.0)
            .collect();
        overlaps.sort_by_key(|(set, _)| (set.len(), *set));
        overlaps
    }
}
