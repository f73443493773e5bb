//! The search space of a block: the best candidate of each kind so far.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use lapwing_kernels::device::Batch;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::part::Part;

use super::candidate::{Candidate, Cut};
use super::covers;
use super::terms::{Entry, entry_time, merge_bytes, submit_time};
use crate::cost::CostModel;
use crate::device::DeviceId;
use crate::stage::StagePart;
use crate::strategy::interface::PlanInput;
use crate::time::{Border, Crossing, Job};

/// The block, and the best candidate of each kind so far.
pub(super) struct Space<'a> {
    pub(super) cost: &'a dyn CostModel,
    pub(super) graph: &'a Graph,
    pub(super) input: &'a PlanInput<'a>,
    pub(super) nodes: Range<usize>,
    pub(super) batch: Batch,
    /// Rows that the block computes.
    pub(super) rows: usize,
    /// The device that holds the inputs and runs the next block.
    pub(super) home: DeviceId,
    /// Devices that can run the block.
    pub(super) devices: Vec<DeviceId>,
    /// Parts whose time was predicted.
    pub(super) tried: usize,
    /// The fastest candidate of each set of devices and kind of cut.
    pub(super) best: HashMap<(Vec<DeviceId>, Cut), Candidate>,
}

/// A part and its predicted time.
pub(super) type Timed = (Part, Duration);

impl Space<'_> {
    /// Sets of two to four devices. Of more than four devices only the four fastest are combined.
    pub(super) fn sets(&self) -> Vec<Vec<DeviceId>> {
        let alone = |device: &DeviceId| {
            self.best.get(&(vec![*device], Cut::Whole)).map_or(Duration::MAX, Candidate::total)
        };
        let mut devices = self.devices.clone();
        devices.sort_by_key(alone);
        devices.truncate(4);
        devices.sort_unstable();
        let subsets = 1..1_usize << devices.len();
        subsets
            .filter(|subset| subset.count_ones() >= 2)
            .map(|subset| {
                (0..devices.len()).filter(|d| subset >> d & 1 == 1).map(|d| devices[d]).collect()
            })
            .collect()
    }

    /// The part with the graphs and operand order with which the device runs it fastest. `None` if
    /// the device has no graphs for so many rows.
    pub(super) fn fastest(&mut self, device: DeviceId, part: Part, rows: usize) -> Option<Timed> {
        let mut best: Option<Timed> = None;
        for filled in covers::filled(&self.input.devices[device.0], &part, rows) {
            let job = Job {
                first: self.nodes.start,
                end: self.nodes.end,
                part: &filled,
                batch: &self.batch,
                crossed: device != self.home,
                border: self.border(device),
                queued: false,
            };
            self.tried += 1;
            let time = self.cost.job_time(device, &job);
            if best.as_ref().is_none_or(|(_, known)| time < *known) {
                best = Some((filled, time));
            }
        }
        best
    }

    /// What a device that does not hold the inputs lacks.
    fn border(&self, device: DeviceId) -> Border {
        Border::entering(self.graph, self.nodes.clone(), device != self.home)
    }

    /// Time of a part before its first node.
    fn entry(&self, device: DeviceId, part: &Part) -> Duration {
        let (crossed, border) = (device != self.home, self.border(device));
        let entry = Entry { crossed, border, part: part.clone() };
        submit_time(self.cost, device, &self.batch, entry)
    }

    /// Keeps a candidate if it is the fastest of its kind.
    pub(super) fn offer(&mut self, parts: Vec<(DeviceId, Timed)>) {
        let devices: Vec<DeviceId> = parts.iter().map(|(device, _)| *device).collect();
        let sync = self.sync_time(&devices);
        let copy = if parts.len() > 1 { self.copy_time() } else { Duration::ZERO };
        let cut = self.kind(&parts);
        let times = parts.iter().map(|(_, (_, time))| *time).collect();
        let parts =
            parts.into_iter().map(|(device, (part, _))| StagePart { device, part }).collect();
        let mut candidate = Candidate { cut, parts, times, entries: Vec::new(), sync, copy };
        let mut key = devices;
        key.sort_unstable();
        let known = self.best.get(&(key.clone(), cut));
        if known.is_none_or(|known| candidate.total() < known.total()) {
            let entry = |part: &StagePart| self.entry(part.device, &part.part);
            candidate.entries = candidate.parts.iter().map(entry).collect();
            self.best.insert((key, cut), candidate);
        }
    }

    fn kind(&self, parts: &[(DeviceId, Timed)]) -> Cut {
        let graphs = || parts.iter().map(|(_, (part, _))| &part.graphs);
        match parts {
            [_] => Cut::Whole,
            [(_, (first, _)), ..] if first.features.is_whole() => {
                match graphs().any(|g| g.len() > 1) {
                    true => Cut::MultiSequence,
                    false => Cut::Sequence,
                }
            }
            _ => match graphs().any(|g| g.iter().sum::<usize>() > self.rows) {
                true => Cut::Hybrid,
                false => Cut::Row,
            },
        }
    }

    /// T_sync: from home to the slowest device and back, plus the time that home adds because the
    /// inputs of its next job come from another device. Where home computes a part, too, the devices of the other parts may account
    /// for their way back, which then passes beside home's own part.
    fn sync_time(&self, devices: &[DeviceId]) -> Duration {
        if devices == [self.home] {
            return Duration::ZERO;
        }
        let way = |from, to| self.cost.sync_time(Crossing { from, to });
        let both = devices.iter().map(|d| way(self.home, *d) + way(*d, self.home));
        let buffers = self.graph.writes(self.nodes.clone()).len();
        let border = Border { buffers, shared: devices.contains(&self.home) };
        both.max().unwrap_or_default() + entry_time(self.cost, self.home, &self.batch, border)
    }

    /// T_copy: each value that later blocks read is read and written once.
    fn copy_time(&self) -> Duration {
        self.cost.copy_time(merge_bytes(self.graph, self.nodes.clone(), &self.batch))
    }
}
