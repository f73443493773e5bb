//! What requests did in a composite run.

use std::collections::BTreeMap;

use lapwing_actors::simulate::arrival::Served;
use lapwing_actors::simulate::traffic::TrafficOutcome;
use lapwing_traces::analysis::WorkSet;
use lapwing_traces::report::Percentiles;
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
    /// By set of kinds of work, as in `draft+verify+prompt`: share of the makespan during which at least one stage of each kind ran, each on
    /// a device of its own, as [`TogetherReport::concurrent`](lapwing_traces::report::TogetherReport::concurrent) of its timeline.
    pub concurrent: BTreeMap<String, f64>,
    /// Each client with a name.
    pub clients: BTreeMap<String, ClientRun>,
    /// Each request, in order of arrival.
    pub requests: Vec<RequestRun>,
    /// Each device, in order of their names.
    pub devices: Vec<DeviceUse>,
}

/// What became of the requests of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClientRun {
    /// From arrivals to first tokens, in ms.
    pub ttft_ms: Percentiles,
    /// From arrivals to last tokens, in ms.
    pub response_ms: Percentiles,
    /// The same for each token of prompt and answer, in ms.
    pub response_per_token_ms: Percentiles,
}

/// What became of a request. Times are in ms from the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RequestRun {
    /// Client that sent it; empty without a name.
    pub client: String,
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
    /// The [share](CompositeRun::concurrent) of a set of kinds of work.
    pub fn share(&self, set: WorkSet) -> f64 {
        self.concurrent.get(&set.name()).copied().unwrap_or_default()
    }

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
        let share = |set| outcome.concurrent(set) as f64 / outcome.makespan().max(1) as f64;
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
            concurrent: WorkSet::all().map(|set| (set.name(), share(set))).collect(),
            clients: ClientRun::all(&requests),
            requests,
            devices,
        }
    }
}

impl ClientRun {
    fn all(requests: &[RequestRun]) -> BTreeMap<String, ClientRun> {
        let mut of_clients: BTreeMap<&String, Vec<&RequestRun>> = BTreeMap::new();
        for request in requests.iter().filter(|request| !request.client.is_empty()) {
            of_clients.entry(&request.client).or_default().push(request);
        }
        let named = of_clients.into_iter();
        named.map(|(name, requests)| (name.clone(), ClientRun::new(&requests))).collect()
    }

    fn new(requests: &[&RequestRun]) -> ClientRun {
        let each = || requests.iter().copied();
        let response = |request: &RequestRun| request.end_ms - request.at_ms;
        let tokens = |request: &RequestRun| (request.prompt + request.tokens) as f64;
        ClientRun {
            ttft_ms: Percentiles::of(each().map(|request| request.ttft_ms)),
            response_ms: Percentiles::of(each().map(response)),
            response_per_token_ms: Percentiles::of(
                each().map(|request| response(request) / tokens(request)),
            ),
        }
    }
}

impl RequestRun {
    fn new(request: &LoadRequest, served: &Served, begin: u64) -> RequestRun {
        let at: Vec<f64> = served.tokens.iter().map(|at| ms(at.0 - begin)).collect();
        let at_ms = ms(served.arrived.0 - begin);
        let mut gaps: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let drafts = served.drafts.as_ref();
        RequestRun {
            client: request.client.clone(),
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
