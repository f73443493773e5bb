//! What a model needs and how fast it runs, from its header.

mod bound;
mod needs;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::measure::MeasureProgress;
use lapwing_kernels::device::{DeviceInfo, ModelId};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::model::{Model, ModelPart};
use lapwing_plan::Phase;
use lapwing_plan::planner::PlannerParts;
use lapwing_plan::predict::{Workload, alone, plan, predict_warm};
use lapwing_plan::strategy::ChunkShape;

use self::bound::{Bound, Times};
use super::EngineBuilder;
use super::draft_model::{self, DraftNeed};
use super::memory;
use super::strategies::PlacedStrategies;
use crate::config::{Chosen, Settings, StrategyChoice};
use crate::devices::DeviceSpec;
use crate::error::Error;
use crate::fit::{Fit, FitOptions, ModelHeader, Speed, free_memory};

/// A model as it would be with an engine's settings, without its weights.
struct Subject<'a> {
    settings: &'a Settings,
    header: &'a ModelHeader,
    chosen: Chosen,
    graph: Arc<Graph>,
    /// The layer of the file that drafts by default, and the number of its device.
    layer: Option<(DraftNeed, usize)>,
    trained_context: usize,
    /// Bytes of memory that can be taken, if that is known.
    free: Option<u64>,
}

/// What is known of a device that was bound to the stand-in.
struct Device {
    spec: DeviceSpec,
    info: DeviceInfo,
    /// Bytes of its own memory, if it has any.
    capacity: Option<u64>,
}

impl Device {
    /// Its description, with the room in its memory for the cache of these settings.
    fn info(&self, chosen: &Chosen) -> DeviceInfo {
        memory::with_room(self.info.clone(), self.capacity, 0, chosen)
    }
}

impl EngineBuilder {
    /// What the model of a header needs with these settings, and how fast it would run on the devices. The model itself need not
    /// be on this machine, and [`model`](EngineBuilder::model) is not used. Takes a few seconds, in which the devices are measured
    /// (see [`fit`](crate::fit)), and at most about as much memory as 1 GiB of the model's weights. `progress` is called before each
    /// measurement and may cancel.
    ///
    /// # Errors
    /// When the model is not supported, which [`Error::is_unsupported`] tells from the others; when a setting is invalid, a device
    /// fails or is not there, or `progress` cancels. That the model does not fit is no error.
    pub fn fit_here(
        &self,
        header: &ModelHeader,
        options: &FitOptions,
        progress: &mut dyn FnMut(&MeasureProgress<'_>) -> ControlFlow<()>,
    ) -> Result<Fit, Error> {
        let subject = Subject::new(&self.settings, header)?;
        let bound = Bound::new(&subject)?;
        let devices = bound.devices();
        let Times { cost, rates, sampling, mut notes } =
            bound.times(&subject, options.limits, progress)?;
        let Subject { settings, chosen, graph, .. } = &subject;
        let strategies = PlacedStrategies::new(settings, chosen)?;
        let mut parts = PlannerParts {
            model: ModelId::default(),
            graph: Arc::clone(graph),
            devices: devices.iter().map(|device| device.info(chosen)).collect(),
            cost,
            strategy: strategies.choose(&settings.strategy, chosen)?,
            chunk_rows: chosen.chunk_rows,
        };
        let may_split =
            matches!(settings.strategy, StrategyChoice::Suitable) && settings.places.is_empty();
        let capacities: Vec<Option<u64>> = devices.iter().map(|device| device.capacity).collect();
        let chosen_by_caller = Arc::clone(&parts.strategy);
        match memory::fit_capacities(&capacities, &mut parts, chosen, may_split) {
            Ok(note) => notes.extend(note),
            // That it does not fit is in the numbers.
            Err(error) if error.plan_error().is_none() => parts.strategy = chosen_by_caller,
            Err(error) => return Err(error),
        }
        let (memory, largest_context) = subject.memory(&devices, &parts)?;
        if subject.layer.is_some() {
            let layer = "the memory has room for the layer of the file that drafts by default (--draft none leaves it out)";
            notes.push(layer.to_owned());
        }
        Ok(Fit {
            devices: devices.into_iter().map(|device| device.spec.name).collect(),
            strategy: parts.strategy.name().to_owned(),
            context: chosen.context,
            trained_context: subject.trained_context,
            largest_context,
            memory,
            speed: speed(&parts, chosen, options.prompt)?.with_sampling(sampling),
            rates,
            notes,
        })
    }
}

impl<'a> Subject<'a> {
    fn new(settings: &'a Settings, header: &'a ModelHeader) -> Result<Subject<'a>, Error> {
        if settings.cost.is_some() {
            let expected = "not set for `fit_here`, which measures the devices; leave it out";
            return Err(Error::config("cost_model", "a model of the program's own", expected));
        }
        if settings.draft.draft_model().is_some() {
            let expected = "none for `fit_here`, which knows no draft model; leave it out";
            return Err(Error::config("draft", settings.draft.name(), expected));
        }
        header.supported()?;
        let model = settings.changed(Model::from_header(&header.gguf)?)?.0;
        let chosen = settings.choose(&model.config)?;
        let graph = Arc::new(model.graph.with_kv(chosen.layout.clone()));
        let layer = layer_of(settings, header, &graph, &chosen);
        let (trained_context, free) = (model.config.context, free_memory());
        Ok(Subject { settings, header, graph, layer, trained_context, chosen, free })
    }
}

/// What the layer of a file needs that drafts by default, and the number of its device; `None` if there is none, no device can run it,
/// or it has no room.
fn layer_of(
    settings: &Settings,
    header: &ModelHeader,
    target: &Graph,
    chosen: &Chosen,
) -> Option<(DraftNeed, usize)> {
    let choice = settings.draft.layer_of_file()?;
    let mut layer = Model::part_of_header(&header.gguf, ModelPart::Predictor).ok()?;
    let device = draft_model::device(choice, chosen).ok()?;
    if let Some(form) = settings.requant {
        layer.graph.requantize(form);
    }
    let need = DraftNeed::new(&layer, choice, target, chosen, settings.kv);
    need.has_room_beside(target).then_some((need, device))
}

/// Predicted times of a prompt, of the step behind it, and of the last step of the context.
fn speed(parts: &PlannerParts, chosen: &Chosen, prompt: usize) -> Result<Speed, Error> {
    let (input, strategy, permits) = (parts.input(), &*parts.strategy, chosen.permits);
    let last = chosen.context.saturating_sub(1);
    let prompt = prompt.min(last).max(1);
    let work = Workload { prompt, context: 0, in_flight: permits };
    let chunks = plan(strategy, &input, work)?;
    let first_token = predict_warm(&input, &chunks, permits).makespan;
    let step = |context: usize| -> Result<Option<Duration>, Error> {
        if chosen.is_encoder {
            return Ok(None);
        }
        let (phase, rows, selected) = (Phase::Decode, 1, 1);
        let shape = ChunkShape { phase, rows, selected, context, prompt: 0 };
        let route = strategy.route(&input, &shape)?;
        Ok(Some(alone(&input, &shape, &route).makespan))
    };
    Ok(Speed { prompt, first_token, step: step(0)?, step_at_context: step(last)? })
}

impl Speed {
    /// With so much more time for each token that is chosen. An encoder chooses none.
    fn with_sampling(self, time: Duration) -> Speed {
        let Speed { prompt, first_token, step, step_at_context } = self;
        let [step, step_at_context] = [step, step_at_context].map(|step| Some(step? + time));
        let first_token = if step.is_some() { first_token + time } else { first_token };
        Speed { prompt, first_token, step, step_at_context }
    }
}

#[cfg(test)]
mod tests;
