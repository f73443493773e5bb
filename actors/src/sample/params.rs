//! Parameters of sampling.

/// How tokens are chosen. The steps run in the order of the fields, temperature last.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// Added to the logits of these ids first; −∞ forbids an id.
    pub logit_bias: Vec<(u32, f32)>,
    /// How many of the latest tokens, prompt included, the penalties look at.
    pub penalty_window: usize,
    /// Divides positive and multiplies negative logits of tokens in the window; 1 is off.
    pub repetition_penalty: f32,
    /// Subtracted once from tokens in the window; 0 is off.
    pub presence_penalty: f32,
    /// Subtracted per occurrence in the window; 0 is off.
    pub frequency_penalty: f32,
    /// Keeps the k most likely tokens; 0 is off.
    pub top_k: usize,
    /// Nucleus sampling: keeps the smallest set with at least this probability; 1 is off.
    pub top_p: f32,
    /// Keeps tokens at least this likely relative to the most likely one; 0 is off.
    pub min_p: f32,
    /// Divides the logits; 0 always takes the most likely token.
    pub temperature: f32,
    /// Seed of the random choice: the same seed gives the same tokens. `None` draws a new one for each
    /// sequence.
    pub seed: Option<u64>,
    /// Accepts each drafted token with this probability, whatever the logits say: for measurements of speculative decoding with
    /// an acceptance of choice, also with random weights. The tokens are then not those of the model. `None` accepts the
    /// drafted tokens that are chosen.
    pub draft_acceptance: Option<f32>,
}

impl Default for SamplingParams {
    fn default() -> SamplingParams {
        SamplingParams {
            logit_bias: Vec::new(),
            penalty_window: 64,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            temperature: 0.8,
            seed: None,
            draft_acceptance: None,
        }
    }
}

impl SamplingParams {
    /// Always the most likely token.
    pub fn greedy() -> SamplingParams {
        SamplingParams { temperature: 0.0, ..SamplingParams::default() }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`SamplingError`] names the first value that makes no sense.
    pub fn check(&self) -> Result<(), SamplingError> {
        let acceptance = self.draft_acceptance.unwrap_or_default();
        let rows = [
            ("temperature", self.temperature, self.temperature >= 0.0, "0 or more"),
            ("top_p", self.top_p, self.top_p > 0.0 && self.top_p <= 1.0, "above 0, at most 1"),
            ("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "between 0 and 1"),
            (
                "repetition_penalty",
                self.repetition_penalty,
                self.repetition_penalty > 0.0,
                "above 0",
            ),
            ("presence_penalty", self.presence_penalty, true, "finite"),
            ("frequency_penalty", self.frequency_penalty, true, "finite"),
            ("draft_acceptance", acceptance, (0.0..=1.0).contains(&acceptance), "between 0 and 1"),
        ];
        for (name, value, good, expected) in rows {
            if !good || !value.is_finite() {
                return Err(SamplingError { name, value, expected });
            }
        }
        match self.logit_bias.iter().find(|(_, b)| b.is_nan() || *b == f32::INFINITY) {
            Some((_, value)) => Err(SamplingError {
                name: "logit_bias",
                value: *value,
                expected: "a number or −infinity",
            }),
            None => Ok(()),
        }
    }

    /// Checks what makes no sense where a constraint chooses among the tokens.
    ///
    /// # Errors
    /// [`SamplingError`] for [`draft_acceptance`](SamplingParams::draft_acceptance), which accepts any token.
    pub fn check_constrained(&self) -> Result<(), SamplingError> {
        let expected = "left out with a grammar or tools, which forbid tokens";
        match self.draft_acceptance {
            Some(value) => Err(SamplingError { name: "draft_acceptance", value, expected }),
            None => Ok(()),
        }
    }

    pub(super) fn changes_logits(&self) -> bool {
        !self.logit_bias.is_empty() || self.penalises()
    }

    pub(super) fn penalises(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.presence_penalty != 0.0
            || self.frequency_penalty != 0.0
    }
}

/// A sampling parameter that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[error("{name} is {value}, but must be {expected}")]
pub struct SamplingError {
    /// Parameter.
    pub name: &'static str,
    /// Value given.
    pub value: f32,
    /// Accepted values.
    pub expected: &'static str,
}
