//! Scenarios like `lapwing simulate`: one request, or many with drafts and cuts.

use std::collections::BTreeSet;
use std::time::Duration;

use lapwing_actors::draft::{DraftForm, Schedule};
use lapwing_actors::policy::PolicyChoice;
use lapwing_actors::simulate::speculation::Acceptance;

use super::numbers::Numbers;
use super::subject::{
    DEFAULT_SOC, Misfit, Places, Subject, bad, length, rates, read, set_form, switch,
};
use crate::load::LoadRequest;
use crate::simulate::labels::setting_label;
use crate::simulate::{
    Axis, Composite, DraftSettings, Overlaps, RequestText, SETTINGS, Scenario, SimulateError,
    Workflow, seconds, stages,
};

/// One request on modelled processors, or many.
#[derive(Clone)]
pub(super) struct Phone {
    places: Places,
    scenario: Scenario,
    requests: Option<Requests>,
    draft: Option<Draft>,
    token_gap: Option<Duration>,
    sequences: Option<usize>,
    overlaps: Overlaps,
    workflow: Workflow,
    bandwidth_limit: Option<f64>,
    /// Keys that are set.
    given: BTreeSet<String>,
}

/// Where requests come from.
#[derive(Clone, Debug)]
enum Requests {
    Text(RequestText),
    Trace(Vec<LoadRequest>),
}

/// The draft model.
#[derive(Clone, Debug)]
struct Draft {
    model: String,
    device: Option<String>,
    rates: Vec<f64>,
    schedule: Schedule,
    length: Option<usize>,
    form: DraftForm,
}

impl Default for Draft {
    fn default() -> Draft {
        Draft {
            model: String::new(),
            device: None,
            rates: vec![0.8],
            schedule: Schedule::Asynchronous,
            length: None,
            form: DraftForm::default(),
        }
    }
}

/// Keys of one request only.
const OF_ONE: [&str; 3] = ["prompt", "decode", "verify"];
/// Keys of many requests, apart from those that need a draft model.
const OF_MANY: [&str; 8] = [
    "requests",
    "token-gap",
    "sequences",
    "without",
    "draft",
    "stages",
    "critical-first",
    "bandwidth-limit",
];
/// Keys of many requests that need a draft model.
const OF_DRAFTS: [&str; 7] = [
    "draft-device",
    "acceptance",
    "schedule",
    "draft-length",
    "sync-bonus-pass",
    "pre-verify",
    "post-verify",
];

impl Phone {
    pub(super) fn new(places: &Places) -> Result<Phone, SimulateError> {
        Ok(Phone {
            places: places.clone(),
            scenario: Scenario::new(DEFAULT_SOC)?,
            requests: None,
            draft: None,
            token_gap: None,
            sequences: None,
            overlaps: Overlaps::ALL,
            workflow: Workflow::default(),
            bandwidth_limit: None,
            given: BTreeSet::new(),
        })
    }

    /// Text of a model that a scenario finds.
    fn model(&self, text: &str) -> Result<String, SimulateError> {
        let mut scenario = self.scenario.clone();
        text.clone_into(&mut scenario.model);
        if scenario.check_model().is_err()
            && let Some(path) = self.places.model(text)
        {
            scenario.model = path.display().to_string();
        }
        scenario.check_model().map(|()| scenario.model)
    }

    fn set_soc(&mut self, value: &str) -> Result<(), SimulateError> {
        match value.ends_with(".toml") {
            false => self.scenario.set("soc", value),
            true => {
                let path = self.places.path(value).display().to_string();
                self.scenario.set("soc", &path)
            }
        }
    }

    fn set_of_many(&mut self, key: &str, value: &str) -> Result<(), SimulateError> {
        match key {
            "requests" => {
                self.requests = Some(match self.places.path(value).is_file() {
                    true => Requests::Trace(self.places.trace(key, value)?),
                    false => Requests::Text(value.parse()?),
                });
            }
            "sequences" => {
                let count =
                    value.parse().ok().filter(|count: &usize| (1..=1 << 16).contains(count));
                let expected = "it must be from 1 to 65536";
                self.sequences = Some(count.ok_or_else(|| bad(key, value, expected))?);
            }
            "token-gap" => {
                let gap = seconds(value).and_then(|it| Duration::try_from_secs_f64(it).ok());
                let gap = gap.filter(|gap| !gap.is_zero());
                self.token_gap =
                    Some(gap.ok_or_else(|| bad(key, value, "it must be a time, as in 250ms"))?);
            }
            "without" => {
                let expected =
                    "it must be nothing, or prompts, drafts and cuts with + between them";
                let overlaps = Overlaps::without(value);
                self.overlaps = overlaps.ok_or_else(|| bad(key, value, expected))?;
            }
            "stages" => self.workflow.stages = stages(value)?,
            "critical-first" => self.workflow.critical_first = switch(key, value)?,
            "bandwidth-limit" => {
                let limit = value.parse().ok().filter(|limit: &f64| *limit > 0.0);
                let expected = "it must be a number of GB/s above 0, or inf for none";
                self.bandwidth_limit = Some(limit.ok_or_else(|| bad(key, value, expected))?);
            }
            _ => {
                let model = if key == "draft" { self.model(value)? } else { String::new() };
                let draft = self.draft.get_or_insert_default();
                match key {
                    "draft" => draft.model = model,
                    "draft-device" => draft.device = Some(value.to_owned()),
                    "acceptance" => draft.rates = rates(key, value)?,
                    "schedule" => draft.schedule = read(key, value, "it must be sync or async")?,
                    "draft-length" => draft.length = length(key, value)?,
                    _ => set_form(&mut draft.form, key, value)?,
                }
            }
        }
        Ok(())
    }

    fn draft_settings(&self) -> Option<DraftSettings> {
        let draft = self.draft.as_ref()?;
        let seed = self.scenario.seed;
        let acceptance = match draft.rates[..] {
            [rate] => Acceptance::Independent { rate, seed },
            _ => Acceptance::ByPosition { rates: draft.rates.as_slice().into(), seed },
        };
        Some(DraftSettings {
            model: draft.model.clone(),
            device: draft.device.clone(),
            acceptance,
            schedule: draft.schedule,
            length: draft.length,
            form: draft.form,
        })
    }

    /// A given key of these.
    fn first_given(&self, of: &[&'static str]) -> Option<&'static str> {
        of.iter().copied().find(|key| self.given.contains(*key))
    }
}

/// Whether a key is about many requests.
fn is_of_many(key: &str) -> bool {
    OF_MANY.contains(&key) || OF_DRAFTS.contains(&key)
}

impl Subject for Phone {
    fn keys(&self) -> Vec<String> {
        let numbers = self.scenario.processors().numbers();
        let known = SETTINGS.into_iter().chain(OF_MANY).chain(OF_DRAFTS).chain(["policy"]);
        known.map(str::to_owned).chain(numbers.into_iter().map(|(key, _)| key)).collect()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SimulateError> {
        match key {
            "soc" => self.set_soc(value)?,
            "model" => {
                let model = self.model(value)?;
                self.scenario.set(key, &model)?;
            }
            "policy" => {
                let policy = PolicyChoice::from(value);
                policy.make().map_err(|error| bad(key, value, error.to_string()))?;
                self.scenario = self.scenario.clone().policy(policy);
            }
            _ if is_of_many(key) => self.set_of_many(key, value)?,
            _ => self.scenario.set(key, value)?,
        }
        self.given.insert(key.to_owned());
        Ok(())
    }

    fn check(&self) -> Result<(), Misfit> {
        let wrong = |key: &str, reason: &str| Err(Misfit::new(key, reason));
        let of_many = self.first_given(&OF_MANY).or_else(|| self.first_given(&OF_DRAFTS));
        match (&self.requests, self.first_given(&OF_ONE), of_many) {
            (Some(_), Some(key), _) => {
                return wrong(key, "with 'requests', each request has its own lengths; remove it");
            }
            (None, _, Some(key)) => {
                return wrong(key, "it needs 'requests', as in requests = \"2x30+150,860+1@1s\"");
            }
            _ => {}
        }
        match self.first_given(&OF_DRAFTS).filter(|_| !self.given.contains("draft")) {
            Some(key) => wrong(key, "it needs 'draft', the shape of the draft model"),
            None => Ok(()),
        }
    }

    fn run(&self) -> Result<Numbers, SimulateError> {
        let requests = match &self.requests {
            None => return self.scenario.run().map(|run| Numbers::of(&run)),
            Some(Requests::Text(text)) => text.requests(self.scenario.seed),
            Some(Requests::Trace(requests)) => requests.clone(),
        };
        let composite = Composite::new(self.scenario.clone(), requests);
        let (token_gap, overlaps) = (self.token_gap, self.overlaps);
        let sequences = self.sequences.unwrap_or(composite.sequences);
        let draft = self.draft_settings();
        let (workflow, bandwidth_limit) = (self.workflow.clone(), self.bandwidth_limit);
        let composite = Composite { workflow, bandwidth_limit, ..composite };
        let composite = Composite { draft, token_gap, sequences, overlaps, ..composite };
        composite.run().map(|run| Numbers::of(&run))
    }

    fn copy(&self) -> Box<dyn Subject> {
        Box::new(self.clone())
    }

    fn figures(&self) -> &'static [&'static str] {
        match self.requests {
            None => &["prefill_tokens_per_second", "decode_tokens_per_second"],
            Some(_) => &["makespan_ms", "ttft_max_ms", "gap_max_ms"],
        }
    }

    fn preset(&self, soc: &str) -> Result<Option<String>, SimulateError> {
        let mut plain = Phone::new(&self.places)?;
        plain.set_soc(soc)?;
        plain.scenario.processors().to_toml().map(Some)
    }

    fn files<'a>(&self, key: &str, value: &'a str) -> Vec<&'a str> {
        if key == "requests" { vec![value] } else { Vec::new() }
    }

    fn label(&self, axis: &Axis) -> String {
        match is_of_many(&axis.key) {
            true => setting_label(&axis.key, &self.scenario).replace('-', " "),
            false => axis.label(&self.scenario),
        }
    }
}
