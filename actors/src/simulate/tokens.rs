//! The tokens that models without values yield.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapwing_kernels::device::{Batch, StageRun, Tensor};
use lapwing_kernels::graph::Graph;

use super::speculation::Acceptance;

/// The tokens that the models of a run yield: always token 0, or those of texts, of which a draft model predicts some wrong.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    texts: Option<Texts>,
    /// Rows of draft models that have reached their logits. Clones share it.
    drafted: Arc<AtomicUsize>,
}

/// Most texts that differ in where drafted tokens are right.
pub const TEXTS_MAX: usize = 64;

/// Texts. All tokens of text n are token 2n, and a draft model that is wrong predicts token 2n + 1.
#[derive(Clone, Debug)]
struct Texts {
    acceptance: Acceptance,
    /// Positions of a text, of which each has others.
    positions: usize,
}

impl Texts {
    fn token(&self, batch: &Batch, row: usize) -> u32 {
        let right = batch.ids[row] & !1;
        // The row at a position predicts the token after it.
        let position = right as usize / 2 * self.positions + batch.positions[row] as usize + 1;
        let is_right = batch.model.0 == 0 || self.acceptance.is_right(position);
        right + u32::from(!is_right)
    }
}

impl Tokens {
    /// Tokens of up to [`TEXTS_MAX`] texts of up to `positions` tokens each.
    pub fn of_texts(acceptance: &Acceptance, positions: usize) -> Tokens {
        let acceptance = acceptance.decided(positions * TEXTS_MAX);
        Tokens { texts: Some(Texts { acceptance, positions }), drafted: Arc::default() }
    }

    /// The token of the text of the request of that number, of which its prompt must consist.
    pub fn of_request(number: usize) -> u32 {
        (number % TEXTS_MAX) as u32 * 2
    }

    /// One past the largest token of so many requests.
    pub fn vocabulary(requests: usize) -> usize {
        requests.clamp(1, TEXTS_MAX) * 2
    }

    /// Number of rows that draft models have computed.
    pub fn drafted(&self) -> usize {
        self.drafted.load(Ordering::Relaxed)
    }

    /// Writes logits for each row that needs them; greedy sampling turns them into the row's token.
    pub(super) fn put_logits(&self, graph: &Graph, work: &mut StageRun<'_>) {
        let logits = graph.output();
        if !work.writes.contains(&logits) {
            return;
        }
        let batch = work.batch;
        if batch.model.0 > 0 {
            self.drafted.fetch_add(batch.rows(), Ordering::Relaxed);
        }
        let token = |row: &usize| self.texts.as_ref().map_or(0, |texts| texts.token(batch, *row));
        let tokens: Vec<usize> = batch.selected.iter().map(|row| token(row) as usize).collect();
        let width = tokens.iter().max().map_or(1, |token| token + 1);
        let mut values = vec![0.0; width * tokens.len()];
        for (row, token) in values.chunks_exact_mut(width).zip(tokens) {
            row[token] = 1.0;
        }
        work.outputs.put(logits, Tensor::new(width, values));
    }
}
