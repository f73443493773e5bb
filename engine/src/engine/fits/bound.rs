//! The devices, bound to a stand-in for the model, and the times that they take.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::measure::{Limits, MeasureProgress, Points, choice_time, rows_max};
use lapwing_kernels::cpu::packed_bytes;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::cost::{CostModel, Modelled};
use lapwing_plan::fit::{DeviceFit, Fitted};
use lapwing_plan::profile::{Identity, Machine};
use lapwing_traces::OsClock;
use lapwing_traces::text::counted;

use super::{Device, Subject};
use crate::config::{COPY_RATE, SYNC_TIME, Settings};
use crate::devices::build::{Built, Shared, estimated, time_model};
use crate::draft::DraftChoice;
use crate::engine::measure::measure_built;
use crate::engine::opened::{EngineMemory, Opened};
use crate::engine::start;
use crate::error::{Error, ErrorKind};
use crate::fit::sample::{BYTES_MAX, Sample, layers_of_sample};

/// Part of the free memory that the tensors of a stand-in may take.
const FREE_SHARE: u64 = 4;

/// The devices of a subject, bound to a stand-in with some of its layers.
pub(super) struct Bound {
    opened: Opened,
    memory: EngineMemory,
    built: Vec<Built>,
    /// Layers of the stand-in, and of the model.
    layers: (usize, usize),
    /// The file of the stand-in, which is read while devices use it.
    _sample: Sample,
}

/// Predicts times of the model.
pub(super) struct Times {
    pub(super) cost: Arc<dyn CostModel>,
    /// Where they come from.
    pub(super) rates: String,
    /// What choosing a token takes beside the ops, if times are those of this machine.
    pub(super) sampling: Duration,
    pub(super) notes: Vec<String>,
}

impl Bound {
    /// Binds the devices to a stand-in with as few layers as have all ops, or, if these are no model of their own, with all.
    pub(super) fn new(subject: &Subject<'_>) -> Result<Bound, Error> {
        let Subject { header, graph, free, .. } = subject;
        let room = free.map_or(BYTES_MAX, |free| BYTES_MAX.min(free / FREE_SHARE));
        let (layers, all) = layers_of_sample(&header.gguf, graph, room);
        match Bound::with_layers(subject, (layers, all)) {
            // Settings and families may count layers, of which a stand-in has fewer.
            Err(error)
                if layers < all
                    && matches!(error.kind(), ErrorKind::Model | ErrorKind::Config)
                    && free.is_none_or(|free| packed_bytes(graph) < free / 2) =>
            {
                Bound::with_layers(subject, (all, all)).map_err(|_| error)
            }
            bound => bound,
        }
    }

    fn with_layers(subject: &Subject<'_>, layers: (usize, usize)) -> Result<Bound, Error> {
        let sample = Sample::new(&subject.header.gguf, layers.0).map_err(Error::sample)?;
        let file = WeightFile::open(&sample.path)?;
        let chosen = &subject.chosen;
        let settings = Settings {
            model: sample.path.to_path_buf(),
            #[cfg(feature = "fetch")]
            model_name: None,
            context: Some(chosen.context),
            cache_tokens: Some(rows_max(chosen.chunk_rows)),
            draft: DraftChoice::none(),
            profile: None,
            plans: None,
            packed_cache: None,
            lock_weights: false,
            kept_prefixes: None,
            recorder: None,
            ..subject.settings.clone()
        };
        let opened = Opened::new(settings, &file)?;
        let memory = opened.allocate(None)?;
        let built = start::devices(Shared { opened: &opened, memory: &memory, clock: None })?;
        Ok(Bound { opened, memory, built, layers, _sample: sample })
    }

    /// The devices.
    pub(super) fn devices(&self) -> Vec<Device> {
        let specs = self.opened.chosen.devices.iter().map(|(spec, _)| spec.clone());
        let device = |(spec, built): (_, &Built)| {
            let Built { info, capacity, .. } = built;
            Device { spec, info: info.clone(), capacity: *capacity }
        };
        specs.zip(&self.built).map(device).collect()
    }

    /// The times of the settings' profile, or those that the devices are throttled to, or measured ones.
    pub(super) fn times(
        self,
        subject: &Subject<'_>,
        limits: Limits,
        progress: &mut dyn FnMut(&MeasureProgress<'_>) -> ControlFlow<()>,
    ) -> Result<Times, Error> {
        let Subject { settings, header, graph, .. } = subject;
        if let Some(profile) = &settings.profile {
            let here = Identity { model: header.identity.clone(), ..self.opened.identity() };
            profile.check_identity(&here)?;
            let fitted = Fitted::new(profile, Arc::clone(graph))?;
            let rates = format!("the profile of this model, {}", fitted.source());
            let notes = unmeasured(&fitted);
            let (cost, sampling) = (Arc::new(fitted), Duration::ZERO);
            return Ok(Times { cost, rates, sampling, notes });
        }
        let specs = || self.opened.chosen.devices.iter().map(|(spec, _)| spec);
        if specs().all(|spec| spec.is_throttled()) {
            let model = |spec| time_model(spec, graph, estimated(1));
            let devices = specs().map(model).collect::<Result<Vec<_>, Error>>()?;
            let models = Modelled { devices, sync: SYNC_TIME, copy_rate: COPY_RATE };
            let rates = format!("the rates that the devices are throttled to, {}", models.source());
            let (cost, sampling) = (Arc::new(models), Duration::ZERO);
            return Ok(Times { cost, rates, sampling, notes: Vec::new() });
        }
        let Bound { opened, memory, built, layers: (layers, all), _sample } = self;
        let shared = Shared { opened: &opened, memory: &memory, clock: None };
        let profile = measure_built(shared, built, limits, Points::Few, progress)?;
        let fitted = Fitted::new(&profile, Arc::clone(graph))?;
        let Machine { cpu, cores, isa, os } = &profile.machine;
        let rates = format!(
            "measured now on {cpu} ({}, {isa}, {os}), with zeros for weights in the shapes and formats of {layers} of \
             the {}",
            counted(*cores, "hardware thread"),
            counted(all, "layer")
        );
        let notes = unmeasured(&fitted);
        let sampling = choice_time(graph.value(graph.output()).width, &OsClock::start());
        Ok(Times { cost: Arc::new(fitted), rates, sampling, notes })
    }
}

/// A note for each device that has ops of which no time is known.
fn unmeasured(fitted: &Fitted) -> Vec<String> {
    let devices = fitted.devices().iter().filter(|device| !device.unmeasured.is_empty());
    let note = |device: &DeviceFit| {
        let ops = device.unmeasured.join(", ");
        format!("no time of {ops} was measured on {}; it is estimated from other ops", device.name)
    };
    devices.map(note).collect()
}
