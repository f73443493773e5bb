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
    /// The n-th token after a wrong one, or after the prompt, is right with the n-th of these probabilities, and every
    /// later one with the last: acceptance by position in a draft, as a real run reports it.
    ByPosition {
        /// Probabilities.
        rates: Arc<[f64]>,
        /// The same seed gives the same positions.
        seed: u64,
    },
    /// As in a real text: whether the draft model predicts the token at each position. It is repeated if the text
    /// is longer.
    Recorded(Arc<[bool]>),
}

impl Acceptance {
    pub(in crate::simulate) fn check(&self) -> Result<(), SocRunError> {
        let reason = match self {
            Acceptance::Independent { rate, .. } if !(0.0..=1.0).contains(rate) => {
                format!("a rate of acceptance is between 0 and 1, not {rate}")
            }
            Acceptance::ByPosition { rates, .. }
                if rates.is_empty() || rates.iter().any(|rate| !(0.0..=1.0).contains(rate)) =>
            {
                format!(
                    "acceptance by position needs one or more rates between 0 and 1, not {rates:?}"
                )
            }
            Acceptance::Recorded(positions) if positions.is_empty() => {
                "a recorded acceptance needs a position".to_owned()
            }
            _ => return Ok(()),
        };
        Err(SocRunError::Number { reason })
    }

    /// Acceptance by position in a draft from the counts of a real run: tokens that were verified at each position, and
    /// how many of them were accepted. A token is accepted only if all before it are, so each rate is the share of
    /// accepted tokens divided by that of the position before.
    pub fn of_counts(positions: &[(usize, usize)], seed: u64) -> Acceptance {
        let mut before = 1.0;
        let counted = positions.iter().filter(|(verified, _)| *verified > 0);
        let rates = counted.map_while(|(verified, accepted)| {
            let share = *accepted as f64 / *verified as f64;
            let rate = (before > 0.0).then(|| (share / before).min(1.0));
            before = share;
            rate
        });
        Acceptance::ByPosition { rates: rates.collect(), seed }
    }

    /// The same with the outcome of each of the first `positions` positions of a text decided.
    pub(in crate::simulate) fn decided(&self, positions: usize) -> Acceptance {
        let Acceptance::ByPosition { rates, seed } = self else { return self.clone() };
        let mut since = 0;
        let outcomes = (0..positions).map(|position| {
            let rate = rates[since.min(rates.len() - 1)];
            let is_right = Acceptance::Independent { rate, seed: *seed }.is_right(position);
            since = if is_right { since + 1 } else { 0 };
            is_right
        });
        Acceptance::Recorded(outcomes.collect())
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
            Acceptance::ByPosition { .. } => false,
            Acceptance::Recorded(positions) => positions[position % positions.len()],
        }
    }
}
