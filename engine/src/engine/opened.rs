//! The first two steps from settings to an engine: the model with every choice made for it, and the memory that its devices
//! share.

use std::sync::Arc;

use lapwing_kernels::device::SlotPool;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvStore;
use lapwing_kernels::mask::AttentionRule;
use lapwing_kernels::model::{Head, ModelConfig, ModelPart};
use lapwing_kernels::requant::Requantized;
use lapwing_kernels::weights::WeightFile;
use lapwing_traces::{Clock, OsClock, Recorder, RecorderConfig};

use super::draft_model::{self, DraftModel, DraftNeed};
use super::slots::slot_pool;
use crate::config::{Chosen, Settings};
use crate::devices::InPlace;
use crate::error::Error;

/// A model, and the settings for it with every default resolved.
pub(crate) struct Opened {
    pub(crate) settings: Settings,
    pub(crate) file: WeightFile,
    pub(crate) config: ModelConfig,
    /// What was requantised, if the settings say so.
    pub(crate) requantized: Option<Requantized>,
    pub(crate) chosen: Chosen,
    /// The model's ops, with the layout of its keys and values.
    pub(crate) graph: Arc<Graph>,
    /// The model's head, if it is a reranker.
    pub(crate) rank: Option<Head>,
    /// What makes embeddings of pooled hidden states, if these are not the embeddings.
    pub(crate) projection: Option<Head>,
    /// Memory of a device that all devices use in place.
    pub(crate) in_place: InPlace,
    /// Of the settings, or a new one.
    pub(crate) recorder: Recorder,
}

impl Opened {
    /// The model of an open file, and the memory of a device that the engine uses.
    ///
    /// # Errors
    /// When the model is not supported, a setting is invalid, or an OpenCL device is not there.
    pub(crate) fn new(settings: Settings, file: &WeightFile) -> Result<Opened, Error> {
        let opened = Opened::without_drivers(settings, file)?;
        let in_place = opened.settings.open_in_place(&opened.chosen)?;
        Ok(Opened { in_place, ..opened })
    }

    /// As [`new`](Opened::new), but without memory of a device, so that no driver is loaded. It is for callers that need only
    /// the model and the settings.
    ///
    /// # Errors
    /// When the model is not supported, or a setting is invalid.
    pub(crate) fn without_drivers(settings: Settings, file: &WeightFile) -> Result<Opened, Error> {
        settings.check_cost()?;
        let settings = with_layer_of_file(settings, file)?;
        let (model, requantized) = settings.model(file)?;
        let chosen = settings.choose(&model.config)?;
        let recorder = settings.recorder.clone().unwrap_or_else(|| {
            Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default())
        });
        Ok(Opened {
            file: file.clone(),
            config: model.config,
            requantized,
            graph: Arc::new(model.graph.with_kv(chosen.layout.clone())),
            rank: model.rank,
            projection: model.projection,
            in_place: InPlace::default(),
            recorder,
            chosen,
            settings,
        })
    }

    /// Allocates what the devices of the model, and of the draft model, share.
    ///
    /// # Errors
    /// When there is not enough memory for the keys and values.
    pub(crate) fn allocate(&self, draft: Option<DraftModel>) -> Result<EngineMemory, Error> {
        let Opened { chosen, in_place, .. } = self;
        let graphs = [&*self.graph].into_iter().chain(draft.as_ref().map(|draft| &*draft.graph));
        let slots = slot_pool(&graphs.collect::<Vec<_>>(), chosen, in_place);
        let kv = Arc::new(in_place.kv_store(chosen.layout.clone(), chosen.kv_size())?);
        Ok(EngineMemory { draft, slots, kv })
    }

    /// The clock with which the speeds of the devices are measured, if they are. A profile is more precise than a short
    /// timing.
    pub(super) fn timing_clock(&self) -> Option<&dyn Clock> {
        let Opened { settings, chosen, recorder, .. } = self;
        let timed = (settings.timed || chosen.devices.len() > 1) && settings.profile.is_none();
        timed.then(|| &**recorder.clock())
    }

    /// The attention of the layers, if the settings change it.
    pub(super) fn attention(&self) -> Option<Vec<AttentionRule>> {
        (!self.settings.attention.is_empty()).then(|| self.graph.attention())
    }

    /// Logs what is requantised; as a warning if nothing is.
    pub(super) fn log_requantized(&self) {
        match &self.requantized {
            Some(nothing) if nothing.changed == 0 => tracing::warn!("{nothing}"),
            Some(requantized) => tracing::info!("{requantized}"),
            None => {}
        }
    }
}

/// The settings with a layer of the file as draft model, if it is theirs to find one there, and the engine can run it.
fn with_layer_of_file(settings: Settings, file: &WeightFile) -> Result<Settings, Error> {
    let Some(choice) = settings.draft.layer_of_file() else { return Ok(settings) };
    let has_layer = match settings.part(file, ModelPart::Predictor) {
        Ok(layer) => {
            let model = settings.model(file)?.0;
            let chosen = settings.choose(&model.config)?;
            let need = DraftNeed::new(&layer, choice, &model.graph, &chosen, settings.kv);
            need.has_room_beside(&model.graph) && draft_model::device(choice, &chosen).is_ok()
        }
        Err(_) => false,
    };
    if has_layer {
        tracing::info!("a layer of the file drafts where that pays; --draft none leaves it out");
    }
    let draft = settings.draft.clone().settled(has_layer);
    Ok(Settings { draft, ..settings })
}

/// Memory that all devices of an engine share, and the draft model beside the model.
pub(crate) struct EngineMemory {
    /// The draft model, which the device of its number holds, too.
    pub(crate) draft: Option<DraftModel>,
    /// Buffers for the values between ops.
    pub(crate) slots: SlotPool,
    /// Keys and values of the model.
    pub(crate) kv: Arc<KvStore>,
}
