//! The length of a draft that gives the most tokens per second.

/// Least predicted gain for which a draft is verified.
pub const GAIN_MIN: f64 = 1.03;

/// The length of a draft that gives the most tokens per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestLength {
    /// Drafted tokens, at least 1.
    pub length: usize,
    /// Predicted tokens per second of the batch, as a multiple of those without a draft.
    pub gain: f64,
}

impl BestLength {
    /// Whether the gain is worth a draft.
    pub fn pays(&self) -> bool {
        self.gain > GAIN_MIN
    }
}

/// The best length up to `most` of drafts of which each token is accepted with probability `alpha`, in a step that also has
/// `others` rows of other sequences. `time` predicts the time of a step by its rows. `None` if nothing is known yet, or
/// nothing can be drafted.
pub fn best_length(
    alpha: f64,
    most: usize,
    others: usize,
    time: impl Fn(usize) -> Option<f64>,
) -> Option<BestLength> {
    best_count(chain(alpha).take(most), others, time)
}

/// The probability that each token of a chain is accepted.
pub(crate) fn chain(alpha: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(alpha), move |power| Some(power * alpha))
}

/// As [`best_length`], for the first ones of tokens that are accepted with these probabilities.
pub(crate) fn best_count(
    chances: impl IntoIterator<Item = f64>,
    others: usize,
    time: impl Fn(usize) -> Option<f64>,
) -> Option<BestLength> {
    let base = (others + 1) as f64 / time(others + 1)?;
    let mut own = 1.0;
    let mut best: Option<BestLength> = None;
    for (length, chance) in (1..).zip(chances) {
        own += chance;
        let Some(time) = time(others + 1 + length) else { break };
        let gain = (others as f64 + own) / time / base;
        if best.is_none_or(|best| gain > best.gain) {
            best = Some(BestLength { length, gain });
        }
    }
    best
}
