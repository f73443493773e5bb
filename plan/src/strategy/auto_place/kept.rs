//! What a device with a memory of its own keeps there for prompts and decode steps together.

use lapwing_kernels::device::DeviceInfo;

use super::search::Search;
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::phase::Phase;
use crate::place::path;
use crate::route::Route;
use crate::strategy::interface::PlanInput;

/// The blocks whose weights, keys and values devices with a memory of their own keep, where these do not hold all of them. They are
/// the same for all shapes: a weight is loaded once.
///
/// They minimise the time of a request with a full chunk and a decode step for each eight of its rows, over all chains of
/// [`AutoPlace`](super::AutoPlace) in which no more is kept than fits, and in which keys and values stay on one device. The price of a
/// whole memory is bisected (Lagrange): with the price at which just too little fits, the chain is the least of all that keep as much.
/// Of equal blocks, as in layers of equal shape, the last are kept as far as they fit; the rest of the room is divided in the same way,
/// without the blocks that are too large for it. No placement is faster than the dual bound, which the explanation has.
pub(crate) struct Kept {
    /// By block and device.
    is_kept: Vec<Vec<bool>>,
    /// By block: whether it takes room anywhere, or reads keys and values.
    takes: Vec<bool>,
    stays: Vec<bool>,
    rooms: Vec<bool>,
    /// First node of each block.
    starts: Vec<usize>,
    /// What is kept where, and how near to the optimum it is.
    about: String,
}

impl Kept {
    /// What is kept; `None` if every memory holds all that its device can compute, or no device has one of its own.
    pub(crate) fn of(input: &PlanInput<'_>) -> Option<Kept> {
        let all = 0..input.graph.nodes().len();
        let is_small = |info: &DeviceInfo| {
            let need = || info.need(input.graph, all.clone()).bytes();
            info.room.as_ref().is_some_and(|room| need() > room.bytes)
        };
        if !input.devices.iter().any(is_small) {
            return None;
        }
        let [prompt, step] = request(input);
        let mut search = Search::new(input, [&prompt, &step]);
        search.run();
        let about = search.about();
        let Search { chain, pair, rooms, is_kept, .. } = search;
        let takes =
            |block: usize| pair.stays[block] || pair.parts[block].iter().any(|part| *part > 0.0);
        let takes = (0..is_kept.len()).map(takes).collect();
        let starts = (0..chain.len()).map(|block| chain.nodes(block).start).collect();
        Some(Kept { is_kept, takes, stays: pair.stays, rooms, starts, about })
    }

    /// Whether a block may be on a device.
    pub(crate) fn allows(&self, block: usize, device: usize) -> bool {
        let at_home =
            self.rooms.iter().zip(&self.is_kept[block]).any(|(room, kept)| *room && *kept);
        match self.rooms[device] {
            true => self.is_kept[block][device] || !self.takes[block],
            // Keys and values stay where they are.
            false => !(self.stays[block] && at_home),
        }
    }

    /// Checks that a route takes no more on a device than it keeps.
    ///
    /// # Errors
    /// [`PlanError::NotKept`] with the first op.
    pub(crate) fn check(&self, input: &PlanInput<'_>, route: &Route) -> Result<(), PlanError> {
        for stage in route.compute_stages() {
            for DeviceId(device) in stage.parts.iter().map(|part| part.device) {
                if !self.rooms[device] {
                    continue;
                }
                for node in stage.nodes.clone() {
                    let block = self.starts.partition_point(|start| *start <= node) - 1;
                    if self.takes[block] && !self.is_kept[block][device] {
                        let device = input.devices[device].name.clone();
                        let op = path(&input.graph.nodes()[self.starts[block]]);
                        return Err(PlanError::NotKept { device, op });
                    }
                }
            }
        }
        Ok(())
    }

    /// What is kept where, and why not more.
    pub(crate) fn about(&self) -> &str {
        &self.about
    }
}

/// The chunks of the request by which it is chosen what a device keeps: a full chunk, and a decode step behind it.
pub(crate) fn request(input: &PlanInput<'_>) -> [ChunkShape; 2] {
    let rows = input.chunk_rows.max(1);
    let prompt = ChunkShape { phase: Phase::Prefill, rows, selected: 1, context: 0, prompt: rows };
    let step = ChunkShape { phase: Phase::Decode, rows: 1, selected: 1, context: rows, prompt: 0 };
    [prompt, step].map(|shape| shape.rounded())
}
