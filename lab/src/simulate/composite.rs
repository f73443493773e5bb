//! Many requests in one scenario: streams and prompts that arrive at their times, a model that drafts for them, and any strategy, with
//! the scheduler and the workers of the live engine.

use std::time::Duration;

use lapwing_actors::draft::{DraftForm, Schedule};
use lapwing_actors::policy::Urgency;
use lapwing_actors::simulate::Tokens;
use lapwing_actors::simulate::arrival::{Arrival, Drafting};
use lapwing_actors::simulate::speculation::Acceptance;
use lapwing_actors::simulate::traffic::{DraftModel, Traffic};
use lapwing_actors::simulate::virtual_engine::Rules;
use lapwing_engine::config::SEQUENCES_DEFAULT;
use lapwing_traces::{Nanos, Recording};

use super::error::SimulateError;
use super::processors::Processors;
use super::scenario::Scenario;
use super::world::Replayed;
use super::{machine, world};
use crate::load::LoadRequest;

mod outcome;
mod overlaps;
mod requests;
mod workflow;

pub use outcome::{ClientRun, CompositeRun, RequestRun};
pub use overlaps::Overlaps;
pub(crate) use requests::seconds;
pub use requests::{RequestText, requests};
pub use workflow::{Stage, Workflow, stages};

/// Many requests on the processors of a scenario.
///
/// ```
/// use lapwing::simulate::{Composite, Scenario, requests};
///
/// let mut scenario = Scenario::new("phone")?;
/// scenario.set("model", "layers=4,dim=256,ffn=512,heads=4,vocab=1000")?;
/// let composite = Composite::new(scenario, requests("2x30+20,200+1@50ms")?);
/// let run = composite.run()?;
/// assert_eq!(run.requests.len(), 3);
/// # Ok::<(), lapwing::simulate::SimulateError>(())
/// ```
#[derive(Clone)]
pub struct Composite {
    /// Processors, model, strategy and chunks. Its own prompt and answer are not used.
    pub scenario: Scenario,
    /// The requests. Each client waits for its own.
    pub requests: Vec<LoadRequest>,
    /// The model that drafts for them.
    pub draft: Option<DraftSettings>,
    /// Target of the time between two tokens of a stream.
    pub token_gap: Option<Duration>,
    /// Maximum number of requests that run at the same time, 1 to 65536; others wait.
    pub sequences: usize,
    /// What may run beside what.
    pub overlaps: Overlaps,
    /// Models of requests, and which requests precede others.
    pub workflow: Workflow,
    /// Bandwidth in GB/s beyond which a chunk waits for those in flight, unless it has rows of the request that goes first.
    pub bandwidth_limit: Option<f64>,
}

/// A model that drafts, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftSettings {
    /// Its shape, as [`Scenario::model`].
    pub model: String,
    /// Name of its device; `None`: a CPU, or the first device that computes all ops.
    pub device: Option<String>,
    /// Where its tokens are those of the target.
    pub acceptance: Acceptance,
    /// When it drafts.
    pub schedule: Schedule,
    /// Drafted tokens of a step, 1 to 15; `None`: as many as pay, as in the live engine.
    pub length: Option<usize>,
    /// How drafts depart from their usual form.
    pub form: DraftForm,
}

/// Strategies that divide nothing.
const WHOLE: [&str; 2] = ["gpu-only", "cpu-only"];

impl Composite {
    /// Requests without drafts, with everything else that may overlap.
    pub fn new(scenario: Scenario, requests: Vec<LoadRequest>) -> Composite {
        let (draft, token_gap, overlaps) = (None, None, Overlaps::ALL);
        let sequences = SEQUENCES_DEFAULT;
        let (workflow, bandwidth_limit) = (Workflow::default(), None);
        Composite {
            scenario,
            requests,
            draft,
            token_gap,
            sequences,
            overlaps,
            workflow,
            bandwidth_limit,
        }
    }

    /// Serves the requests to the end.
    ///
    /// # Errors
    /// [`SimulateError::Model`], and [`SimulateError::Run`] if the strategy does not fit or a number is impossible.
    pub fn run(&self) -> Result<CompositeRun, SimulateError> {
        self.simulate(false).map(|(run, _)| run)
    }

    /// As [`run`](Composite::run), and records the timeline.
    ///
    /// # Errors
    /// As [`run`](Composite::run).
    pub fn record(&self) -> Result<(CompositeRun, Recording), SimulateError> {
        let (run, recording) = self.simulate(true)?;
        let missing = || SimulateError::Run { reason: "the run was not recorded".to_owned() };
        Ok((run, recording.ok_or_else(missing)?))
    }

    /// Runs it with each overlap on or off, in the order of [`Overlaps::each`]. Without a draft model, drafts stay off.
    ///
    /// # Errors
    /// As [`run`](Composite::run).
    pub fn ablate(&self) -> Result<Vec<CompositeRun>, SimulateError> {
        let possible = Overlaps::each().filter(|it| self.draft.is_some() || !it.drafts);
        possible.map(|overlaps| Composite { overlaps, ..self.clone() }.run()).collect()
    }

    fn simulate(&self, record: bool) -> Result<(CompositeRun, Option<Recording>), SimulateError> {
        if self.overlaps.cuts {
            return self.simulate_with(&self.scenario, record);
        }
        // The fastest device alone.
        let mut found: Option<(CompositeRun, Option<Recording>)> = None;
        let mut reason = None;
        for strategy in WHOLE {
            let mut scenario = self.scenario.clone();
            scenario.set("strategy", strategy)?;
            match self.simulate_with(&scenario, record) {
                Ok(run) => {
                    let before = found.as_ref().map_or(f64::INFINITY, |it| it.0.makespan_ms);
                    if run.0.makespan_ms < before {
                        found = Some(run);
                    }
                }
                Err(error) => _ = reason.get_or_insert(error),
            }
        }
        let nothing = || SimulateError::Run { reason: "no device computes the model".to_owned() };
        found.ok_or_else(|| reason.unwrap_or_else(nothing))
    }

    fn simulate_with(
        &self,
        scenario: &Scenario,
        record: bool,
    ) -> Result<(CompositeRun, Option<Recording>), SimulateError> {
        let traffic = self.traffic()?;
        let edf = self.workflow.critical_first.then(|| scenario.clone().policy("edf"));
        let scenario = edf.as_ref().unwrap_or(scenario);
        let Replayed { outcome, devices, recording } = match scenario.processors() {
            Processors::Soc(soc) => world::serve(scenario, soc, &traffic, record)?,
            Processors::Machine(machine) => {
                machine::run::serve(scenario, machine, &traffic, record)?
            }
        };
        let strategy = scenario.strategy_name();
        let run = CompositeRun::new(self, strategy, &outcome, &devices);
        let recording = recording.map(|mut recording| {
            let requests = self.requests.len().to_string();
            recording.meta.insert("requests".to_owned(), requests);
            recording.meta.insert("overlaps".to_owned(), self.overlaps.to_string());
            for of_one_request in ["prompt", "decode", "verify"] {
                recording.meta.remove(of_one_request);
            }
            recording
        });
        Ok((run, recording))
    }

    fn traffic(&self) -> Result<Traffic, SimulateError> {
        let draft = match &self.draft {
            None => None,
            Some(settings) => Some(self.draft_model(settings)?),
        };
        let drafting = self.draft.as_ref().filter(|_| self.overlaps.drafts).map(|settings| {
            let DraftSettings { schedule, length, form, .. } = *settings;
            Drafting::Model { schedule, length, form }
        });
        self.workflow.check(&self.requests)?;
        let critical = self.workflow.critical_first.then(|| self.critical()).transpose()?;
        let is_first = |request: &LoadRequest| self.workflow.is_of_first_model(&request.client);
        let drafts = drafting.is_some() && self.requests.iter().any(is_first);
        let numbers = self.workflow.numbers(1 + usize::from(drafts));
        let arrival = |((number, request), after): ((usize, &LoadRequest), Vec<usize>)| {
            let at = Nanos((request.at * 1e9).round() as u64);
            let ids = vec![Tokens::of_request(number); request.prompt_tokens];
            let priority = critical.as_ref().map_or(request.priority, |of| of[number]);
            let model = numbers.get(&*request.client).copied();
            Arrival {
                after,
                model: model.unwrap_or_default(),
                client: request.client.as_str().into(),
                urgency: Urgency { priority, ..request.urgency() },
                drafting: drafting.filter(|_| model.is_none()),
                ..Arrival::new(at, ids, request.output_tokens)
            }
        };
        let requests = self.requests.iter().enumerate();
        let arrivals = requests.zip(self.workflow.preceding(&self.requests)).map(arrival);
        Ok(Traffic {
            arrivals: arrivals.collect(),
            sequences_max: self.sequences,
            rules: Rules {
                token_gap: self.token_gap,
                keeps_apart: !self.overlaps.prompts,
                has_graphs: true,
                bandwidth_limit: self.bandwidth_limit,
                ..Rules::default()
            },
            draft,
            others: self.workflow.others(&self.scenario)?,
        })
    }

    fn draft_model(&self, settings: &DraftSettings) -> Result<DraftModel, SimulateError> {
        let DraftSettings { model, device, acceptance, length, .. } = settings;
        if length.is_some_and(|length| !(1..=15).contains(&length)) {
            return Err(SimulateError::BadValue {
                key: "draft-length".to_owned(),
                value: length.unwrap_or_default().to_string(),
                expected: "it must be from 1 to 15".to_owned(),
            });
        }
        let mut scenario = self.scenario.clone();
        scenario.model.clone_from(model);
        let (device, acceptance) = (device.clone(), acceptance.clone());
        Ok(DraftModel { model: world::soc_model(&scenario)?, device, acceptance })
    }
}

#[cfg(test)]
mod tests;
