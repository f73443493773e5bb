//! The draft model of an engine: its file, keys and values, and the device that runs it. It may be a layer of the model's own file.

use std::path::PathBuf;
use std::sync::Arc;

use lapwing_actors::scheduler::{KvPages, SchedulerModel};
use lapwing_kernels::cpu::packed_bytes;
use lapwing_kernels::device::{DeviceInfo, Packing};
use lapwing_kernels::graph::{Graph, WeightSpec};
use lapwing_kernels::kv::{KvDtype, KvLayout, KvSize, KvStore};
use lapwing_kernels::model::{Model, ModelPart};
use lapwing_kernels::requant::Requant;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::DeviceId;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::OneDevice;

use super::opened::Opened;
use crate::config::{Chosen, Settings};
use crate::devices::DeviceSpec;
use crate::devices::InPlace;
use crate::draft::{DRAFT_MODEL, DraftModelChoice, DraftWeights};
use crate::error::Error;
use crate::fit::free_memory;
use crate::packed::PackedFolder;
use crate::tokenizer::Tokenizer;

/// An opened draft model.
pub(crate) struct DraftModel {
    pub(crate) graph: Arc<Graph>,
    pub(crate) file: WeightFile,
    pub(crate) kv: Arc<KvStore>,
    /// The number of its device.
    pub(crate) device: usize,
    need: DraftNeed,
    is_own: bool,
}

/// What a draft model needs beside its target.
pub(super) struct DraftNeed {
    layout: KvLayout,
    pages: u32,
    context: usize,
    /// Its weights, without those that it shares with the target.
    weights: Vec<WeightSpec>,
}

impl DraftNeed {
    /// The need of a draft model for a target with the graph `target`.
    pub(super) fn new(
        model: &Model,
        choice: &DraftModelChoice,
        target: &Graph,
        chosen: &Chosen,
        dtype: KvDtype,
    ) -> DraftNeed {
        let is_predictor = choice.weights == DraftWeights::Predictor;
        let shared = if is_predictor { target.weights() } else { &[] };
        let weights = model.graph.weights().iter().filter(|spec| !shared.contains(spec));
        let weights = weights.cloned().collect();
        let layout = KvLayout { dtype, ..model.config.kv_layout() };
        let context = model.config.context.min(chosen.context + choice.form.tokens_max() + 1);
        // As many tokens as the target has, and a draft for each sequence.
        let tokens = chosen.pages as usize * chosen.layout.page_rows;
        let tokens = tokens + chosen.sequences_max * (choice.form.tokens_max() + layout.page_rows);
        let pages = u32::try_from(layout.pages_for(tokens)).unwrap_or(u32::MAX);
        DraftNeed { layout, pages, context, weights }
    }

    /// Bytes of its own weights on a device that packs matrices so.
    pub(super) fn weight_bytes(&self, packing: Packing) -> u64 {
        let bytes = |WeightSpec { rows, cols, dtype, .. }: &WeightSpec| match rows {
            1 => Packing::FILE.bytes(*dtype, 1, *cols),
            rows => packing.bytes(*dtype, *rows, *cols),
        };
        self.weights.iter().map(bytes).sum()
    }

    /// Whether its weights fit into the free memory beside those of the target.
    pub(super) fn has_room_beside(&self, target: &Graph) -> bool {
        let bytes = packed_bytes(target) + self.weight_bytes(Packing::FILE);
        free_memory().is_none_or(|free| bytes <= free)
    }

    /// Bytes of its keys and values for so many tokens; for as many as it has pages for without a number.
    pub(super) fn kv_bytes(&self, tokens: Option<usize>) -> u64 {
        let pages = tokens.map_or(u64::from(self.pages), |it| self.layout.pages_for(it) as u64);
        pages.saturating_mul(self.layout.page_bytes() as u64)
    }
}

impl DraftModel {
    /// Opens the draft model that the settings choose, if they choose one. Its keys and values are in place where those of its
    /// device are.
    ///
    /// # Errors
    /// When no device can run it, its file is missing, damaged or not supported, or its layers keep a state of the rows before.
    pub(super) fn open(opened: &Opened, in_place: &InPlace) -> Result<Option<DraftModel>, Error> {
        let Opened { settings, chosen, .. } = opened;
        let Some(choice) = settings.draft.draft_model() else { return Ok(None) };
        if chosen.is_encoder {
            return Err(Error::config("draft", settings.draft.name(), "none with an encoder"));
        }
        let device = device(choice, chosen)?;
        let (model, file) = match &choice.weights {
            DraftWeights::Other(model) => other(path(model, settings)?, None, settings)?,
            DraftWeights::Own(format) => other(settings.model.clone(), Some(*format), settings)?,
            DraftWeights::Predictor => predictor(opened)?,
        };
        let is_own = !matches!(choice.weights, DraftWeights::Other(_));
        let need = DraftNeed::new(&model, choice, &opened.graph, chosen, settings.kv);
        let layout = &need.layout;
        // No draft model has states.
        let size = KvSize { pages: need.pages, states: 0 };
        let kv = match in_place.is_of(device) {
            true => in_place.kv_store(layout.clone(), size)?,
            false => KvStore::new(layout.clone(), size)?,
        };
        let graph = Arc::new(model.graph.with_kv(layout.clone()));
        Ok(Some(DraftModel { graph, file, kv: Arc::new(kv), device, need, is_own }))
    }

    /// Checks that its tokens are those of the target.
    ///
    /// # Errors
    /// With the first token that differs.
    pub(super) fn check_vocabulary(&self, target: &Tokenizer) -> Result<(), Error> {
        if !self.is_own {
            target.check_same_vocabulary(&Tokenizer::from_metadata(self.file.metadata())?)?;
        }
        Ok(())
    }

    /// Bytes of its own weights, keys and values on a device that packs matrices so.
    pub(super) fn bytes(&self, packing: Packing) -> u64 {
        self.need.weight_bytes(packing) + self.need.kv_bytes(None)
    }

    /// The parts of its planner, beside those of the target. The room of its device is what it leaves to the target.
    pub(super) fn planned(&self, target: &PlannerParts) -> PlannerParts {
        let without = |info: &DeviceInfo| DeviceInfo { room: None, ..info.clone() };
        PlannerParts {
            model: DRAFT_MODEL,
            devices: target.devices.iter().map(without).collect(),
            graph: Arc::clone(&self.graph),
            strategy: Arc::new(OneDevice { device: DeviceId(self.device) }),
            ..target.clone()
        }
    }

    /// Its part of the scheduler.
    pub(super) fn scheduled(&self, target: &PlannerParts) -> SchedulerModel {
        let planner = Planner::new(self.planned(target));
        let vocab = self.graph.vocab();
        let kv = KvPages::of(&self.kv);
        SchedulerModel { planner, kv, context: self.need.context, vocab }
    }
}

/// A model of a file of its own, because each open file keeps one form of packed weights. With the form, it is the target with fewer bits.
fn other(
    model: PathBuf,
    requant: Option<Requant>,
    settings: &Settings,
) -> Result<(Model, WeightFile), Error> {
    let is_own = requant.is_some();
    let attention = if is_own { settings.attention.clone() } else { Vec::new() };
    let share_kv = settings.share_kv.filter(|_| is_own);
    let own = Settings { model, requant, attention, share_kv, ..settings.clone() };
    let file = WeightFile::open(&own.model)?;
    let (model, requantized) = own.model(&file)?;
    if let Some(nothing) = requantized.filter(|requantized| requantized.changed == 0) {
        let expected = format!(
            "a format of fewer bits than the model's weights ({nothing}); choose one, or a draft model"
        );
        return Err(Error::config("draft", settings.draft.name(), &expected));
    }
    let path = own.model.display();
    if model.config.arch.is_encoder() {
        return Err(Error::config("the draft model", path, "a model that generates"));
    }
    if model.graph.has_state() {
        let expected = "one whose layers keep no state of the rows before";
        return Err(Error::config("the draft model", path, expected));
    }
    _ = PackedFolder::offered(&own, &file, &model.graph);
    Ok((model, file))
}

/// The layer of the target's file that predicts a further token. It shares matrices with the target, so it is of the same open file, and
/// requantised to the same form.
fn predictor(opened: &Opened) -> Result<(Model, WeightFile), Error> {
    let Opened { settings, file, .. } = opened;
    let mut model = settings.part(file, ModelPart::Predictor)?;
    if let Some(form) = settings.requant {
        model.graph.requantize(form);
    }
    Ok((model, file.clone()))
}

/// The number of the device that runs the draft model: the named one, or the first that can. Devices that compute on
/// CPU threads come before others. NPUs compute no attention, and only CPUs are given hidden states. A layer that was not asked for
/// takes no room from layers in a device's own memory.
pub(super) fn device(choice: &DraftModelChoice, chosen: &Chosen) -> Result<usize, Error> {
    let is_predictor = choice.weights == DraftWeights::Predictor;
    let can = |spec: &DeviceSpec| {
        let takes_room = choice.is_optional && spec.memory.is_some();
        !spec.is_static() && (spec.has_threads() || !is_predictor) && !takes_room
    };
    let on_threads = |spec: &DeviceSpec| can(spec) && spec.has_threads();
    let devices = || chosen.devices.iter().map(|(spec, _)| spec);
    let found = match &choice.device {
        None => devices().position(on_threads).or_else(|| devices().position(can)),
        Some(name) => devices().position(|spec| spec.name == *name && can(spec)),
    };
    found.ok_or_else(|| {
        let able: Vec<&str> = devices().filter(|spec| can(spec)).map(|spec| &*spec.name).collect();
        let which = match is_predictor {
            true => {
                "a CPU, or a device that CPU threads emulate, as others are given no hidden states"
            }
            false => "a CPU or a GPU, as NPUs compute no attention",
        };
        let expected = match able[..] {
            [] => format!("{which}; add one (on the command line: --device cpu)"),
            _ => format!("{which}: {}", able.join(", ")),
        };
        let named = choice.device.as_deref().unwrap_or("missing");
        Error::config("the device of the draft model", named, &expected)
    })
}

/// The file of a draft model; one that is only named is fetched.
fn path(model: &str, settings: &Settings) -> Result<PathBuf, Error> {
    let path = PathBuf::from(model);
    #[cfg(feature = "fetch")]
    if !path.is_file() && path.extension().is_none_or(|end| !end.eq_ignore_ascii_case("gguf")) {
        return super::fetch_apart::fetch_apart(model, &settings.fetch_stop);
    }
    #[cfg(not(feature = "fetch"))]
    let _ = settings;
    Ok(path)
}
