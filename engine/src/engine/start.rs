//! The steps from opened settings to running actors: allocate, load, plan, run.

use std::sync::Arc;

use lapwing_actors::drive::blocking::{BlockingPool, side_by_side};
use lapwing_actors::drive::live::{Live, LiveParts};
use lapwing_actors::policy::QueuePolicy;
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_kernels::cpu::{HeadWeights, lock_packed, packed_users};
use lapwing_kernels::device::ModelId;
use lapwing_kernels::npu::OutlierCounter;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::planner::PlannerParts;

use super::draft_model::DraftModel;
use super::opened::{EngineMemory, Opened};
use super::plans::{unprepared, with_plans};
use super::prefix::{self, Prefixes};
use super::recorded::record_facts;
use super::strategies::PlacedStrategies;
use super::{Engine, Inner, cost_model, graphs, memory, require_chat};
use crate::chat::ChatTemplate;
use crate::config::{PROMPT_THREADS, Settings};
use crate::devices::build::{Built, Shared, build};
use crate::error::Error;
use crate::packed::{PackedFolder, PackedWeights};
use crate::placement::{Explainer, Placement};
use crate::rerank::{RerankError, Reranker};
use crate::tokenizer::Tokenizer;

/// Starts an engine with these settings on an open file.
pub(super) fn start(settings: Settings, file: &WeightFile) -> Result<Engine, Error> {
    require_chat::check(&settings, file)?;
    let opened = Opened::new(settings, file)?;
    opened.log_requantized();
    let memory = opened.allocate(DraftModel::open(&opened, &opened.in_place)?)?;
    // A policy or strategy that is unknown is an error before the devices take their time.
    let policy = opened.settings.queue_policy()?;
    let strategies = PlacedStrategies::new(&opened.settings, &opened.chosen)?;
    let shared = Shared { opened: &opened, memory: &memory, clock: opened.timing_clock() };
    let loaded = Loaded::new(shared)?;
    let mut plan = Plan::new(shared, strategies, &loaded.devices)?;
    let scheduled = Scheduled::new(shared, policy, &mut plan)?;
    record_facts(&opened, &plan.placement);
    run(opened, memory, loaded, plan, scheduled)
}

/// What the model's file holds: its text, and its weights on the devices.
struct Loaded {
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    reranker: Option<Reranker>,
    projection: Option<HeadWeights>,
    devices: Vec<Built>,
    packed: PackedWeights,
}

impl Loaded {
    /// Builds tokenizer, chat template and devices; side by side, unless the devices' speeds are measured with
    /// the clock.
    fn new(shared: Shared<'_>) -> Result<Loaded, Error> {
        let Opened { settings, file, rank, projection, .. } = shared.opened;
        let reranker = Reranker::read(rank.as_ref(), file)?;
        let projection = projection.as_ref().map(|head| HeadWeights::read(head, file));
        let projection = projection.transpose().map_err(RerankError::from)?;
        let folder = PackedFolder::offered(settings, file, &shared.opened.graph);
        let text = || -> Result<(Tokenizer, Option<ChatTemplate>), Error> {
            let tokenizer = Tokenizer::from_metadata(file.metadata())?;
            let template = ChatTemplate::from_metadata(file.metadata(), &tokenizer)?;
            Ok((tokenizer, template))
        };
        let (text, devices) = match shared.clock {
            Some(_) => (text(), devices(shared)),
            None => side_by_side("text", text, || devices(shared)),
        };
        let ((tokenizer, template), devices) = (text?, devices?);
        if let Some(draft) = &shared.memory.draft {
            draft.check_vocabulary(&tokenizer)?;
        }
        let mut packed = folder.map_or_else(PackedWeights::default, |folder| folder.outcome(file));
        packed.notes.extend(devices.iter().flat_map(|built| built.notes.iter().cloned()));
        Ok(Loaded { tokenizer, template, reranker, projection, devices, packed })
    }

    /// The counters of devices with int8 activations of fixed scales.
    fn outliers(&self) -> Vec<(String, OutlierCounter)> {
        let counter = |built: &Built| Some((built.info.name.clone(), built.outliers.clone()?));
        self.devices.iter().filter_map(counter).collect()
    }
}

/// Builds the devices, which share one KV cache and one buffer pool.
pub(super) fn devices(shared: Shared<'_>) -> Result<Vec<Built>, Error> {
    let each = shared.opened.chosen.devices.iter().enumerate();
    each.map(|(number, (spec, threads))| build(number, spec, threads, &shared)).collect()
}

/// How an engine computes, and what a user should know of it.
struct Plan {
    strategies: PlacedStrategies,
    explainer: Explainer,
    /// Of a full chunk.
    placement: Placement,
    notes: Vec<String>,
}

impl Plan {
    /// Finds routes that fit into the devices' memories, reads the graphs that they need, and locks weights in memory if the
    /// settings say so.
    fn new(
        shared: Shared<'_>,
        strategies: PlacedStrategies,
        devices: &[Built],
    ) -> Result<Plan, Error> {
        let Opened { settings, file, chosen, .. } = shared.opened;
        let mut explainer = explainer(shared, &strategies, devices)?;
        let mut notes: Vec<String> = Vec::new();
        notes.extend(memory::fit(shared, devices, &mut explainer)?);
        if settings.lock_weights && lock_packed(file)? == 0 {
            let none = "no weights are locked in memory: no device keeps any in host memory";
            notes.push(none.to_owned());
        }
        graphs::complete(&mut explainer, shared, devices)?;
        let placement = explainer.full_chunk(chosen.context)?;
        let has_meanwhile = explainer.meanwhile.is_some();
        notes.extend(unprepared(settings, devices, &placement, has_meanwhile));
        let PlannerParts { strategy, devices: infos, .. } = &explainer.parts;
        notes.extend(strategies.moment_note(strategy.name(), infos));
        Ok(Plan { strategies, explainer, placement, notes })
    }
}

/// Builds the planner and the description of the devices that explains its routes.
pub(super) fn explainer(
    shared: Shared<'_>,
    strategies: &PlacedStrategies,
    devices: &[Built],
) -> Result<Explainer, Error> {
    let Opened { settings, chosen, graph, .. } = shared.opened;
    let parts = PlannerParts {
        model: ModelId::default(),
        graph: Arc::clone(graph),
        devices: memory::infos(shared, devices),
        cost: cost_model::chosen(shared, devices)?,
        strategy: with_plans(strategies.choose(&settings.strategy, chosen)?, shared.opened)?,
        chunk_rows: chosen.chunk_rows,
    };
    Ok(Explainer {
        parts,
        draft: None,
        meanwhile: None,
        read_graphs: graphs::ReadGraphs::default(),
        specs: chosen.devices.iter().map(|(spec, _)| spec.clone()).collect(),
        kernels: devices.iter().map(|built| built.kernels.clone()).collect(),
        measured: settings.profile.is_some(),
        own_cost: settings.cost.is_some(),
        timed: devices.iter().map(|built| built.timed).collect(),
    })
}

/// The scheduler, and its prefixes.
struct Scheduled {
    scheduler: Scheduler,
    prefixes: Prefixes,
}

impl Scheduled {
    fn new(
        shared: Shared<'_>,
        policy: Box<dyn QueuePolicy>,
        plan: &mut Plan,
    ) -> Result<Scheduled, Error> {
        let Shared { opened, memory, .. } = shared;
        let chosen = &opened.chosen;
        let prefixes = prefix::open(shared, &mut plan.notes);
        let explainer = &plan.explainer;
        let mut scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig {
                context: chosen.context,
                sequences_max: chosen.sequences_max,
                permits: chosen.permits,
                vocab: opened.graph.vocab(),
            },
            planner: graphs::planner(explainer),
            kv: KvPages::of(&memory.kv),
            policy,
        })?;
        scheduler.set_token_gap(chosen.token_gap);
        scheduler.set_reserve(opened.settings.reserve);
        if let Some(cache) = &prefixes.cache {
            scheduler.cache_prefixes(ModelId::default(), cache.clone());
        }
        if let Some(draft) = &memory.draft {
            scheduler.add_model(draft.scheduled(&explainer.parts))?;
        }
        Ok(Scheduled { scheduler: explainer.read_graphs.told_to(scheduler), prefixes })
    }
}

/// Starts the actors.
fn run(
    opened: Opened,
    memory: EngineMemory,
    loaded: Loaded,
    plan: Plan,
    scheduled: Scheduled,
) -> Result<Engine, Error> {
    let (attention, outliers) = (opened.attention(), loaded.outliers());
    let files = [&opened.file].into_iter().chain(memory.draft.as_ref().map(|draft| &draft.file));
    let packed_users = packed_users(&files.collect::<Vec<_>>());
    let draft = memory.draft.as_ref().map(|draft| Arc::clone(&draft.graph));
    let Opened { settings, config, requantized, chosen, graph, recorder, .. } = opened;
    let live = Live::start(LiveParts {
        scheduler: scheduled.scheduler,
        devices: loaded.devices.into_iter().map(|built| built.device).collect(),
        graphs: [graph].into_iter().chain(draft).collect(),
        slots: memory.slots.clone(),
        requests_max: chosen.requests_max,
        permits: chosen.permits,
        waits: chosen.waits.clone(),
        recorder: recorder.clone(),
    })
    .map_err(Error::thread)?;
    let Loaded { tokenizer, template, reranker, projection, packed, .. } = loaded;
    let notes = packed.disk_note().into_iter().chain(plan.notes).collect();
    let inner = Inner {
        path: settings.model,
        config,
        #[cfg(feature = "structured")]
        structured: super::grammar::Structured::new(&tokenizer, template.as_ref(), &recorder),
        tokenizer,
        template,
        reranker: reranker.map(Arc::new),
        projection: projection.map(Arc::new),
        placement: plan.placement,
        explainer: plan.explainer,
        strategies: plan.strategies,
        packed,
        packed_users,
        notes,
        requantized,
        attention,
        share_kv: settings.share_kv,
        slots: memory.slots,
        kv: memory.kv,
        prefixes: scheduled.prefixes.cache,
        kept_prefixes: scheduled.prefixes.kept,
        context: chosen.context,
        chunk_rows: chosen.chunk_rows,
        permits: chosen.permits,
        sequences_max: chosen.sequences_max,
        policy: settings.policy.name().to_owned(),
        isa: chosen.isa.name(),
        draft: settings.draft,
        outliers,
        recorder,
        prompts: BlockingPool::new("prompt", PROMPT_THREADS),
        live,
    };
    Ok(Engine { inner: Arc::new(inner) })
}
