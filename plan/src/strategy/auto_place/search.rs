//! The search for what devices with a memory of their own keep.

use lapwing_kernels::device::DeviceInfo;
use lapwing_kernels::op::Op;

use super::chain::Chain;
use super::priced::{Pair, Placed, Prices, Taken};
use crate::chunk::ChunkShape;
use crate::strategy::interface::PlanInput;
use crate::strategy::options::OrderSwap;

/// Rows of a prompt for each decode step in the request that blocks are kept for.
pub(crate) const PROMPT_PER_STEP: usize = 8;

/// Steps in which a price is halved: finer than any two blocks differ.
const HALVINGS: usize = 40;

/// The search for what is kept.
pub(super) struct Search<'a> {
    pub(super) input: &'a PlanInput<'a>,
    pub(super) chain: Chain<'a>,
    pub(super) pair: Pair,
    pub(super) rooms: Vec<bool>,
    pub(super) is_kept: Vec<Vec<bool>>,
    pub(super) is_banned: Vec<Vec<bool>>,
    /// The largest dual bound, in ns.
    pub(super) bound: f64,
}

impl<'a> Search<'a> {
    pub(super) fn new(input: &'a PlanInput<'a>, shapes: [&'a ChunkShape; 2]) -> Search<'a> {
        let [chain, step] = shapes.map(|shape| Chain::new(input, shape, OrderSwap::default()));
        let tables = [chain.table(), step.table()];
        let nodes = input.graph.nodes();
        let part = |block: usize, info: &DeviceInfo| {
            let need = info.need(input.graph, chain.nodes(block)).bytes();
            info.room.as_ref().map_or(0.0, |room| need as f64 / room.bytes.max(1) as f64)
        };
        let of_block = |block| input.devices.iter().map(|info| part(block, info)).collect();
        let attends = |block| {
            let mut nodes = nodes[chain.nodes(block)].iter();
            nodes.any(|node| matches!(node.op, Op::Attention(_)))
        };
        let rows = shapes[0].rows;
        let steps = rows.div_ceil(PROMPT_PER_STEP) as f64;
        let count = chain.len();
        let pair = Pair {
            tables,
            times: [1.0, steps],
            parts: (0..count).map(of_block).collect(),
            stays: (0..count).map(attends).collect(),
        };
        let rooms: Vec<bool> = input.devices.iter().map(|info| info.room.is_some()).collect();
        let none = vec![vec![false; rooms.len()]; count];
        let (is_kept, is_banned) = (none.clone(), none);
        Search { input, chain, pair, rooms, is_kept, is_banned, bound: 0.0 }
    }

    pub(super) fn solve(&self, price: f64) -> Option<Placed> {
        let taken = |block: usize, device: usize| match () {
            () if self.is_kept[block][device] => Taken::Already,
            () if self.is_banned[block][device] => Taken::Never,
            () => Taken::Possible,
        };
        self.pair.solve(&Prices { price, rooms: &self.rooms, taken: &taken })
    }

    /// The blocks that a placement has on devices with a room, in addition to those that are kept.
    fn new_of(&self, placed: &Placed) -> Vec<[usize; 2]> {
        let takes = |block: usize, device: usize| {
            self.rooms[device]
                && !self.is_kept[block][device]
                && (self.pair.parts[block][device] > 0.0 || self.pair.stays[block])
        };
        let mut new = Vec::new();
        for (block, devices) in placed.devices.iter().enumerate() {
            for device in devices {
                if takes(block, *device) && !new.contains(&[block, *device]) {
                    new.push([block, *device]);
                }
            }
        }
        new
    }

    /// Whether these blocks fit beside those that are kept. A matrix that several blocks read counts once.
    pub(super) fn fits(&self, new: &[[usize; 2]]) -> bool {
        self.input.devices.iter().enumerate().all(|(device, info)| {
            let Some(room) = &info.room else { return true };
            let is_there =
                |block: &usize| self.is_kept[*block][device] || new.contains(&[*block, device]);
            let blocks = (0..self.is_kept.len()).filter(is_there);
            let need =
                info.need(self.input.graph, blocks.flat_map(|block| self.chain.nodes(block)));
            need.bytes() <= room.bytes
        })
    }

    fn keep(&mut self, new: &[[usize; 2]]) {
        new.iter().for_each(|[block, device]| self.is_kept[*block][*device] = true);
    }

    /// Keeps what one price keeps, and of the blocks that are equal at this price as many as fit, until nothing is added.
    pub(super) fn run(&mut self) {
        let whole = self.rooms.iter().filter(|room| **room).count() as f64;
        let mut is_first = true;
        while let Some(free) = self.solve(0.0) {
            let all = self.new_of(&free);
            if self.fits(&all) {
                self.keep(&all);
                return;
            }
            let Some([few, many]) = self.bisect(&free, is_first.then_some(whole)) else { return };
            is_first = false;
            let before = self.count();
            self.keep(&few);
            for new in many.iter().rev() {
                if !few.contains(new) && self.fits(&[*new]) {
                    self.keep(&[*new]);
                }
            }
            if self.count() == before {
                return;
            }
            self.ban_what_is_too_large();
        }
    }

    fn count(&self) -> usize {
        self.is_kept.iter().flatten().filter(|kept| **kept).count()
    }

    /// The blocks of the least price at which they fit, and those of a price that is hardly less. `whole`: the number of rooms, to
    /// note dual bounds.
    fn bisect(&mut self, free: &Placed, whole: Option<f64>) -> Option<[Vec<[usize; 2]>; 2]> {
        // At this price nothing is worth more than leaving it out, if there is another device.
        let (mut low, mut high) = (0.0, free.time.max(1.0));
        let (mut few, mut many) = (None, self.new_of(free));
        for _ in 0..HALVINGS {
            let least = self.solve(high)?;
            self.note(&least, high, whole);
            few = Some(self.new_of(&least)).filter(|new| self.fits(new));
            if few.is_some() {
                break;
            }
            (low, high) = (high, high * 2.0);
        }
        let mut few = few?;
        for _ in 0..HALVINGS {
            let price = f64::midpoint(low, high);
            let placed = self.solve(price)?;
            self.note(&placed, price, whole);
            let new = self.new_of(&placed);
            match self.fits(&new) {
                true => (high, few) = (price, new),
                false => (low, many) = (price, new),
            }
        }
        Some([few, many])
    }

    /// Notes the dual bound of a price: no placement within the rooms takes less.
    fn note(&mut self, placed: &Placed, price: f64, whole: Option<f64>) {
        if let Some(whole) = whole {
            self.bound = self.bound.max(placed.priced - price * whole);
        }
    }

    fn ban_what_is_too_large(&mut self) {
        for block in 0..self.is_kept.len() {
            for device in 0..self.rooms.len() {
                if self.rooms[device] && !self.is_kept[block][device] {
                    self.is_banned[block][device] = !self.fits(&[[block, device]]);
                }
            }
        }
    }
}
