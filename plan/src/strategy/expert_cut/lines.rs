//! How long a device takes for how many experts, and how many fit.

use lapwing_kernels::device::NodeOnDevice;
use lapwing_kernels::part::Part;

use super::division::{Chunks, Division, Line, divide};
use super::{experts, has_room, rest};
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::solve::terms::{Entry, submit_time};
use crate::strategy::auto_place::{PROMPT_PER_STEP, request};
use crate::strategy::interface::PlanInput;
use crate::time::{Border, Crossing, Job};

/// What a division of experts is chosen by.
pub(super) struct Lines<'a> {
    input: &'a PlanInput<'a>,
    /// The device of all other ops.
    other: DeviceId,
    /// Shapes of chunks, and how many of each count.
    shapes: Vec<(ChunkShape, f64)>,
}

impl<'a> Lines<'a> {
    /// For chunks of a shape; or, if a device has a memory of its own, for a request, so that all shapes have the same experts.
    pub(super) fn new(input: &'a PlanInput<'a>, shape: &ChunkShape, other: DeviceId) -> Lines<'a> {
        let shapes = match input.devices.iter().any(|info| info.room.is_some()) {
            false => vec![(*shape, 1.0)],
            true => {
                let [prompt, step] = request(input);
                let steps = prompt.rows.div_ceil(PROMPT_PER_STEP);
                vec![(prompt, 1.0), (step, steps as f64)]
            }
        };
        Lines { input, other, shapes }
    }

    /// The division of `count` experts with the least predicted time that fits.
    pub(super) fn divide(&self, devices: &[DeviceId], count: usize) -> Division {
        let chunks = |(shape, weight): &(ChunkShape, f64)| {
            let lines = devices.iter().map(|device| self.line(*device, shape, count)).collect();
            Chunks { weight: *weight, lines }
        };
        let chunks: Vec<Chunks> = self.shapes.iter().map(chunks).collect();
        let limit = |device: &DeviceId| {
            let fits = |experts: usize| self.fits(*device, experts, count);
            (1..=count).collect::<Vec<_>>().partition_point(|experts| fits(*experts))
        };
        let limits: Vec<usize> = devices.iter().map(limit).collect();
        let units = divide(count, &limits, &chunks);
        let is_bound = units.iter().zip(&limits).any(|(own, limit)| own == limit && *limit < count);
        let by = match is_bound {
            true => "as far as they fit into its memory, by predicted time",
            false => "by predicted time",
        };
        let units = devices.iter().copied().zip(units).collect();
        Division { units, by: by.to_owned() }
    }

    /// The time of the experts of all layers on a device, for each of `count` that it has.
    fn line(&self, device: DeviceId, shape: &ChunkShape, count: usize) -> Line {
        let (cost, batch) = (self.input.cost, self.input.batch(shape));
        let (from, to) = (self.other, device);
        let crossed = from != to;
        let submit = submit_time(cost, device, &batch, Entry { crossed, ..Entry::default() });
        let mut line = Line::default();
        for (node, _) in experts(self.input.graph) {
            let (first, end, part) = (node, node + 1, &Part::WHOLE);
            let border = Border::entering(self.input.graph, first..end, crossed);
            let job = Job { first, end, part, batch: &batch, crossed, border, queued: false };
            let whole = cost.job_time(device, &job).saturating_sub(submit);
            // A unit is as large a part of every layer.
            line.each += whole.as_nanos() as f64 / count as f64;
            let before = submit + cost.sync_time(Crossing { from, to });
            line.fixed += before.as_nanos() as f64;
        }
        line
    }

    /// Whether so many of `count` experts of each layer fit into a device's memory, beside what else it computes.
    fn fits(&self, device: DeviceId, own: usize, count: usize) -> bool {
        let graph = self.input.graph;
        let part = |(node, of): (usize, usize)| {
            let own = (of * own).div_ceil(count.max(1));
            NodeOnDevice { node, experts: Some(0..own) }
        };
        let mut nodes: Vec<NodeOnDevice> = experts(graph).map(part).collect();
        if device == self.other {
            nodes.extend(rest(graph));
        }
        has_room(self.input, device, &nodes)
    }
}
