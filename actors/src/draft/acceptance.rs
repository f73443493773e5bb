//! How often drafted tokens are accepted.

/// Acceptance that is assumed of a new request where nothing is known of its drafter.
pub const ASSUMED_ACCEPTANCE: f64 = 0.6;

/// Tokens that an assumption counts as.
const ASSUMED_TOKENS: f64 = 3.0;

/// Accepted tokens, and all that could have been accepted, recent ones with the most weight, beside an assumption.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    assumed: f64,
    accepted: f64,
    tried: f64,
}

impl Rate {
    /// That of a drafter of which nothing else is known.
    pub(super) fn assumed(assumed: f64) -> Rate {
        Rate { assumed, accepted: 0.0, tried: 0.0 }
    }

    /// The share that is expected of the next tokens.
    pub(super) fn expected(self) -> f64 {
        (self.accepted + self.assumed * ASSUMED_TOKENS) / (self.tried + ASSUMED_TOKENS)
    }

    /// The expected share and, once something was tried, half its standard error. Too long a draft corrects the estimate;
    /// where nothing is drafted, nothing corrects it.
    pub(super) fn hopeful(self) -> f64 {
        let expected = self.expected();
        if self.is_new() {
            return expected;
        }
        expected + 0.5 * (expected * (1.0 - expected) / (self.tried + ASSUMED_TOKENS)).sqrt()
    }

    /// Whether nothing was tried.
    pub(super) fn is_new(self) -> bool {
        self.tried == 0.0
    }

    /// Counts further tokens, the accepted ones of all, and the earlier ones `keep` times.
    pub(super) fn learn(&mut self, tokens: (usize, usize), keep: f64) {
        self.accepted = self.accepted * keep + tokens.0 as f64;
        self.tried = self.tried * keep + tokens.1 as f64;
    }
}

/// The acceptance of a draft model's tokens over all requests, with which new requests begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsualAcceptance(Rate);

/// Tried tokens from which on the acceptance counts as known.
const KNOWN_TOKENS: f64 = 12.0;

/// Factor of the weight of earlier drafts of all requests at each new one.
const DECAY: f64 = 0.98;

impl Default for UsualAcceptance {
    fn default() -> UsualAcceptance {
        UsualAcceptance(Rate::assumed(ASSUMED_ACCEPTANCE))
    }
}

impl UsualAcceptance {
    /// That of a request of which nothing else is known: the usual one, but no more than is assumed without any knowledge,
    /// since too long a draft costs more than too short a one.
    pub(super) fn of_request(&self) -> Rate {
        Rate::assumed(self.0.expected().min(ASSUMED_ACCEPTANCE))
    }

    /// The acceptance that a request may have, as far as it is known.
    pub(super) fn hopeful(&self) -> f64 {
        self.0.hopeful()
    }

    /// Whether enough tokens were tried to tell drafts that pay from others.
    pub(super) fn is_known(&self) -> bool {
        self.0.tried >= KNOWN_TOKENS
    }

    /// Counts accepted tokens, and those that could have been accepted.
    pub(super) fn learn(&mut self, tokens: (usize, usize)) {
        self.0.learn(tokens, DECAY);
    }
}
