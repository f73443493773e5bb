//! Computes the makespan with changed durations.

use std::str::FromStr;

use lapwing_traces::Timeline;
use lapwing_traces::analysis::replay::{Replay, WhatIf, WhatIfError};
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::visible::one_line;

/// Changes, and their text.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    text: String,
    what_if: WhatIf,
}

impl Scenario {
    /// Parses changes.
    pub(super) fn parse(text: &str) -> Result<Scenario, WhatIfError> {
        Ok(Scenario { text: text.to_owned(), what_if: WhatIf::from_str(text)? })
    }
}

/// The result of changes.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    change: String,
    makespan_ns: u64,
    delta_ns: i64,
    /// The new makespan divided by the recorded one.
    ratio: Option<f64>,
}

/// Replays a run with each scenario.
pub(super) fn replay(scenarios: &[Scenario], timeline: &Timeline) -> Result<Vec<Outcome>, Failure> {
    let recorded = timeline.makespan();
    let replay = |scenario: &Scenario| {
        let replayed = Replay::new(timeline, &scenario.what_if)
            .map_err(|error| Failure::usage(format!("--what-if: {error}")))?;
        let makespan_ns = replayed.makespan;
        let delta = i128::from(makespan_ns) - i128::from(recorded);
        Ok(Outcome {
            change: scenario.text.clone(),
            makespan_ns,
            delta_ns: i64::try_from(delta).unwrap_or(if delta < 0 { i64::MIN } else { i64::MAX }),
            ratio: (recorded > 0).then(|| makespan_ns as f64 / recorded as f64),
        })
    };
    scenarios.iter().map(replay).collect()
}

/// One line for each scenario.
pub(super) fn text(outcomes: &[Outcome]) -> String {
    let line = |outcome: &Outcome| {
        let share = outcome.ratio.map(|ratio| format!(" ({:+.1} %)", (ratio - 1.0) * 100.0));
        format!(
            "what if {}: makespan {:.3} ms instead of {:.3} ms{}\n",
            one_line(&outcome.change),
            outcome.makespan_ns as f64 / 1e6,
            (outcome.makespan_ns as f64 - outcome.delta_ns as f64) / 1e6,
            share.unwrap_or_default()
        )
    };
    let lines: String = outcomes.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
