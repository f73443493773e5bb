//! The time of a step with a draft.

/// The time of drafting and verifying, with an expected overlap.
#[derive(Clone, Copy, Debug)]
pub struct DraftCost {
    /// Time of drafting a token; 0 for a drafter that answers at once.
    pub per_token: f64,
    /// Whether tokens are drafted while the model verifies.
    pub overlaps: bool,
    /// Whether the model waits for drafts that are not there; otherwise it computes a pass without one.
    pub waits: bool,
    /// Probability that a drafted token is accepted.
    pub acceptance: f64,
}

impl DraftCost {
    /// Time of drafting `drafted` tokens and of a pass that takes `verify`. Tokens that are drafted during a pass follow
    /// the token that it adds to its draft, which is drafted first, and count only if all of these are right.
    /// Otherwise the next draft begins when the stale pass of the draft model has ended that runs at the end of the pass.
    pub fn step(&self, drafted: usize, verify: f64) -> f64 {
        let alone = verify + self.per_token * drafted as f64;
        if !self.overlaps || drafted == 0 || self.per_token <= 0.0 {
            return alone;
        }
        if !self.waits {
            return verify.max(self.per_token * (drafted + 1) as f64);
        }
        let right = self.acceptance.powi(drafted as i32 + 1);
        let ahead = verify.max(self.per_token * (drafted + 1) as f64);
        let stale = (verify / self.per_token).ceil() * self.per_token - verify;
        right * ahead + (1.0 - right) * (alone + stale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_during_a_pass_cost_nothing_only_if_they_are_right() {
        // Time of a token, acceptance, tokens; time of a step with synchronous and with asynchronous drafts.
        let rows = [
            ("no draft", 0.5, 0.5, 0, 1.0, 1.0),
            ("all right: hidden behind the pass", 0.5, 1.0, 1, 1.5, 1.0),
            ("all right: the draft takes longer", 0.5, 1.0, 3, 2.5, 2.0),
            ("all wrong: no stale pass is left", 0.5, 0.0, 1, 1.5, 1.5),
            ("all wrong: half a stale pass is left", 0.75, 0.0, 1, 1.75, 2.25),
            ("one token and the next one are right in a quarter", 0.5, 0.5, 1, 1.5, 1.375),
            ("a drafter that answers at once", 0.0, 0.5, 4, 1.0, 1.0),
        ];
        for (name, per_token, acceptance, drafted, sync, own) in rows {
            let cost = |overlaps| DraftCost { per_token, overlaps, waits: true, acceptance };
            let found = [false, true].map(|overlaps| cost(overlaps).step(drafted, 1.0));
            assert_eq!(found, [sync, own], "{name}");
        }
    }
}
