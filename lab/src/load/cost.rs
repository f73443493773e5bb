//! Times of a server's passes, from measured tables.

use std::collections::BTreeMap;
use std::time::Duration;

use lapwing_kernels::device::Batch;
use lapwing_plan::time::{Job, TimeModel};

/// Time of a pass over prompts and over one row of each sequence that generates, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PassTime {
    /// `prompt`·rows of prompts + (`step` + `row`·sequences + `context`·tokens in their caches) if any generates.
    Linear {
        /// Seconds per prompt row.
        prompt: f64,
        /// Seconds of a pass in which any sequence generates.
        step: f64,
        /// Seconds for each sequence that generates.
        row: f64,
        /// Seconds for each token in the cache of a sequence that generates.
        context: f64,
    },
    /// Preble's model of Mistral-7B on an A6000 (WukLab/preble, 2024), by the rows of the pass. Its parabola for 192 to
    /// 383 rows falls below the time of fewer rows from 315 on, and below 0 from 361 on; the time of fewer rows counts there.
    PrebleA6000,
}

/// Why a table of costs cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CostError {
    /// It is not a table.
    #[error(
        "the costs are not a table of input length → output length → [batch, prefill, decode]: {0}"
    )]
    Form(#[from] serde_json::Error),
    /// Its numbers do not determine the times.
    #[error("the costs do not determine the time of a pass: {reason}")]
    Numbers {
        /// What is missing.
        reason: String,
    },
}

/// Batch size, seconds of a prompt and seconds of the output, each for one request of the batch.
type Measured = (f64, f64, f64);

impl PassTime {
    /// Fits a table in JSON: input length → output length → \[batch size, seconds of a prompt, seconds of
    /// its output\], the times for one request of the batch. The time of a prompt is proportional to its tokens; a
    /// step takes a constant, a time for each sequence and a time for each token in the caches. Both are the
    /// least squares of relative errors.
    ///
    /// # Errors
    /// [`CostError`].
    pub fn fit(json: &str) -> Result<PassTime, CostError> {
        let table: BTreeMap<String, BTreeMap<String, Measured>> = serde_json::from_str(json)?;
        let number = |text: &str| {
            text.parse::<f64>().map_err(|_| CostError::Numbers {
                reason: format!("'{text}' is not a number of tokens"),
            })
        };
        let (mut ratios, mut normal, mut right) = (Vec::new(), [[0.0; 3]; 3], [0.0; 3]);
        for (input, outputs) in &table {
            for (output, (batch, prefill, decode)) in outputs {
                let (input, output) = (number(input)?, number(output)?);
                ratios.push(prefill / input);
                if output <= 1.0 {
                    continue;
                }
                // The first token belongs to the prompt.
                let steps = output - 1.0;
                let seconds = batch * decode / steps;
                let terms = [1.0, *batch, batch * (input + output / 2.0)].map(|x| x / seconds);
                for (row, a) in terms.iter().enumerate() {
                    right[row] += a;
                    terms.iter().enumerate().for_each(|(col, b)| normal[row][col] += a * b);
                }
            }
        }
        let weights: f64 = ratios.iter().map(|ratio| 1.0 / (ratio * ratio)).sum();
        let prompt = ratios.iter().map(|ratio| 1.0 / ratio).sum::<f64>() / weights;
        let [step, row, context] = solve(normal, right).ok_or_else(|| CostError::Numbers {
            reason: "it needs three different batches with outputs of several tokens".to_owned(),
        })?;
        let fitted = PassTime::Linear { prompt, step, row, context };
        match [prompt, step, row, context].iter().all(|x| x.is_finite()) && prompt > 0.0 {
            true => Ok(fitted),
            false => Err(CostError::Numbers { reason: format!("a fit gives {fitted:?}") }),
        }
    }

    /// Seconds of a pass.
    pub fn seconds(&self, batch: &Batch) -> f64 {
        let (mut prompt_rows, mut sequences, mut context) = (0.0, 0.0, 0.0);
        let mut extensions = 0.0;
        for span in &batch.spans {
            let (rows, before) = (span.rows.len() as f64, span.start as f64);
            if span.rows.len() > 1 || span.start == 0 {
                prompt_rows += rows;
                extensions += (1.13e-3 * rows + 1.75e-3 * before + 2.19e-6 * rows * before) * 1e-3;
            } else {
                sequences += 1.0;
                context += before;
            }
        }
        match self {
            PassTime::Linear { prompt, step, row, context: per_token } => {
                let generate = step + row * sequences + per_token * context;
                prompt * prompt_rows + if sequences > 0.0 { generate.max(0.0) } else { 0.0 }
            }
            PassTime::PrebleA6000 => {
                let rows = prompt_rows + sequences;
                let few = 22.0;
                let linear = match rows {
                    _ if rows >= 384.0 => 0.108_425_71 * rows + 4.2098,
                    _ if rows >= 192.0 => (-118.0 + 1.25 * rows - 2.56e-3 * rows * rows).max(few),
                    _ => few,
                };
                let attention = if context > 1024.0 { 1.86e-4 * context + 0.159 } else { 0.32 };
                let attention = if sequences > 0.0 { attention } else { 0.0 };
                ((linear + attention) * 1e-3 + extensions) / 0.9
            }
        }
    }
}

impl TimeModel for PassTime {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        Duration::ZERO
    }

    /// The first node takes all of the time.
    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        match node == job.first {
            true => Duration::from_secs_f64(self.seconds(job.batch)),
            false => Duration::ZERO,
        }
    }
}

/// Solves three linear equations by Gaussian elimination with pivoting; `None` if they are singular.
fn solve(mut left: [[f64; 3]; 3], mut right: [f64; 3]) -> Option<[f64; 3]> {
    for at in 0..3 {
        let pivot = (at..3).max_by(|a, b| left[*a][at].abs().total_cmp(&left[*b][at].abs()))?;
        left.swap(at, pivot);
        right.swap(at, pivot);
        if left[at][at].abs() < 1e-12 {
            return None;
        }
        for row in 0..3 {
            let factor = left[row][at] / left[at][at];
            if row != at {
                (at..3).for_each(|col| left[row][col] -= factor * left[at][col]);
                right[row] -= factor * right[at];
            }
        }
    }
    Some([0, 1, 2].map(|at| right[at] / left[at][at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(spans: &[(usize, usize)]) -> Batch {
        let mut batch = Batch::default();
        for (start, rows) in spans {
            batch.push(&vec![0; *rows], *start, [0], 0..1);
        }
        batch
    }

    #[test]
    fn a_fit_finds_the_numbers_of_a_table() {
        // 1 ms a prompt token; a step of 10 ms, 2 ms a sequence and 0.01 ms a token.
        let mut table = BTreeMap::new();
        for (input, count) in [(10.0, 8.0), (100.0, 4.0), (400.0, 2.0)] {
            let outputs = [1.0, 21.0, 61.0].map(|output| {
                let step = 0.01 + 0.002 * count + 1e-5 * count * (input + output / 2.0);
                let decode = step * (output - 1.0) / count;
                (output.to_string(), (count, input * 1e-3, decode))
            });
            table.insert(input.to_string(), BTreeMap::from(outputs));
        }
        let json = serde_json::to_string(&table).expect("JSON");
        let fitted = PassTime::fit(&json).expect("a fit");
        for (spans, seconds) in [
            (&[(0, 50)][..], 0.05),
            (&[(100, 1), (300, 1)], 0.01 + 0.004 + 0.004),
            (&[(0, 50), (100, 1)], 0.05 + 0.01 + 0.002 + 0.001),
        ] {
            let found = fitted.seconds(&batch(spans));
            assert!((found - seconds).abs() < 1e-9, "{spans:?}: {found} for {seconds}");
        }
    }

    #[test]
    fn no_pass_takes_less_time_than_one_of_a_single_row() {
        let least = PassTime::PrebleA6000.seconds(&batch(&[(1, 1)]));
        for rows in 1..1000 {
            let seconds = PassTime::PrebleA6000.seconds(&batch(&[(0, rows)]));
            assert!(seconds >= least - 1e-3 && seconds < 0.3, "{rows} rows: {seconds} s");
        }
    }

    #[test]
    fn a_table_that_determines_nothing_is_refused() {
        for (json, message) in [
            ("[]", "are not a table"),
            ("{}", "three different batches"),
            (r#"{"8":{"64":[1,2,3]}}"#, "three different batches"),
            (r#"{"x":{"64":[1,2,3]}}"#, "'x' is not a number of tokens"),
        ] {
            let error = PassTime::fit(json).expect_err(json).to_string();
            assert!(error.contains(message), "{json}: {error}");
        }
    }
}
