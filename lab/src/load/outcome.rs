//! What became of the requests of a workload.

/// What became of one request; all times are in seconds from the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestOutcome {
    /// Its client.
    pub client: String,
    /// Time of its arrival.
    pub at: f64,
    /// Tokens of its prompt.
    pub prompt_tokens: usize,
    /// Tokens that it asks for.
    pub output_tokens: usize,
    /// Tokens of its prompt that the prefix cache had; known when it has finished.
    pub cached_tokens: usize,
    /// Time at which it left the queue; known when it has finished.
    pub admitted: Option<f64>,
    /// Times of its tokens.
    pub tokens: Vec<f64>,
    /// Whether it has all of its tokens.
    pub finished: bool,
    /// Whether it was turned away before it had a token, by a limit or because it can never fit.
    pub refused: bool,
    /// Why it failed.
    pub error: Option<String>,
}

impl RequestOutcome {
    /// Time to first token.
    pub fn ttft(&self) -> Option<f64> {
        Some(self.tokens.first()? - self.at)
    }

    /// Time from arrival to the last token, if it has finished.
    pub fn response(&self) -> Option<f64> {
        self.finished.then_some(self.tokens.last()? - self.at)
    }

    /// Mean time per token after the first.
    pub fn tpot(&self) -> Option<f64> {
        let (first, last) = (self.tokens.first()?, self.tokens.last()?);
        let later = self.tokens.len().checked_sub(1).filter(|later| *later > 0)?;
        Some((last - first) / later as f64)
    }

    /// Times between tokens.
    pub fn gaps(&self) -> impl Iterator<Item = f64> + '_ {
        self.tokens.windows(2).map(|pair| pair[1] - pair[0])
    }
}
