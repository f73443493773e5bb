//! What requests did in a composite run.

use lapwing_actors::drive::simulated::Activities;
use lapwing_actors::simulate::arrival::Served;
use lapwing_actors::simulate::traffic::TrafficOutcome;
use serde::Serialize;

use super::{Composite, Overlaps};
use crate::load::LoadRequest;
use crate::simulate::simulated::DeviceUse;

/// The results of a [`Composite`]. Times are virtual, in ms from the start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CompositeRun {
    /// What could run beside what.
    pub overlaps: Overlaps,
    /// The strategy; if nothing is divided, that of the fastest device.
    pub strategy: String,
    /// From the start to the last token.
    pub makespan_ms: f64,
    /// Largest time from the arrival of a request to its first token.
    pub ttft_max_ms: f64,
    /// Largest time between two tokens of a request.
    pub gap_max_ms: f64,
    /// Tokens of all answers for each second of the makespan.
    pub tokens_per_second: f64,
    /// Drafted tokens that were verified, and accepted.
    pub drafted: usize,
    /// Those of them that were accepted.
    pub accepted: usize,
    /// Shares of the makespan.
    pub at_once: AtOnce,
    /// Each request, in order of arrival.
    pub requests: Vec<RequestRun>,
    /// Each device, in order of their names.
    pub devices: Vec<DeviceUse>,
}

/// Shares of the makespan in which devices compute something at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AtOnce {
    /// A draft model.
    pub draft: f64,
    /// A step that verifies a draft.
    pub verify: f64,
    /// A step without a draft.
    pub decode: f64,
    /// Rows of a prompt.
    pub prompt: f64,
    /// A draft model and a step that verifies.
    pub draft_verify: f64,
    /// A step, with or without a draft, and rows of a prompt.
    pub step_prompt: f64,
    /// All three: a draft model, a step that verifies, and rows of a prompt.
    pub draft_verify_prompt: f64,
}

/// What became of a request. Times are in ms from the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RequestRun {
    /// Its arrival.
    pub at_ms: f64,
    /// Tokens of its prompt.
    pub prompt: usize,
    /// Tokens of its answer.
    pub tokens: usize,
    /// From its arrival to its first token.
    pub ttft_ms: f64,
    /// Its last token.
    pub end_ms: f64,
    /// Median of the times between its tokens; `None` of a single one.
    pub gap_median_ms: Option<f64>,
    /// Largest of them.
    pub gap_max_ms: Option<f64>,
    /// Drafted tokens that were verified.
    pub drafted: usize,
    /// Those of them that were accepted.
    pub accepted: usize,
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl CompositeRun {
    pub(super) fn new(
        composite: &Composite,
        strategy: &str,
        outcome: &TrafficOutcome,
        names: &[String],
    ) -> CompositeRun {
        let begin = outcome.begin.at.0;
        let requests = composite.requests.iter().zip(&outcome.served);
        let requests: Vec<RequestRun> =
            requests.map(|(request, served)| RequestRun::new(request, served, begin)).collect();
        let largest =
            |of: fn(&RequestRun) -> Option<f64>| requests.iter().filter_map(of).fold(0.0, f64::max);
        let used = |(name, (busy, runs)): (&String, (u64, usize))| DeviceUse {
            name: name.clone(),
            busy_ms: ms(busy),
            runs,
        };
        let mut devices: Vec<DeviceUse> = names.iter().zip(outcome.devices()).map(used).collect();
        devices.sort_by(|a, b| a.name.cmp(&b.name));
        let makespan_ms = ms(outcome.makespan());
        let tokens: usize = requests.iter().map(|request| request.tokens).sum();
        CompositeRun {
            overlaps: composite.overlaps,
            strategy: strategy.to_owned(),
            makespan_ms,
            ttft_max_ms: largest(|request| Some(request.ttft_ms)),
            gap_max_ms: largest(|request| request.gap_max_ms),
            tokens_per_second: tokens as f64 / makespan_ms * 1e3,
            drafted: requests.iter().map(|request| request.drafted).sum(),
            accepted: requests.iter().map(|request| request.accepted).sum(),
            at_once: AtOnce::new(outcome),
            requests,
            devices,
        }
    }
}

impl AtOnce {
    fn new(outcome: &TrafficOutcome) -> AtOnce {
        let makespan = outcome.makespan().max(1) as f64;
        let time = |all: Activities| outcome.at_once(all) as f64;
        let share = |all| time(all) / makespan;
        let (draft, verify) = (Activities::DRAFT, Activities::VERIFY);
        let (decode, prompt) = (Activities::DECODE, Activities::PROMPT);
        // Steps with and without a draft, less those that run at once.
        let beside = |step: Activities| time(prompt.and(step));
        let both = time(prompt.and(verify).and(decode));
        AtOnce {
            draft: share(draft),
            verify: share(verify),
            decode: share(decode),
            prompt: share(prompt),
            draft_verify: share(draft.and(verify)),
            step_prompt: (beside(verify) + beside(decode) - both) / makespan,
            draft_verify_prompt: share(draft.and(verify).and(prompt)),
        }
    }
}

impl RequestRun {
    fn new(request: &LoadRequest, served: &Served, begin: u64) -> RequestRun {
        let at: Vec<f64> = served.tokens.iter().map(|at| ms(at.0 - begin)).collect();
        let at_ms = request.at * 1e3;
        let mut gaps: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let drafts = served.drafts.as_ref();
        RequestRun {
            at_ms,
            prompt: request.prompt_tokens,
            tokens: at.len(),
            ttft_ms: at.first().copied().unwrap_or_default() - at_ms,
            end_ms: at.last().copied().unwrap_or_default(),
            gap_median_ms: gaps.get(gaps.len() / 2).copied(),
            gap_max_ms: gaps.last().copied(),
            drafted: drafts.map_or(0, |drafts| drafts.drafted),
            accepted: drafts.map_or(0, |drafts| drafts.accepted),
        }
    }
}
