//! Ranks of requests.

use std::cmp::Ordering;

/// Place in an order: the smaller rank goes first. The first key decides, then the second.
///
/// Any two ranks can be compared: 0 and −0 are equal, and NaN is greater than all numbers (a negative
/// NaN smaller).
#[derive(Clone, Copy, Debug, Default)]
pub struct Rank(pub f64, pub f64);

impl Rank {
    /// The same for all: requests go in order of arrival.
    pub const EQUAL: Rank = Rank(0.0, 0.0);

    /// A rank of one key.
    pub const fn by(key: f64) -> Rank {
        Rank(key, 0.0)
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> Ordering {
        // The sum of −0 and 0 is 0.
        let compare = |a: f64, b: f64| (a + 0.0).total_cmp(&(b + 0.0));
        compare(self.0, other.0).then_with(|| compare(self.1, other.1))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Rank) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rank {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_decides_then_the_second() {
        let mut ranks = [Rank(2.0, -1.0), Rank(1.0, 5.0), Rank::by(1.0), Rank(-3.0, 0.0)];
        ranks.sort();
        assert_eq!(ranks, [Rank(-3.0, 0.0), Rank::by(1.0), Rank(1.0, 5.0), Rank(2.0, -1.0)]);
    }

    #[test]
    fn any_two_ranks_can_be_compared() {
        assert_eq!(Rank(-0.0, 0.0), Rank::EQUAL);
        assert!(Rank::by(f64::NAN) > Rank::by(f64::INFINITY));
        assert_eq!(Rank::by(f64::NAN), Rank::by(f64::NAN));
    }
}
