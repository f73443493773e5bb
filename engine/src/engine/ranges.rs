//! Measures the ranges of a model's activations.

use std::ops::ControlFlow;
use std::sync::Arc;

use lapwing_kernels::cpu::Cpu;
use lapwing_kernels::npu::{ActivationRanges, RangeRecorder};
use lapwing_kernels::weights::WeightFile;

use super::Engine;
use super::builder::EngineBuilder;
use crate::error::Error;
use crate::packed::PackedFolder;
use crate::ranges::{
    DeviceOutliers, MeasuredRanges, RangeOptions, RangeProgress, RangeSource, RangesError,
};
use crate::tokenizer::{Special, Tokenizer};

impl EngineBuilder {
    /// Uses these ranges for devices with activations in integers of fixed scales, in place of stored ones.
    pub fn ranges(mut self, ranges: ActivationRanges) -> EngineBuilder {
        self.settings.ranges = Some(Arc::new(ranges));
        self
    }

    /// Runs a text through the model on the CPU, op by op, and measures the magnitudes of the inputs and outputs of all
    /// products. With a [`packed_cache`](EngineBuilder::packed_cache) they are stored there, and devices with
    /// activations in integers of any engine with the same cache, model file, masks and shared keys find them. Devices and
    /// strategy of the builder do not matter. `progress` is called before each window and may cancel; nothing is then
    /// stored.
    ///
    /// # Errors
    /// When the model cannot be read, a setting is invalid, the text or the window is empty, an activation is not a
    /// finite number, the file cannot be written, or `progress` cancels.
    pub fn measure_ranges_blocking(
        self,
        options: &RangeOptions,
        progress: &mut dyn FnMut(RangeProgress) -> ControlFlow<()>,
    ) -> Result<MeasuredRanges, Error> {
        let settings = self.settled()?.into_owned();
        let file = WeightFile::open(&settings.model)?;
        let (model, _) = settings.model(&file)?;
        let chosen = settings.choose(&model.config)?;
        let tokenizer = Tokenizer::from_metadata(file.metadata())?;
        let windows = windows(options, &tokenizer)?;
        let graph = Arc::new(model.graph.with_kv(chosen.layout.clone()));
        let threads = chosen.devices.iter().map(|(_, threads)| threads.count).sum::<usize>();
        let cpu = Cpu::new(threads.max(1), chosen.isa).with_activations(chosen.activations);
        let folder = PackedFolder::offered(&settings, &file, &graph);
        let recorder =
            RangeRecorder::new(cpu, &graph, &file, chosen.layout.clone(), options.window);
        let mut recorder = recorder.map_err(RangesError::Measure)?;
        _ = folder.map(|folder| folder.outcome(&file));
        for (done, ids) in windows.iter().enumerate() {
            if progress(RangeProgress { done, of: windows.len() }).is_break() {
                return Err(RangesError::Cancelled.into());
            }
            recorder.add(ids).map_err(RangesError::Measure)?;
        }
        let (ranges, source) = (recorder.finish(), RangeSource::of(&settings));
        let save = |folder| ranges.save(folder, &file, &source.variant);
        let path = source.folder.as_deref().map(save).transpose().map_err(RangesError::File)?;
        Ok(MeasuredRanges { ranges, windows: windows.len(), file: path })
    }
}

impl Engine {
    /// Outliers of each device with int8 activations of fixed scales, since the engine started. The check of each
    /// prepared graph does not count.
    pub fn outliers(&self) -> Vec<DeviceOutliers> {
        let each = self.inner.outliers.iter();
        each.map(|(device, counter)| DeviceOutliers {
            device: device.clone(),
            counts: counter.counts(),
        })
        .collect()
    }
}

/// The tokens of each window, which starts with the begin token if the model uses one.
fn windows(options: &RangeOptions, tokenizer: &Tokenizer) -> Result<Vec<Vec<u32>>, Error> {
    let RangeOptions { text, window, windows_max } = options;
    if *window == 0 || *windows_max == 0 {
        return Err(Error::config(
            "the window of ranges",
            *window,
            "at least 1 token, in at least one window",
        ));
    }
    tokenizer.check(text)?;
    let ids = tokenizer.encode(text, Special::Plain, true);
    if ids.is_empty() {
        return Err(Error::config("the text of ranges", "empty", "at least one token"));
    }
    let mut windows: Vec<Vec<u32>> =
        ids.chunks(*window).take(*windows_max).map(<[u32]>::to_vec).collect();
    if let Some(bos) = tokenizer.bos().filter(|_| tokenizer.adds_bos()) {
        windows.iter_mut().for_each(|window| window[0] = bos);
    }
    Ok(windows)
}
