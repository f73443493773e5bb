//! Workflows: which model the requests of a client are for, and which requests precede them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use lapwing_actors::simulate::traffic::OtherModel;
use lapwing_kernels::device::ModelId;

use super::Composite;
use crate::load::LoadRequest;
use crate::simulate::error::SimulateError;
use crate::simulate::scenario::Scenario;
use crate::simulate::world;

/// Stages that follow each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workflow {
    /// What clients need. Those without a stage ask the scenario's model, and wait for no others.
    pub stages: Vec<Stage>,
    /// Whether the requests go first that begin the longest chain of requests, by their times alone; the queue policy is then `edf`. Priorities
    /// of requests are replaced.
    pub critical_first: bool,
}

/// What the requests of a client need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// The client.
    pub client: String,
    /// Shape of their model, as [`Scenario::model`](crate::simulate::Scenario::model); `None`: the scenario's model.
    pub model: Option<String>,
    /// Name of the device that computes all of that model; `None`: as the scenario's strategy chooses.
    pub device: Option<String>,
    /// Clients whose requests have all ended when those of this one arrive.
    pub after: Vec<String>,
}

/// Reads stages: `NAME[=SHAPE[@DEVICE]][>NAME+NAME]`, separated by spaces, such as `draft=qwen2-1.5b@cpu answer>draft+search`.
///
/// # Errors
/// [`SimulateError::BadValue`] with the stage that is wrong.
pub fn stages(text: &str) -> Result<Vec<Stage>, SimulateError> {
    text.split_whitespace().map(stage).collect()
}

fn wrong(value: &str, expected: &str) -> SimulateError {
    let (key, value) = ("stages".to_owned(), value.to_owned());
    SimulateError::BadValue { key, value, expected: expected.to_owned() }
}

fn stage(text: &str) -> Result<Stage, SimulateError> {
    let (own, after) = match text.split_once('>') {
        None => (text, Vec::new()),
        Some((own, after)) => (own, after.split('+').map(str::to_owned).collect()),
    };
    let (client, model) = match own.split_once('=') {
        None => (own, None),
        Some((client, model)) => (client, Some(model)),
    };
    let (model, device) = match model.map(|model| (model, model.rsplit_once('@'))) {
        None => (None, None),
        Some((model, None)) => (Some(model), None),
        Some((_, Some((model, device)))) => (Some(model), Some(device)),
    };
    let given = |text: Option<&str>| text.is_none_or(|text| !text.is_empty());
    let names = || after.iter().chain([&client.to_owned()]).all(|name| !name.is_empty());
    if !names() || client.contains('@') || !given(model) || !given(device) {
        let expected = "it must be NAME[=SHAPE[@DEVICE]][>NAME+NAME], separated by spaces, as in draft=qwen2-1.5b@cpu answer>draft";
        return Err(wrong(text, expected));
    }
    let [model, device] = [model, device].map(|text| text.map(str::to_owned));
    Ok(Stage { client: client.to_owned(), model, device, after })
}

impl Workflow {
    /// The stage of a client, if it has one.
    fn stage(&self, client: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.client == client)
    }

    /// Whether a client asks the scenario's model.
    pub(super) fn is_of_first_model(&self, client: &str) -> bool {
        self.stage(client).is_none_or(|stage| stage.model.is_none())
    }

    /// Checks that clients have one stage each, and that all that is named is there.
    pub(super) fn check(&self, requests: &[LoadRequest]) -> Result<(), SimulateError> {
        for (at, stage) in self.stages.iter().enumerate() {
            let is_named = |name: &String| requests.iter().any(|request| request.client == *name);
            if self.stages[..at].iter().any(|before| before.client == stage.client) {
                return Err(wrong(&stage.client, "a client has one stage"));
            }
            let mut names = stage.after.iter().chain([&stage.client]);
            if let Some(name) = names.find(|name| !is_named(name)) {
                return Err(wrong(name, "it must be the name of requests"));
            }
        }
        Ok(())
    }

    /// For each request the numbers of those that precede it.
    pub(super) fn preceding(&self, requests: &[LoadRequest]) -> Vec<Vec<usize>> {
        let of = |request: &LoadRequest| {
            let after = self.stage(&request.client).map_or(&[][..], |stage| &stage.after);
            let precedes = |at: &usize| after.contains(&requests[*at].client);
            (0..requests.len()).filter(precedes).collect()
        };
        requests.iter().map(of).collect()
    }

    /// Models of stages with their devices, each once.
    fn models(&self) -> Vec<(&String, &Option<String>)> {
        let mut models = Vec::new();
        for Stage { model, device, .. } in &self.stages {
            let own = model.as_ref().map(|model| (model, device));
            models.extend(own.filter(|own| !models.contains(own)));
        }
        models
    }

    /// Numbers of the models of clients that have a stage with a model; `first` is that of the first one.
    pub(super) fn numbers(&self, first: usize) -> HashMap<&str, ModelId> {
        let models = self.models();
        let number = |stage: &Stage| {
            let model = stage.model.as_ref()?;
            let at = models.iter().position(|own| *own == (model, &stage.device))?;
            Some(ModelId(first + at))
        };
        let named = self.stages.iter();
        named.filter_map(|stage| Some((&*stage.client, number(stage)?))).collect()
    }

    /// The models beside that of the scenario.
    pub(super) fn others(&self, scenario: &Scenario) -> Result<Vec<OtherModel>, SimulateError> {
        let mut others = Vec::new();
        for (model, device) in self.models() {
            let mut scenario = scenario.clone();
            scenario.model.clone_from(model);
            let model = world::soc_model(&scenario)?;
            others.push(OtherModel { model, device: device.clone() });
        }
        Ok(others)
    }
}

impl Composite {
    /// Priorities by which the requests go first that begin the longest chain of requests: the time of the chain in ms, and 1 at least.
    pub(super) fn critical(&self) -> Result<Vec<i32>, SimulateError> {
        let mut alone = HashMap::new();
        for request in &self.requests {
            let key = (&request.client, request.prompt_tokens, request.output_tokens);
            if let Entry::Vacant(entry) = alone.entry(key) {
                entry.insert(self.alone(request)?);
            }
        }
        let own = |request: &LoadRequest| {
            alone[&(&request.client, request.prompt_tokens, request.output_tokens)]
        };
        let preceding = self.workflow.preceding(&self.requests);
        let mut chains: Vec<f64> = self.requests.iter().map(own).collect();
        // A chain has no more requests than there are.
        for _ in 0..self.requests.len() {
            let before = chains.clone();
            for (at, all) in preceding.iter().enumerate() {
                for earlier in all {
                    let through = own(&self.requests[*earlier]) + before[at];
                    chains[*earlier] = chains[*earlier].max(through);
                }
            }
            if before == chains {
                break;
            }
        }
        Ok(chains.into_iter().map(|ms| (ms.ceil() as i32).max(1)).collect())
    }

    /// Time of a request alone, in ms.
    fn alone(&self, request: &LoadRequest) -> Result<f64, SimulateError> {
        let stage = self.workflow.stage(&request.client);
        let stages = stage.map(|stage| Stage { after: Vec::new(), ..stage.clone() });
        let workflow = Workflow { stages: stages.into_iter().collect(), critical_first: false };
        let requests = vec![LoadRequest { at: 0.0, ..request.clone() }];
        Ok(Composite { requests, workflow, ..self.clone() }.run()?.makespan_ms)
    }
}

#[cfg(test)]
mod tests;
