//! Computes the makespan with changed durations.

use std::collections::BTreeSet;
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
    /// Fused groups that `op:NAME` selects because the op is a part of them.
    fused: Vec<String>,
}

/// Replays a run with each scenario.
pub(super) fn replay(scenarios: &[Scenario], timeline: &Timeline) -> Result<Vec<Outcome>, Failure> {
    let recorded = timeline.makespan();
    let replay = |scenario: &Scenario| {
        let replayed = Replay::new(timeline, &scenario.what_if)
            .map_err(|error| Failure::usage(format!("--what-if: {error}")))?;
        let makespan_ns = replayed.makespan;
        let changes = scenario.what_if.changes.iter();
        let fused: BTreeSet<&str> = changes.flat_map(|change| change.groups(timeline)).collect();
        let delta = i128::from(makespan_ns) - i128::from(recorded);
        Ok(Outcome {
            change: scenario.text.clone(),
            makespan_ns,
            delta_ns: i64::try_from(delta).unwrap_or(if delta < 0 { i64::MIN } else { i64::MAX }),
            ratio: (recorded > 0).then(|| makespan_ns as f64 / recorded as f64),
            fused: fused.into_iter().map(str::to_owned).collect(),
        })
    };
    scenarios.iter().map(replay).collect()
}

/// One line for each scenario.
pub(super) fn text(outcomes: &[Outcome]) -> String {
    let line = |outcome: &Outcome| {
        let share = outcome.ratio.map(|ratio| format!(" ({:+.1} %)", (ratio - 1.0) * 100.0));
        let groups = outcome.fused.iter().map(|group| {
            format!("  changes all of {}, which is fused into one dispatch\n", one_line(group))
        });
        let groups: String = groups.collect();
        format!(
            "what if {}: makespan {:.3} ms instead of {:.3} ms{}\n{groups}",
            one_line(&outcome.change),
            outcome.makespan_ns as f64 / 1e6,
            (outcome.makespan_ns as f64 - outcome.delta_ns as f64) / 1e6,
            share.unwrap_or_default()
        )
    };
    let lines: String = outcomes.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
