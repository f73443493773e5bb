//! Builds the running actors from the settings.

use std::sync::Arc;

use lapwing_actors::drive::blocking::{BlockingPool, side_by_side};
use lapwing_actors::drive::live::{Live, LiveParts};
use lapwing_actors::policy::QueuePolicy;
use lapwing_actors::prefix::PrefixCache;
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_kernels::cpu::lock_packed;
use lapwing_kernels::device::{ModelId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::{KvPool, KvStore};
use lapwing_kernels::model::Model;
use lapwing_kernels::npu::OutlierCounter;
use lapwing_kernels::requant::Requantized;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::cost::{CostModel, Modelled};
use lapwing_plan::fit::Fitted;
use lapwing_plan::planner::PlannerParts;
use lapwing_traces::{Clock, OsClock, Recorder, RecorderConfig};

use super::draft_model::DraftModel;
use super::measure::identity;
use super::memory;
use super::prepare::{unprepared, with_plans};
use super::recorded::{set_choices, set_facts};
use super::slots::slot_pool;
use super::strategies::PlacedStrategies;
use super::{Engine, Inner, graphs, prefix};
use crate::chat::ChatTemplate;
use crate::config::{COPY_RATE, Chosen, PROMPT_THREADS, SYNC_TIME, Settings, StrategyChoice};
use crate::devices::build::{Built, InPlace, Shared, build};
use crate::error::Error;
use crate::packed::{PackedFolder, PackedWeights};
use crate::placement::Explainer;
use crate::ranges::RangeSource;
use crate::tokenizer::Tokenizer;

/// Starts an engine with these settings on an open file.
pub(super) fn start(settings: Settings, file: &WeightFile) -> Result<Engine, Error> {
    let (model, requantized) = logged(settings.model(file)?);
    let attention = (!settings.attention.is_empty()).then(|| model.graph.attention());
    let chosen = settings.choose(&model.config)?;
    let recorder = settings.recorder.clone().unwrap_or_else(new_recorder);
    let graph = Arc::new(model.graph.with_kv(chosen.layout));
    let in_place = settings.open_in_place(&chosen)?;
    let (draft, slots) = draft_and_slots(&graph, &settings, (&chosen, &in_place))?;
    let (policy, clock) = (settings.queue_policy()?, timing_clock(&settings, &chosen, &recorder));
    let strategies = PlacedStrategies::new(&settings, &chosen)?;
    let folder = PackedFolder::of(&settings).inspect(|folder| folder.offer(file));
    let kv = Arc::new(in_place.kv_store(chosen.layout, chosen.pages)?);
    let (draft, from, in_place) = (draft.as_ref(), &settings, &in_place);
    let shared =
        SharedSettings { chosen: &chosen, slots: &slots, kv: &kv, in_place, draft, clock, from };
    let (tokenizer, template, devices) = load(&graph, file, &shared)?;
    draft.map(|draft| draft.check_vocabulary(&tokenizer)).transpose()?;
    let mut packed = folder.map_or_else(PackedWeights::default, |folder| folder.outcome(file));
    packed.notes.extend(devices.iter().flat_map(|built| built.notes.iter().cloned()));
    let mut explainer = explainer(&graph, (&shared, &strategies), &devices)?;
    let mut notes = fit(&settings, (&chosen, draft), file, (&devices, &mut explainer))?;
    graphs::complete(&mut explainer, &settings, &devices, (&chosen, draft))?;
    let placement = explainer.full_chunk(chosen.context)?;
    notes.extend(unprepared(&settings, &devices, (&placement, explainer.meanwhile.is_some())));
    let (outliers, pool) = (outliers(&devices), kv.pool().clone());
    let (prefixes, kept) = prefix::open(&shared, file, (&pool, &kv), &mut notes);
    let scheduler = scheduler(&explainer, &chosen, pool, (policy, draft, prefixes))?;
    let live = Live::start(LiveParts {
        scheduler,
        devices: devices.into_iter().map(|built| built.device).collect(),
        graphs: [graph].into_iter().chain(draft.map(|draft| Arc::clone(&draft.graph))).collect(),
        slots: slots.clone(),
        requests_max: chosen.requests_max,
        permits: chosen.permits,
        waits: chosen.waits.clone(),
        recorder: recorder.clone(),
    })
    .map_err(Error::thread)?;
    set_facts(&recorder, (&settings, &model.config, requantized.as_ref()), (&chosen, &placement));
    set_choices(&recorder, &settings, attention.as_deref());
    let inner = Inner {
        path: settings.model,
        config: model.config,
        #[cfg(feature = "structured")]
        structured: super::grammar::Structured::new(&tokenizer, template.as_ref(), &recorder),
        tokenizer,
        template,
        placement,
        explainer,
        strategies,
        packed,
        notes,
        requantized,
        attention,
        share_kv: settings.share_kv,
        slots,
        kv,
        kept_prefixes: kept,
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

/// The draft model, if there is one, and the buffer pool for the values of both models.
fn draft_and_slots(
    graph: &Graph,
    settings: &Settings,
    (chosen, in_place): (&Chosen, &InPlace),
) -> Result<(Option<DraftModel>, SlotPool), Error> {
    let draft = DraftModel::open(settings, (chosen, in_place))?;
    let graphs = [graph].into_iter().chain(draft.as_ref().map(|draft| &*draft.graph));
    let slots = slot_pool(&graphs.collect::<Vec<_>>(), chosen, in_place);
    Ok((draft, slots))
}

/// The clock with which the speeds of the devices are measured, if they are. A profile is more precise than a short
/// timing.
pub(super) fn timing_clock<'a>(
    settings: &Settings,
    chosen: &Chosen,
    recorder: &'a Recorder,
) -> Option<&'a dyn Clock> {
    let timed = (settings.timed || chosen.devices.len() > 1) && settings.profile.is_none();
    timed.then(|| &**recorder.clock())
}

pub(super) fn new_recorder() -> Recorder {
    Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default())
}

/// Fits the model into the devices' memories, and locks its weights if the settings say so. Returns what a
/// user should know of it.
fn fit(
    settings: &Settings,
    (chosen, draft): (&Chosen, Option<&DraftModel>),
    file: &WeightFile,
    (devices, explainer): (&[Built], &mut Explainer),
) -> Result<Vec<String>, Error> {
    // A strategy that the caller has chosen is kept, even if the model does not fit.
    let may_split =
        matches!(settings.strategy, StrategyChoice::Suitable) && settings.places.is_empty();
    let mut notes: Vec<String> =
        memory::fit(devices, explainer, (chosen, draft), may_split)?.into_iter().collect();
    if settings.lock_weights && lock_packed(file)? == 0 {
        notes
            .push("no weights are locked in memory: no device keeps any in host memory".to_owned());
    }
    Ok(notes)
}

fn scheduler(
    explainer: &Explainer,
    chosen: &Chosen,
    pool: KvPool,
    (policy, draft, prefixes): (Box<dyn QueuePolicy>, Option<&DraftModel>, Option<PrefixCache>),
) -> Result<Scheduler, Error> {
    let mut scheduler = Scheduler::new(SchedulerParts {
        config: SchedulerConfig {
            context: chosen.context,
            sequences_max: chosen.sequences_max,
            permits: chosen.permits,
            vocab: explainer.parts.graph.vocab(),
        },
        planner: graphs::planner(explainer),
        kv: KvPages { pool, layout: chosen.layout },
        policy,
    })?;
    scheduler.set_token_gap(chosen.token_gap);
    if let Some(prefixes) = prefixes {
        scheduler.cache_prefixes(ModelId::default(), prefixes);
    }
    if let Some(draft) = draft {
        scheduler.add_model(draft.scheduled(&explainer.parts))?;
    }
    Ok(explainer.read_graphs.told_to(scheduler))
}

/// Logs what is requantised; as a warning if nothing is.
fn logged((model, requantized): (Model, Option<Requantized>)) -> (Model, Option<Requantized>) {
    match &requantized {
        Some(nothing) if nothing.changed == 0 => tracing::warn!("{nothing}"),
        Some(requantized) => tracing::info!("{requantized}"),
        None => {}
    }
    (model, requantized)
}

/// What the devices of an engine share.
pub(super) struct SharedSettings<'a> {
    pub(super) chosen: &'a Chosen,
    pub(super) slots: &'a SlotPool,
    pub(super) kv: &'a Arc<KvStore>,
    pub(super) in_place: &'a InPlace,
    pub(super) draft: Option<&'a DraftModel>,
    /// Set if the devices' speeds are measured.
    pub(super) clock: Option<&'a dyn Clock>,
    /// Where programs and ranges of activations are stored follows from them.
    pub(super) from: &'a Settings,
}

/// The counters of devices with int8 activations of fixed scales.
fn outliers(devices: &[Built]) -> Vec<(String, OutlierCounter)> {
    let counter = |built: &Built| Some((built.info.name.clone(), built.outliers.clone()?));
    devices.iter().filter_map(counter).collect()
}

/// Builds tokenizer, chat template and devices; side by side, unless the devices' speeds are measured with
/// the clock.
fn load(
    graph: &Arc<Graph>,
    file: &WeightFile,
    shared: &SharedSettings<'_>,
) -> Result<(Tokenizer, Option<ChatTemplate>, Vec<Built>), Error> {
    let text = || -> Result<(Tokenizer, Option<ChatTemplate>), Error> {
        let tokenizer = Tokenizer::from_metadata(file.metadata())?;
        let template = ChatTemplate::from_metadata(file.metadata(), &tokenizer)?;
        Ok((tokenizer, template))
    };
    let devices = || devices(graph, file, shared);
    let (text, devices) = match shared.clock {
        Some(_) => (text(), devices()),
        None => side_by_side("text", text, devices),
    };
    let (tokenizer, template) = text?;
    Ok((tokenizer, template, devices?))
}

/// Builds the devices, which share one KV cache and one buffer pool.
pub(super) fn devices(
    graph: &Arc<Graph>,
    file: &WeightFile,
    shared: &SharedSettings<'_>,
) -> Result<Vec<Built>, Error> {
    let SharedSettings { chosen, slots, kv, in_place, draft, clock, from } = *shared;
    let Chosen { isa, activations, .. } = *chosen;
    let (programs, ranges) = (from.programs(), RangeSource::of(from));
    let shared = Shared {
        graph,
        file,
        kv,
        slots,
        in_place,
        draft,
        isa,
        activations,
        clock,
        programs,
        ranges,
    };
    let each = chosen.devices.iter().enumerate();
    each.map(|(number, (spec, threads))| build((number, spec), threads, &shared)).collect()
}

/// Builds the planner and the description of the devices that explains its routes.
pub(super) fn explainer(
    graph: &Arc<Graph>,
    (shared, strategies): (&SharedSettings<'_>, &PlacedStrategies),
    devices: &[Built],
) -> Result<Explainer, Error> {
    let SharedSettings { chosen, in_place, from: settings, .. } = *shared;
    let cost: Arc<dyn CostModel> = match &settings.profile {
        Some(profile) => {
            profile.check_identity(&identity(settings, chosen, in_place))?;
            Arc::new(Fitted::new(profile, Arc::clone(graph))?)
        }
        None => Arc::new(Modelled {
            devices: devices.iter().map(|built| Arc::clone(&built.time)).collect(),
            sync: SYNC_TIME,
            copy_rate: COPY_RATE,
        }),
    };
    let parts = PlannerParts {
        model: ModelId::default(),
        graph: Arc::clone(graph),
        devices: devices.iter().map(|built| built.info.clone()).collect(),
        cost: Arc::new(graphs::MeasuredGraphs::new(cost, devices)),
        strategy: with_plans(strategies.choose(&settings.strategy, chosen)?, shared)?,
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
        timed: devices.iter().map(|built| built.timed).collect(),
    })
}
