//! Acceptance of drafted tokens, as real runs report it.

use std::path::Path;

use lapwing_lab::simulate::speculation::Acceptance;

use super::failure::Failure;

/// Acceptance by position in the drafts of a run, of which the file has the output of `run --draft … --json`.
pub(crate) fn of_run(path: &Path, seed: u64) -> Result<Acceptance, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
    let positions = serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|run| {
        let positions = run.get("draft")?.get("positions")?.clone();
        serde_json::from_value::<Vec<(usize, usize)>>(positions).ok()
    });
    match positions {
        Some(positions) if positions.first().is_some_and(|(verified, _)| *verified > 0) => {
            Ok(Acceptance::of_counts(&positions, seed))
        }
        _ => Err(Failure::usage(format!(
            "{} has no drafted tokens; write it with: lapwing run --draft … --json > FILE",
            path.display()
        ))),
    }
}
