//! Attention masks of a graph: which positions a row sees, and which layers a mask is for. Masks other
//! than a model's own are an approximation for research: the model was trained without them.

mod count;
mod keys;
mod text;

use std::ops::RangeInclusive;
use std::sync::Arc;

use thiserror::Error;

pub use keys::key_bits;

/// The keys that the row at position p of a sequence sees: never one after p, except under
/// [`Mask::Full`] and [`Mask::Around`]. The text form, as written by `Display` and read by `FromStr`, is given with each mask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mask {
    /// All keys up to p. Text: `causal`.
    #[default]
    Causal,
    /// All keys of the sequence, also those after p: the attention of encoders. All rows of a sequence
    /// must then be computed in one batch. Only an architecture sets it. Text: `full`.
    Full,
    /// All keys of the sequence that are at most this far from p, before and after it: a sliding window of encoders. All rows of a
    /// sequence must then be computed in one batch. Only an architecture sets it. Text: `around=N`.
    Around(usize),
    /// Sliding window (Beltagy et al., Longformer, 2020, section 3.1): this many keys, ending with p.
    /// Text: `window=N`.
    Window(usize),
    /// p and every `stride`-th key before it, `count` in all: the dilated window of Longformer; with a
    /// `count` that covers the context, the strided head of sparse transformers (Child et al., 2019,
    /// section 4.2). Text: `dilated=COUNTxSTRIDE`.
    Dilated {
        /// Keys that a row sees.
        count: usize,
        /// Distance of the keys.
        stride: usize,
    },
    /// Block-sparse attention (Zaheer et al., BigBird, 2020, section 2 and appendix D): a row sees the
    /// keys up to its own in the blocks listed for the row's block. Text: `block-sparse=LEN:ROW-KEY,…`,
    /// with `;window=N` at the end if there is a window.
    Blocks {
        /// The listed pairs of blocks.
        blocks: Arc<BlockList>,
        /// Keys further back than this window, which ends with p, are not seen either.
        window: Option<usize>,
    },
}

/// Pairs of blocks of positions, of which the first sees the second. Rows in a block without pairs see
/// nothing; the result of their attention is zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockList {
    len: usize,
    listed: Vec<(u32, u32)>,
}

/// The mask of some layers. Text form: `[FIRST-LAST:]MASK` or `LAYER:MASK`, such as
/// `0-11:window=512`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttentionRule {
    /// Layers, from 0; `None` for all.
    pub layers: Option<RangeInclusive<usize>>,
    /// Their mask.
    pub mask: Mask,
}

/// A mask cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MaskError {
    /// The text is not a mask.
    #[error(
        "'{text}' is not an attention mask (expected causal, window=N, dilated=COUNTxSTRIDE or \
         block-sparse=LEN:ROW-KEY,…, after LAYER: or FIRST-LAST: for some layers only)"
    )]
    Text {
        /// The given text.
        text: String,
    },
    /// A size is zero, so that no row would see a key.
    #[error("the {what} of an attention mask is 0 (expected at least 1)")]
    Zero {
        /// Name of the size.
        what: &'static str,
    },
    /// The list of blocks is empty.
    #[error("a block-sparse attention mask lists no blocks")]
    NoBlocks,
    /// The rows of the model see later ones, or would with the rule.
    #[error(
        "'{rule}' cannot be chosen: masks can be chosen for causal models only, and 'full' and 'around' are the masks of \
         encoders; leave it out"
    )]
    Direction {
        /// The rule's text.
        rule: String,
    },
    /// A rule is for layers that the model lacks.
    #[error("'{rule}' is for layers that the model lacks: it has the layers 0 to {last}")]
    Layers {
        /// The rule's text.
        rule: String,
        /// Last layer of the model.
        last: usize,
    },
}

impl BlockList {
    /// Blocks of `len` positions, with pairs (block of the row, block of the keys) in any order.
    ///
    /// # Errors
    /// If `len` is 0 or there are no pairs.
    pub fn new(
        len: usize,
        pairs: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<BlockList, MaskError> {
        let mut listed: Vec<(u32, u32)> = pairs.into_iter().collect();
        listed.sort_unstable();
        listed.dedup();
        match (len, listed.is_empty()) {
            (0, _) => Err(MaskError::Zero { what: "block length" }),
            (_, true) => Err(MaskError::NoBlocks),
            _ => Ok(BlockList { len, listed }),
        }
    }

    /// Local and global attention without random blocks (BigBird, section 2; Longformer, section 3.1):
    /// each of the first `blocks` blocks of `len` positions sees itself, the `local` − 1 blocks before
    /// it and the first `global` blocks.
    ///
    /// # Errors
    /// If `len`, `local` or `blocks` is 0.
    pub fn local_and_global(
        len: usize,
        local: u32,
        global: u32,
        blocks: u32,
    ) -> Result<BlockList, MaskError> {
        if local == 0 {
            return Err(MaskError::Zero { what: "number of local blocks" });
        }
        BlockList::new(
            len,
            (0..blocks).flat_map(|row| {
                let near = (row + 1).saturating_sub(local)..=row;
                near.chain(0..global.min(row)).map(move |keys| (row, keys))
            }),
        )
    }

    /// Positions of a block.
    pub fn block_len(&self) -> usize {
        self.len
    }

    /// (block of the row, block of the keys), ascending.
    pub fn listed(&self) -> &[(u32, u32)] {
        &self.listed
    }

    /// Positions up to the end of the last block of rows.
    pub fn positions(&self) -> usize {
        let blocks = self.listed.last().map_or(0, |(row, _)| *row as usize + 1);
        blocks.saturating_mul(self.len)
    }
}

impl Mask {
    /// A block-sparse mask without a window.
    pub fn blocks(blocks: BlockList) -> Mask {
        Mask::Blocks { blocks: Arc::new(blocks), window: None }
    }

    /// Whether the row at `pos` sees the key at `key` of its sequence: the definition of the mask.
    pub fn sees(&self, pos: usize, key: usize) -> bool {
        match self {
            Mask::Full => return true,
            Mask::Around(most) => return pos.abs_diff(key) <= *most,
            _ => {}
        }
        let Some(distance) = pos.checked_sub(key) else { return false };
        match self {
            Mask::Causal | Mask::Full | Mask::Around(_) => true,
            Mask::Window(window) => distance < *window,
            Mask::Dilated { count, stride } => {
                distance.is_multiple_of(*stride) && distance / stride < *count
            }
            Mask::Blocks { blocks, window } => {
                let at = |pos: usize| u32::try_from(pos / blocks.len).unwrap_or(u32::MAX);
                window.is_none_or(|window| distance < window)
                    && blocks.listed.binary_search(&(at(pos), at(key))).is_ok()
            }
        }
    }

    /// Whether a row sees keys after its own.
    pub fn sees_later(&self) -> bool {
        matches!(self, Mask::Full | Mask::Around(_))
    }

    /// The mask that sees a key if this one and a sliding window see it. A window ends with the row, so
    /// within one no mask sees a later key.
    #[must_use]
    pub fn within(&self, window: Option<usize>) -> Mask {
        let Some(window) = window else { return self.clone() };
        match self {
            Mask::Causal | Mask::Full => Mask::Window(window),
            Mask::Around(most) => Mask::Window(window.min(most.saturating_add(1))),
            Mask::Window(own) => Mask::Window(window.min(*own)),
            Mask::Dilated { count, stride } => {
                let reached = window.div_ceil((*stride).max(1));
                Mask::Dilated { count: reached.min(*count), stride: *stride }
            }
            Mask::Blocks { blocks, window: own } => Mask::Blocks {
                blocks: Arc::clone(blocks),
                window: Some(own.map_or(window, |own| own.min(window))),
            },
        }
    }

    /// Positions that a mask is defined for: those of its blocks. `None` without a limit.
    pub fn positions(&self) -> Option<usize> {
        match self {
            Mask::Blocks { blocks, .. } => Some(blocks.positions()),
            _ => None,
        }
    }

    /// Checks that no size is zero.
    ///
    /// # Errors
    /// If one is.
    pub fn check(&self) -> Result<(), MaskError> {
        let zero = |what| Err(MaskError::Zero { what });
        match self {
            Mask::Window(0) | Mask::Blocks { window: Some(0), .. } => zero("window"),
            Mask::Dilated { count: 0, .. } => zero("count"),
            Mask::Dilated { stride: 0, .. } => zero("stride"),
            _ => Ok(()),
        }
    }
}

impl AttentionRule {
    /// Whether the rule is for this layer.
    pub fn covers(&self, layer: usize) -> bool {
        self.layers.as_ref().is_none_or(|layers| layers.contains(&layer))
    }
}

impl From<Mask> for AttentionRule {
    fn from(mask: Mask) -> AttentionRule {
        AttentionRule { layers: None, mask }
    }
}
