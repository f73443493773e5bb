//! A planned prompt beside a stream.

use std::time::Duration;

use lapwing_engine::Engine;
use lapwing_traces::text::counted;
use serde::Serialize;

use super::{Args, ms};
use crate::cli::failure::Failure;

/// How a stream and the prompt go on beside each other, by predicted times.
#[derive(Serialize)]
pub(super) struct BesideStream {
    /// Target of the stream's gaps; `None` keeps most of the prefill rate.
    target_ms: Option<f64>,
    /// Prompt rows of the largest chunk.
    rows: usize,
    /// Longest time that the stream waits for a token.
    gap_ms: f64,
    /// Time of the prompt.
    predicted_ms: f64,
}

impl BesideStream {
    /// The prompt of `plan` in this engine. `None` if the times of its devices are unknown.
    pub(super) fn of(engine: &Engine, args: &Args) -> Result<Option<BesideStream>, Failure> {
        let target = args.engine.token_gap;
        let beside = engine.predict_beside_stream(args.prompt_tokens, target)?;
        Ok(beside.map(|beside| BesideStream {
            target_ms: target.map(ms),
            rows: beside.rows,
            gap_ms: ms(beside.gap),
            predicted_ms: ms(beside.time),
        }))
    }

    /// A line for a prompt that alone takes `alone` ms.
    pub(super) fn text(&self, alone: Option<f64>) -> String {
        let BesideStream { target_ms, rows, gap_ms, predicted_ms } = *self;
        let rows = counted(rows, "row");
        let longer = alone.filter(|alone| *alone > 0.0).map(|alone| {
            let percent = (predicted_ms / alone - 1.0).max(0.0) * 100.0;
            format!(", {percent:.0} % longer than alone")
        });
        let target =
            target_ms.map(|ms| format!(" (target {:?})", Duration::from_secs_f64(ms / 1e3)));
        format!(
            "\nbeside a stream: chunks of up to {rows}; the stream waits up to {gap_ms:.0} ms for a token{}, the prompt takes \
             {predicted_ms:.0} ms{}\n",
            target.unwrap_or_default(),
            longer.unwrap_or_default(),
        )
    }
}
