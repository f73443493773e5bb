//! Where the integers of a block are in its bytes.

/// Where the integers of a block are in its bytes, for unpackers that use vectors. Offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// 32 integers of 4 bits: the low halves of 16 bytes, then the high ones.
    Nibbles {
        /// Where the 16 bytes are.
        at: usize,
    },
    /// As [`Nibbles`](Places::Nibbles), behind 4 bytes with the fifth bit of each.
    Fifths {
        /// Where the 4 bytes are.
        at: usize,
    },
    /// 32 signed bytes.
    Bytes {
        /// Where they are.
        at: usize,
    },
    /// 8 groups, each as [`Nibbles`](Places::Nibbles).
    NibbleGroups {
        /// Where their 128 bytes are.
        at: usize,
    },
    /// 8 groups of 4 bits: each 32 bytes hold one in their low halves, then one in the high ones.
    GroupNibbles {
        /// Where the 128 bytes are.
        at: usize,
    },
    /// As [`GroupNibbles`](Places::GroupNibbles), behind 32 bytes: bit g of byte i is the fifth bit of value i of group g.
    GroupFifths {
        /// Where the 32 bytes are.
        at: usize,
    },
    /// 6 bits, in halves of 128 values: 64 bytes of low bits of each half, then 32 bytes of each with two high bits.
    Sixths {
        /// Where the 192 bytes are.
        at: usize,
    },
    /// In an order that no vectors unpack.
    Scattered {
        /// Values of a block.
        values: usize,
    },
}

impl Places {
    /// Where the integers end in a block.
    pub const fn end(self) -> usize {
        match self {
            Places::Nibbles { at } => at + 16,
            Places::Fifths { at } => at + 20,
            Places::Bytes { at } => at + 32,
            Places::GroupNibbles { at } | Places::NibbleGroups { at } => at + 128,
            Places::GroupFifths { at } => at + 160,
            Places::Sixths { at } => at + 192,
            Places::Scattered { .. } => 0,
        }
    }

    /// Values of such a block.
    pub const fn values(self) -> usize {
        match self {
            Places::Nibbles { .. } | Places::Fifths { .. } | Places::Bytes { .. } => 32,
            Places::NibbleGroups { .. }
            | Places::GroupNibbles { .. }
            | Places::GroupFifths { .. }
            | Places::Sixths { .. } => 256,
            Places::Scattered { values } => values,
        }
    }
}
