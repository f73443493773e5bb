//! Chunks wait for others that already take the bandwidth of the memory, as HeRo (arXiv 2603.01661) admits none beyond a soft limit.

use lapwing_kernels::part::Part;

use super::lanes::Chosen;
use super::selection::Selection;
use super::state::Scheduler;

impl Scheduler {
    /// Sets the bandwidth in GB/s beyond which a chunk waits for those in flight: its own and theirs, by their bytes and predicted times on
    /// several devices. One with rows of the request of the best rank never waits. `None` is no limit.
    pub fn limit_bandwidth(&mut self, limit: Option<f64>) {
        self.bandwidth_limit = limit;
    }

    /// The chosen route with the bandwidth that the chunk takes; `None` if it has to wait for chunks in flight.
    pub(super) fn within_bandwidth(&self, selection: &Selection, chosen: Chosen) -> Option<Chosen> {
        let Some(limit) = self.bandwidth_limit else { return Some(chosen) };
        let planner = self.models[selection.kind.model.0].planner(selection.kind.output);
        let (input, time) = (planner.input(), chosen.alone().as_nanos() as f64);
        let batch = input.batch(&selection.shape);
        let nodes = 0..input.graph.nodes().len();
        let bytes =
            nodes.map(|node| input.graph.part_cost(node, &Part::WHOLE, &batch).bytes as f64);
        let bandwidth = bytes.sum::<f64>() / time.max(1.0);
        let is_first = selection.rows.iter().any(|(at, _)| *at == 0);
        let taken = self.lanes.bandwidth();
        let waits = !is_first && taken > 0.0 && taken + bandwidth > limit;
        (!waits).then(|| chosen.taking(bandwidth))
    }
}
