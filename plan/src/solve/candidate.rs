//! Candidates: ways to run a block, with the terms of their predicted time.

use std::fmt;
use std::time::Duration;

use crate::stage::StagePart;

/// How a block is divided. `strategy/cut.rs` has a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Undivided.
    Whole,
    /// Output channels are divided.
    Row,
    /// Output channels are divided, with rows padded to a standard size.
    Hybrid,
    /// Rows are divided.
    Sequence,
    /// Rows are divided, with several standard sizes in turn on one device.
    MultiSequence,
}

impl Cut {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Cut::Whole => "whole",
            Cut::Row => "row cut",
            Cut::Hybrid => "hybrid cut",
            Cut::Sequence => "sequence cut",
            Cut::MultiSequence => "multi-sequence cut",
        }
    }
}

/// A way to run a block, with the terms of its predicted time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// How it is divided.
    pub cut: Cut,
    /// The part of each device.
    pub parts: Vec<StagePart>,
    /// T_i: time of each part, with what comes before its first node.
    pub times: Vec<Duration>,
    /// Of these, the time before the first node: submission, and synchronisation with the device that has the inputs.
    pub entries: Vec<Duration>,
    /// T_sync: synchronisation with the other devices, there and back, as far as the parts' times do not have it.
    pub sync: Duration,
    /// T_copy: time to merge the parts.
    pub copy: Duration,
}

impl Candidate {
    /// max T_i + T_sync + T_copy.
    pub fn total(&self) -> Duration {
        self.slowest().saturating_add(self.sync).saturating_add(self.copy)
    }

    /// max T_i.
    pub fn slowest(&self) -> Duration {
        self.times.iter().max().copied().unwrap_or_default()
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: max(", self.cut.name())?;
        for (at, time) in self.times.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            match self.entries.get(at).filter(|entry| !entry.is_zero()) {
                Some(entry) => {
                    write!(f, "{comma}{entry:.1?} + {:.1?}", time.saturating_sub(*entry))?;
                }
                None => write!(f, "{comma}{time:.1?}")?,
            }
        }
        let (sync, copy, total) = (self.sync, self.copy, self.total());
        write!(f, ") + sync {sync:.1?} + copy {copy:.1?} = {total:.1?}")
    }
}

/// The best candidates for a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The fastest candidate of each set of devices and each kind of cut, fastest first.
    pub candidates: Vec<Candidate>,
    /// Number of parts whose time was predicted.
    pub tried: usize,
}

impl Solution {
    /// The fastest candidate; `None` if no device can run the block.
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.first()
    }

    /// Undivided candidates, and cuts that are faster than the fastest of these by at least the factor `gain`; fastest first.
    pub fn worthwhile(&self, gain: f64) -> Vec<&Candidate> {
        let is_whole = |candidate: &&Candidate| candidate.cut == Cut::Whole;
        let whole = self.candidates.iter().find(is_whole).map(Candidate::total);
        let gains = |candidate: &&Candidate| {
            let cut = candidate.total().as_secs_f64() * gain;
            whole.is_none_or(|whole| cut <= whole.as_secs_f64())
        };
        self.candidates.iter().filter(|c| is_whole(c) || gains(c)).collect()
    }
}
