//! What a chunk needs of the devices.

/// Blocks of a chunk that are alike, with the predicted time of one of them on each device alone. A chunk has one of these for each kind of
/// its blocks; together they bound the time of any routes on these devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Need {
    /// Number of the chunk.
    pub chunk: u64,
    /// Number of these blocks.
    pub count: u32,
    /// Time in ns that one of them takes on each device, by number: at its best rate, and without what only stages have, such as
    /// submission. [`Need::NEVER`] for a device that cannot run it, and for one that does not exist.
    pub times: [u64; Need::DEVICES],
    /// Least time in ns of the whole chunk, in whose blocks all devices share.
    pub path: u64,
}

impl Need {
    /// Most devices. Chunks of an engine with more have none of these events.
    pub const DEVICES: usize = 5;

    /// Time on a device that cannot run the block.
    pub const NEVER: u64 = u64::MAX;
}
