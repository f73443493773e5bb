//! Solves an engine's plans and prepares its graphs without starting it.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use lapwing_actors::RunError;
use lapwing_kernels::device::{DeviceError, GraphKey};
use lapwing_plan::planner::PlannerParts;
use lapwing_plan::plans::{Plans, PlansSubject};
use lapwing_plan::strategy::ChunkShape;
use lapwing_plan::{DeviceId, Phase, PlanError, Route};
use lapwing_traces::{Clock, OsClock};

use super::builder::EngineBuilder;
use super::draft_model::DraftModel;
use super::memory;
use super::opened::{EngineMemory, Opened};
use super::plans::subject;
use super::start::{devices, explainer};
use super::strategies::PlacedStrategies;
use crate::devices::InPlace;
use crate::devices::build::{Built, Shared};
use crate::error::Error;
use crate::packed::PackedFolder;
use crate::prepare::{Preparation, PrepareOptions, PrepareProgress, PreparedDevice};

impl EngineBuilder {
    /// Takes routes from plans of [`prepare_blocking`](EngineBuilder::prepare_blocking), which takes no time. What they lack is
    /// solved when it is first needed. The engine cannot be built if they are for something else
    /// ([`plans_subject`](EngineBuilder::plans_subject)).
    pub fn plans(mut self, plans: Plans) -> EngineBuilder {
        self.settings.plans = Some(Arc::new(plans));
        self
    }

    /// What the plans of this engine depend on.
    ///
    /// # Errors
    /// When the model cannot be read, a setting is invalid, or an OpenCL device is not there.
    pub fn plans_subject(&self) -> Result<PlansSubject, Error> {
        self.settings.check_stored_plans()?;
        Ok(subject(&self.opened()?))
    }

    /// Solves the plans of prompts and decode steps, and prepares and checks every graph that they need, where its device keeps
    /// graphs on disk ([`packed_cache`](EngineBuilder::packed_cache)). An engine that is built with these plans compiles and
    /// solves nothing for such prompts. What is there already, in the builder's [`plans`](EngineBuilder::plans) or on disk, is
    /// not made again. `progress` is called before each graph and may cancel; graphs that are done stay. A draft model needs no
    /// plans and no graphs; its memory counts where layers are fitted into that of a device.
    ///
    /// # Errors
    /// When the model cannot be read, a setting is invalid, the strategy finds no route, a device refuses a graph, or
    /// `progress` cancels.
    pub fn prepare_blocking(
        self,
        options: &PrepareOptions,
        progress: &mut dyn FnMut(&PrepareProgress<'_>) -> ControlFlow<()>,
    ) -> Result<Preparation, Error> {
        self.settings.check_stored_plans()?;
        let opened = self.opened()?;
        let memory = opened.allocate(None)?;
        let Opened { settings, file, chosen, .. } = &opened;
        let strategies = PlacedStrategies::new(settings, chosen)?;
        let folder = PackedFolder::offered(settings, file, &opened.graph);
        let shared = Shared { opened: &opened, memory: &memory, clock: opened.timing_clock() };
        let built = devices(shared)?;
        _ = folder.map(|folder| folder.outcome(file));
        let mut explainer = explainer(shared, &strategies, &built)?;
        // The draft model is only counted, so its cache need not lie where the device uses it.
        let draft = DraftModel::open(&opened, &InPlace::default())?;
        let beside =
            EngineMemory { draft, slots: memory.slots.clone(), kv: Arc::clone(&memory.kv) };
        memory::fit(Shared { memory: &beside, ..shared }, &built, &mut explainer)?;
        drop(beside);

        let clock = OsClock::start();
        let known = settings.plans.as_ref().map(|plans| (**plans).clone());
        let mut plans = known.unwrap_or_else(|| Plans::new(subject(&opened)));
        let before = plans.routes();
        let prompts: Vec<usize> = options
            .prompts
            .iter()
            .copied()
            .filter(|rows| (1..=chosen.context).contains(rows))
            .collect();
        let decode_rows = options.decode_rows.min(chosen.sequences_max);
        let routes = solve(&mut plans, &explainer.parts, &prompts, decode_rows, chosen.context)?;
        let (solved, planning) = (plans.routes() - before, clock.now().since(Default::default()));
        let devices = built.iter().enumerate().filter(|(_, built)| built.info.is_static());
        let devices = devices.map(|(device, built)| {
            prepared(built, &graphs(&routes, DeviceId(device)), &clock, progress)
        });
        let devices = devices.collect::<Result<_, Error>>()?;
        Ok(Preparation { plans, prompts, decode_rows, solved, planning, devices })
    }
}

/// Adds the routes of prompts, and of the decode steps that follow them.
fn solve(
    plans: &mut Plans,
    parts: &PlannerParts,
    prompts: &[usize],
    decode_rows: usize,
    context_max: usize,
) -> Result<Vec<Arc<Route>>, PlanError> {
    let (strategy, input) = (&*parts.strategy, parts.input());
    let mut routes = Vec::new();
    let mut contexts = Vec::new();
    for prompt in prompts {
        routes.extend(plans.add_prompt(strategy, &input, *prompt)?);
        contexts.extend([*prompt, prompt + 1].map(|context| context.min(context_max)));
    }
    for context in contexts {
        for rows in 1..=decode_rows {
            let (phase, selected) = (Phase::Decode, rows);
            let shape = ChunkShape { phase, rows, selected, context, prompt: 0 };
            routes.push(plans.add(strategy, &input, &shape)?);
        }
    }
    Ok(routes)
}

/// The graphs of routes on a device, each once.
fn graphs(routes: &[Arc<Route>], device: DeviceId) -> Vec<GraphKey> {
    let (mut keys, mut known) = (Vec::new(), HashSet::new());
    for route in routes {
        for stage in route.compute_stages() {
            for part in stage.parts.iter().filter(|part| part.device == device) {
                let graphs = stage.graphs(route.model, &part.part);
                keys.extend(graphs.filter(|key| known.insert(key.clone())));
            }
        }
    }
    keys
}

/// Prepares the graphs of a device that are not on disk.
fn prepared(
    built: &Built,
    keys: &[GraphKey],
    clock: &OsClock,
    progress: &mut dyn FnMut(&PrepareProgress<'_>) -> ControlFlow<()>,
) -> Result<PreparedDevice, Error> {
    let (device, begin) = (built.info.name.clone(), clock.now());
    let preparer = built.device.device.preparer().filter(|preparer| preparer.keeps_graphs());
    let mut result = PreparedDevice {
        device,
        keeps: preparer.is_some(),
        graphs: keys.len(),
        prepared: 0,
        kept: 0,
        time: Default::default(),
    };
    let Some(mut preparer) = preparer else { return Ok(result) };
    for (done, key) in keys.iter().enumerate() {
        let step = PrepareProgress { device: &result.device, done, of: keys.len() };
        if progress(&step).is_break() {
            return Err(Error::preparation_cancelled());
        }
        if !preparer.is_kept(key) {
            let failed = |error: DeviceError| RunError::Device {
                device: result.device.clone(),
                reason: error.to_string(),
            };
            let begin = clock.now();
            let made = preparer.prepare(std::slice::from_ref(key), &[], &mut ()).map_err(failed)?;
            preparer.took(&made, clock.now().since(begin));
            result.prepared += 1;
        }
    }
    // A full folder drops the graphs that were written first.
    result.kept = match result.prepared {
        0 => keys.len(),
        _ => keys.iter().filter(|key| preparer.is_kept(key)).count(),
    };
    result.time = clock.now().since(begin);
    Ok(result)
}
