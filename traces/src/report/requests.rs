//! Computes the figures of requests: queue time, TTFT, TPOT, ITL and the times between tokens.

use std::collections::BTreeMap;

use super::{Percentiles, RequestsReport};
use crate::event::Milestone;
use crate::timeline::{RequestMilestone, Timeline};

/// Milestones that one request reached, in ns.
#[derive(Default)]
struct Progress {
    submitted: Option<u64>,
    admitted: Option<u64>,
    tokens: Vec<(u64, u64)>,
    end: Option<Milestone>,
    prompt_tokens: u64,
    cached_tokens: u64,
    recomputed_tokens: u64,
}

pub(super) fn requests(timeline: &Timeline) -> RequestsReport {
    let mut requests: BTreeMap<u64, Progress> = BTreeMap::new();
    for milestone in &timeline.milestones {
        requests.entry(milestone.request).or_default().reach(milestone);
    }
    let ended =
        |milestone| requests.values().filter(|request| request.end == Some(milestone)).count();
    let ms = |ns: u64| ns as f64 / 1e6;
    let generated_tokens = requests.values().map(Progress::generated).fold(0, u64::saturating_add);
    let first = requests.values().filter_map(|request| request.submitted).min();
    let last =
        requests.values().filter_map(|request| request.tokens.last().map(|(at, _)| *at)).max();
    let gaps = timeline.token_gaps();
    let time = first.zip(last).map(|(first, last)| last.saturating_sub(first));
    RequestsReport {
        count: requests.len(),
        finished: ended(Milestone::Finished),
        cancelled: ended(Milestone::Cancelled),
        failed: ended(Milestone::Failed),
        prompt_tokens: requests
            .values()
            .map(|request| request.prompt_tokens)
            .fold(0, u64::saturating_add),
        cached_tokens: requests
            .values()
            .map(|request| request.cached_tokens)
            .fold(0, u64::saturating_add),
        recomputed_tokens: requests
            .values()
            .map(|request| request.recomputed_tokens)
            .fold(0, u64::saturating_add),
        generated_tokens,
        tokens_per_second: time
            .filter(|time| *time > 0)
            .map(|time| generated_tokens as f64 / (time as f64 / 1e9)),
        queued_ms: Percentiles::of(requests.values().filter_map(Progress::queued).map(ms)),
        ttft_ms: Percentiles::of(requests.values().filter_map(Progress::ttft).map(ms)),
        tpot_ms: Percentiles::of(requests.values().filter_map(Progress::tpot).map(|ns| ns / 1e6)),
        itl_ms: Percentiles::of(requests.values().flat_map(Progress::latencies).map(ms)),
        gap_ms: super::streams::spread(&gaps),
        gaps_late: super::streams::late(&gaps),
        gaps: super::streams::by_request(&gaps),
    }
}

impl Progress {
    fn reach(&mut self, milestone: &RequestMilestone) {
        let at = milestone.at.0;
        match milestone.milestone {
            Milestone::Submitted => {
                self.submitted.get_or_insert(at);
                self.prompt_tokens = milestone.value;
            }
            // Later ones follow a preemption.
            Milestone::Admitted if self.admitted.is_some() => {}
            Milestone::Admitted => {
                self.admitted = Some(at);
                self.cached_tokens = milestone.value;
            }
            Milestone::Recomputed => self.recomputed_tokens = milestone.value,
            Milestone::TokenGap => {}
            Milestone::Token => self.tokens.push((at, milestone.value)),
            end @ (Milestone::Finished | Milestone::Cancelled | Milestone::Failed) => {
                self.end = Some(end);
            }
        }
    }

    fn generated(&self) -> u64 {
        self.tokens.iter().map(|(_, count)| *count).fold(0, u64::saturating_add)
    }

    fn queued(&self) -> Option<u64> {
        Some(self.admitted?.saturating_sub(self.submitted?))
    }

    fn ttft(&self) -> Option<u64> {
        Some(self.tokens.first()?.0.saturating_sub(self.submitted?))
    }

    /// Mean time per token after the first, in ns.
    fn tpot(&self) -> Option<f64> {
        let (first, last) = (self.tokens.first()?, self.tokens.last()?);
        let later = self.generated().checked_sub(first.1).filter(|later| *later > 0)?;
        Some((last.0 - first.0) as f64 / later as f64)
    }

    fn latencies(&self) -> Vec<u64> {
        self.tokens.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }
}
