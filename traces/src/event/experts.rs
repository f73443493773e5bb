//! How many rows experts of a layer had.

/// The rows of some neighbouring experts in one op of a layer. An op has as many of these as its experts with rows need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExpertRows {
    /// Number of the model; 0 is the one that makes the answers.
    pub model: u8,
    /// Layer.
    pub layer: u16,
    /// Experts of the layer.
    pub experts: u16,
    /// The expert of the first number.
    pub first: u32,
    /// Rows of this expert and of those that follow it, each row once for each of its experts; 65 535 also stands for more.
    pub rows: [u16; ExpertRows::MANY],
}

impl ExpertRows {
    /// Experts of an event.
    pub const MANY: usize = 32;

    /// The numbers in 64-bit words, four in each.
    pub(super) fn words(&self) -> [u64; ExpertRows::MANY / 4] {
        let four = |at: usize| {
            let rows = &self.rows[4 * at..][..4];
            rows.iter().rev().fold(0, |word, rows| word << 16 | u64::from(*rows))
        };
        std::array::from_fn(four)
    }

    /// The numbers of [`words`](ExpertRows::words).
    pub(super) fn of_words(words: [u64; ExpertRows::MANY / 4]) -> [u16; ExpertRows::MANY] {
        std::array::from_fn(|at| (words[at / 4] >> (at % 4 * 16)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::ExpertRows;

    #[test]
    fn numbers_survive_their_words() {
        let rows = std::array::from_fn(|at| (at * 7919 % 65_536) as u16);
        let event = ExpertRows { model: 1, layer: 3, experts: 128, first: 64, rows };
        assert_eq!(ExpertRows::of_words(event.words()), rows);
    }
}
