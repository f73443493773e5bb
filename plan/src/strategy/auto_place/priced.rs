//! The chains of a prompt and of a decode step together, in which a device with a memory of its own takes a price for it.

use std::time::Duration;

use super::chain::Table;

/// Two chains over the same blocks and devices.
pub(super) struct Pair {
    /// The chains: of a prompt, and of a decode step.
    pub(super) tables: [Table; 2],
    /// How often each counts.
    pub(super) times: [f64; 2],
    /// By block: the part of the room of each device that the block takes there; 0 on devices without one.
    pub(super) parts: Vec<Vec<f64>>,
    /// By block: whether it reads keys and values, which stay where they are.
    pub(super) stays: Vec<bool>,
}

/// What a block may take of the room of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is there already, without a price.
    Already,
    /// It may be there, for its price.
    Possible,
    /// It must not be there.
    Never,
}

/// The devices of the blocks in both chains.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    /// By block: the devices in the chain of the prompt and in that of the step.
    pub(super) devices: Vec<[usize; 2]>,
    /// Time of both chains, in ns.
    pub(super) time: f64,
    /// That with all prices.
    pub(super) priced: f64,
}

/// Least priced time up to a block, and the state before it.
#[derive(Clone, Copy)]
struct Best {
    priced: f64,
    time: f64,
    before: usize,
}

impl Pair {
    fn devices(&self) -> usize {
        self.tables[0].devices()
    }

    /// The devices of a state.
    fn of(&self, state: usize) -> [usize; 2] {
        [state / self.devices(), state % self.devices()]
    }

    /// The price of a block in a state; `None` where it must not be.
    fn price(&self, block: usize, state: usize, at: &Prices<'_>) -> Option<f64> {
        let [prompt, step] = self.of(state);
        let parts = &self.parts[block];
        let has_room = |device: usize| at.rooms[device];
        if self.stays[block] && prompt != step && (has_room(prompt) || has_room(step)) {
            return None;
        }
        let mut price = 0.0;
        for (at_device, device) in [prompt, step].into_iter().enumerate() {
            if !has_room(device) || (at_device == 1 && step == prompt) {
                continue;
            }
            match (at.taken)(block, device) {
                Taken::Already => {}
                Taken::Possible => price += at.price * parts[device],
                // What takes nothing may be anywhere.
                Taken::Never if parts[device] == 0.0 && !self.stays[block] => {}
                Taken::Never => return None,
            }
        }
        Some(price)
    }

    /// Time that a block adds in both chains; `None` if a device cannot run it.
    fn step(&self, block: usize, before: Option<usize>, state: usize) -> Option<f64> {
        let (of, before) = (self.of(state), before.map(|before| self.of(before)));
        let mut sum = 0.0;
        for chain in 0..2 {
            let before = before.map(|before| before[chain]);
            let time: Duration = self.tables[chain].step(block, before, of[chain])?;
            sum += self.times[chain] * time.as_nanos() as f64;
        }
        Some(sum)
    }

    /// The placement with the least time of both chains and prices; of equal ones the first. `None` if a block has no device.
    pub(super) fn solve(&self, at: &Prices<'_>) -> Option<Placed> {
        let states = self.devices() * self.devices();
        let mut table: Vec<Vec<Option<Best>>> = Vec::with_capacity(self.parts.len());
        for block in 0..self.tables[0].len() {
            let row = (0..states).map(|state| {
                let price = self.price(block, state, at)?;
                let Some(last) = table.last() else {
                    let time = self.step(block, None, state)?;
                    return Some(Best { priced: time + price, time, before: state });
                };
                let from = |before: usize| {
                    let best = last[before]?;
                    let time = self.step(block, Some(before), state)?;
                    let (priced, time) = (best.priced + time + price, best.time + time);
                    Some(Best { priced, time, before })
                };
                (0..states).filter_map(from).reduce(Best::lesser)
            });
            let row = row.collect();
            table.push(row);
        }
        let last = table.last()?;
        let ends = (0..states).filter_map(|state| Some(Best { before: state, ..last[state]? }));
        let end = ends.reduce(Best::lesser)?;
        let mut state = end.before;
        let mut devices = vec![self.of(state); table.len()];
        for block in (1..table.len()).rev() {
            state = table[block][state]?.before;
            devices[block - 1] = self.of(state);
        }
        Some(Placed { devices, time: end.time, priced: end.priced })
    }
}

impl Best {
    fn lesser(self, other: Best) -> Best {
        if other.priced < self.priced { other } else { self }
    }
}

/// Prices of rooms.
pub(super) struct Prices<'a> {
    /// Price of a whole room, in ns.
    pub(super) price: f64,
    /// Whether each device has a room.
    pub(super) rooms: &'a [bool],
    /// What a block may take of a device's room.
    pub(super) taken: &'a dyn Fn(usize, usize) -> Taken,
}
