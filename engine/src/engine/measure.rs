//! Measures the devices of an engine without starting it.

use std::ops::ControlFlow;
use std::sync::Arc;

use lapwing_actors::drive::measure::{
    Limits, MeasureParts, MeasureProgress, MeasuredDevice, Points, measure, rows_max,
};
use lapwing_kernels::cpu::Activations;
use lapwing_kernels::device::Batch;
use lapwing_kernels::kv::KvDtype;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::fit::Fitted;
use lapwing_plan::profile::{Identity, Profile};
use lapwing_traces::OsClock;

use super::builder::EngineBuilder;
use super::opened::Opened;
use super::start::devices;
use crate::config::Threads;
use crate::devices::build::{Built, Shared};
use crate::error::Error;
use crate::profile::machine;

impl Opened {
    /// The subject of this engine's profile: machine, model and devices, as they are used.
    pub(super) fn identity(&self) -> Identity {
        let Opened { settings, chosen, in_place, .. } = self;
        let bytes = std::fs::metadata(&settings.model).map_or(0, |data| data.len());
        // The type of keys and values changes the time of attention.
        let kv = match settings.kv {
            KvDtype::F16 => String::new(),
            kv => format!(", {kv} keys and values"),
        };
        // The types of activations and weights change the time of matmuls.
        let activations = match settings.activations {
            Activations::Int8 => String::new(),
            other => format!(", {} activations", other.name()),
        };
        let requant = settings.requant.map(|to| format!(", weights requantised to {to}"));
        // Masks change the time of attention.
        let masks: String =
            settings.attention.iter().map(|rule| format!(", attention {rule}")).collect();
        let shared = settings.share_kv.map(|sharing| format!(", shared keys and values {sharing}"));
        let other = [requant, shared].map(Option::unwrap_or_default).concat();
        let other = format!("{kv}{activations}{other}{masks}");
        let devices = chosen.devices.iter().enumerate().map(|(number, (spec, threads))| {
            let (used, how) = in_place.used(number, spec, &chosen.layout, chosen.kv_size());
            (spec.name.clone(), format!("{used} on {}{other}{how}", on(threads)))
        });
        Identity {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine(chosen.isa.name()),
            model: crate::fit::identity(&settings.model, bytes),
            chunk_rows: chosen.chunk_rows,
            devices: devices.collect(),
        }
    }
}

/// Measures ops of the model on the devices, which were built for it and this memory.
///
/// # Errors
/// When a device fails, or `progress` cancels.
pub(super) fn measure_built(
    shared: Shared<'_>,
    built: Vec<Built>,
    limits: Limits,
    points: Points,
    progress: &mut dyn FnMut(&MeasureProgress<'_>) -> ControlFlow<()>,
) -> Result<Profile, Error> {
    let Shared { opened, memory, .. } = shared;
    let chosen = &opened.chosen;
    // A running engine has already written every layer's pages once.
    memory.kv.clear(rows_max(chosen.chunk_rows).div_ceil(chosen.layout.page_rows));
    let Identity { program, machine, model, chunk_rows, devices: names } = opened.identity();
    let devices = built.into_iter().zip(names).map(|(built, (_, description))| {
        let Built { device, info, .. } = built;
        MeasuredDevice { device, info, description }
    });
    let parts = MeasureParts {
        devices: devices.collect(),
        graph: &opened.graph,
        slots: memory.slots.clone(),
        pages: chosen.pages,
        page_rows: chosen.layout.page_rows,
        chunk_rows,
        machine,
        model,
        program,
        clock: Arc::new(OsClock::start()),
        limits,
        points,
    };
    Ok(measure(parts, progress)?)
}

/// The threads of a device, as part of its description: pinned threads take other times.
fn on(threads: &Threads) -> String {
    match &threads.cores {
        None => format!("{} threads", threads.count),
        Some(cores) => format!("{} threads, cores {cores}", threads.count),
    }
}

impl EngineBuilder {
    /// Predicts times from a profile, in place of the devices' own models.
    pub fn profile(mut self, profile: Profile) -> EngineBuilder {
        self.settings.profile = Some(Arc::new(profile));
        self
    }

    /// Whether a [`profile`](EngineBuilder::profile) is set.
    pub fn has_profile(&self) -> bool {
        self.settings.profile.is_some()
    }

    /// Times native devices at the start, which takes milliseconds, so that
    /// [`Engine::predict`](crate::Engine::predict) knows their speed. An engine with several devices
    /// does so anyway. A profile takes the place of this timing.
    pub fn timed(mut self) -> EngineBuilder {
        self.settings.timed = true;
        self
    }

    /// The subject of a profile of this engine's devices and model.
    ///
    /// # Errors
    /// When the model cannot be read, a setting is invalid, or an OpenCL device is not there.
    pub fn identity(&self) -> Result<Identity, Error> {
        Ok(self.opened()?.identity())
    }

    /// The model of the settings' file, with every choice made for it.
    ///
    /// # Errors
    /// When the model cannot be read, a setting is invalid, or an OpenCL device is not there.
    pub(super) fn opened(&self) -> Result<Opened, Error> {
        let settings = self.settled()?.into_owned();
        let file = WeightFile::open(&settings.model)?;
        Opened::new(settings, &file)
    }

    /// As [`opened`](EngineBuilder::opened), for what needs no device.
    fn model_only(&self) -> Result<Opened, Error> {
        let settings = self.settled()?.into_owned();
        let file = WeightFile::open(&settings.model)?;
        Opened::without_drivers(settings, &file)
    }

    /// Measures every op of the model on every device, one device after another, for at most
    /// `limits.per_device` each. `progress` is called before each op and may cancel.
    ///
    /// # Errors
    /// When the model cannot be read, a setting is invalid, a device fails, or `progress` cancels.
    pub fn measure_blocking(
        self,
        limits: Limits,
        progress: &mut dyn FnMut(&MeasureProgress<'_>) -> ControlFlow<()>,
    ) -> Result<Profile, Error> {
        let opened = self.opened()?;
        let memory = opened.allocate(None)?;
        let shared = Shared { opened: &opened, memory: &memory, clock: None };
        measure_built(shared, devices(shared)?, limits, Points::All, progress)
    }

    /// Bytes of weights, keys and values, in this engine's formats, that one decode step reads with
    /// `context` tokens in the cache.
    ///
    /// # Errors
    /// When the model cannot be read, or a setting is invalid.
    pub fn step_bytes(&self, context: usize) -> Result<u64, Error> {
        let graph = self.model_only()?.graph;
        let mut batch = Batch::default();
        batch.push(&[0], context, Vec::new(), 0..1);
        Ok(graph.stored_bytes(&batch))
    }

    /// Predictor fitted to a profile for this model, with its cross-validated errors.
    ///
    /// # Errors
    /// When the model cannot be read, or the profile is invalid.
    pub fn fit(&self, profile: &Profile) -> Result<Fitted, Error> {
        Ok(Fitted::new(profile, self.model_only()?.graph)?)
    }
}
