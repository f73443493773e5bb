//! Which of several routes a chunk took.

use super::NameId;

/// A chunk that could take several routes took the one on which it was to end first, by what its devices had to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Routed {
    /// Number of the chunk.
    pub chunk: u64,
    /// Devices of its route.
    pub route: NameId,
    /// Time in ns until it was to end.
    pub end: u64,
    /// Devices of the route that it would have taken on idle devices, which may be the same.
    pub alone: NameId,
    /// Time in ns until it was to end on that one.
    pub alone_end: u64,
    /// Whether it passes chunks that wait for the same devices, because its streams were due.
    pub is_due: bool,
}

/// A route that a chunk could take. All of a chunk follow its [`Routed`], the one for idle devices first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rated {
    /// Number of the chunk.
    pub chunk: u64,
    /// Devices of the route.
    pub route: NameId,
    /// Time in ns until the chunk was to end on it.
    pub end: u64,
    /// The same on idle devices.
    pub alone: u64,
    /// Longest time in ns until one of its devices has done what it was sent before.
    pub busy: u64,
    /// False if the chunk would have ended earlier on it, but its graphs were not ready.
    pub is_ready: bool,
}
