//! What may run beside what.

use std::fmt;

use serde::Serialize;

/// What may run at the same time in a [`Composite`](super::Composite).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Overlaps {
    /// Chunks of prompts beside decode steps. Otherwise prompts come first, and streams wait until they are computed.
    pub prompts: bool,
    /// Drafts, which steps verify. Otherwise each step computes one token of each stream.
    pub drafts: bool,
    /// The strategy, which divides the model between devices. Otherwise the fastest device computes all of it.
    pub cuts: bool,
}

impl Overlaps {
    /// Everything overlaps.
    pub const ALL: Overlaps = Overlaps { prompts: true, drafts: true, cuts: true };

    /// Nothing does.
    pub const NONE: Overlaps = Overlaps { prompts: false, drafts: false, cuts: false };

    /// Those that stay on when these are turned off, as in `cuts+drafts`; `nothing` turns none off. `None` for another name.
    pub(crate) fn without(names: &str) -> Option<Overlaps> {
        let mut overlaps = Overlaps::ALL;
        for name in names.split('+').filter(|_| names != "nothing") {
            match name.trim() {
                "prompts" => overlaps.prompts = false,
                "drafts" => overlaps.drafts = false,
                "cuts" => overlaps.cuts = false,
                _ => return None,
            }
        }
        Some(overlaps)
    }

    /// All eight combinations, from none to all.
    pub fn each() -> impl Iterator<Item = Overlaps> {
        (0..8).map(|bits| Overlaps {
            prompts: bits & 1 > 0,
            drafts: bits & 2 > 0,
            cuts: bits & 4 > 0,
        })
    }
}

impl Default for Overlaps {
    fn default() -> Overlaps {
        Overlaps::ALL
    }
}

impl fmt::Display for Overlaps {
    /// What is on: `prompts + drafts + cuts`, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [("prompts", self.prompts), ("drafts", self.drafts), ("cuts", self.cuts)];
        let on: Vec<&str> = all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
        match on[..] {
            [] => f.write_str("none"),
            _ => f.write_str(&on.join(" + ")),
        }
    }
}
