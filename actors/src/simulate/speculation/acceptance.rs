//! Where a draft model's tokens are those of the target.

use std::sync::Arc;

use crate::simulate::error::SocRunError;

/// Whether the draft model predicts the target's token at each position of a text. With greedy decoding this
/// belongs to the position: however often it is drafted there, the outcome is the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Acceptance {
    /// Each position is right with this probability, independently. The seed chooses the positions.
    Independent {
        /// Probability.
        rate: f64,
        /// The same seed gives the same positions.
        seed: u64,
    },
    /// As in a real text: whether the draft model predicts the token at each position. It is repeated if the text
    /// is longer.
    Recorded(Arc<[bool]>),
}

impl Acceptance {
    pub(super) fn check(&self) -> Result<(), SocRunError> {
        let reason = match self {
            Acceptance::Independent { rate, .. } if !(0.0..=1.0).contains(rate) => {
                format!("a rate of acceptance is between 0 and 1, not {rate}")
            }
            Acceptance::Recorded(positions) if positions.is_empty() => {
                "a recorded acceptance needs a position".to_owned()
            }
            _ => return Ok(()),
        };
        Err(SocRunError::Number { reason })
    }

    /// Whether the draft model predicts the token at that position.
    pub(in crate::simulate) fn is_right(&self, position: usize) -> bool {
        match self {
            Acceptance::Independent { rate, seed } => {
                // SplitMix64 (Steele et al., 2014) of seed and position.
                let mut x =
                    seed.wrapping_add((position as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                x ^= x >> 31;
                ((x >> 11) as f64) < rate * (1_u64 << 53) as f64
            }
            Acceptance::Recorded(positions) => positions[position % positions.len()],
        }
    }
}
