//! What a running engine consists of, and how it is used.

use std::path::Path;
use std::time::Duration;

use lapwing_actors::stats::EngineStats;
use lapwing_kernels::cpu::PackedUse;
use lapwing_kernels::device::{DeviceInfo, SlotStats};
use lapwing_kernels::kv::KvCopies;
use lapwing_kernels::model::ModelConfig;
use lapwing_kernels::requant::Requantized;
use lapwing_traces::Recorder;

use super::Engine;
#[cfg(doc)]
use super::EngineBuilder;
use crate::chat::ChatTemplate;
use crate::devices::DeviceSpec;
use crate::error::Error;
use crate::packed::PackedWeights;
use crate::placement::Placement;
#[cfg(doc)]
use crate::request::Request;
use crate::tokenizer::Tokenizer;

impl Engine {
    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.inner.tokenizer
    }

    /// The model's chat template, if it has one.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.inner.template.as_ref()
    }

    /// The model's hyper-parameters.
    pub fn model(&self) -> &ModelConfig {
        &self.inner.config
    }

    /// The model's file.
    pub fn model_path(&self) -> &Path {
        &self.inner.path
    }

    /// Maximum number of tokens of a sequence, prompt included.
    pub fn context(&self) -> usize {
        self.inner.context
    }

    /// Maximum number of prompt tokens in a chunk.
    pub fn chunk_rows(&self) -> usize {
        self.inner.chunk_rows
    }

    /// Maximum number of sequences computed at the same time.
    pub fn sequences_max(&self) -> usize {
        self.inner.sequences_max
    }

    /// Device and kernels of each op for a full prompt chunk, with the reasons.
    pub fn placement(&self) -> &Placement {
        &self.inner.placement
    }

    /// Source of the packed weights, and any problems with the folder that caches them.
    pub fn packed_weights(&self) -> &PackedWeights {
        &self.inner.packed
    }

    /// Memory that the packed weights take at this moment, those of a draft model included, and how much of it processes share.
    pub fn packed_use(&self) -> PackedUse {
        self.inner.packed_users.bytes()
    }

    /// Matrices that are requantised to fewer bits than the file has; `None` without
    /// [`requant`](EngineBuilder::requant).
    pub fn requantized(&self) -> Option<&Requantized> {
        self.inner.requantized.as_ref()
    }

    /// The engine's devices.
    pub fn devices(&self) -> &[DeviceSpec] {
        &self.inner.explainer.specs
    }

    /// What planners know of each device, in the order of [`devices`](Engine::devices).
    pub fn device_infos(&self) -> &[DeviceInfo] {
        &self.inner.explainer.parts.devices
    }

    /// How each device computes, and how values reach it, in the order of [`devices`](Engine::devices).
    pub fn device_kernels(&self) -> &[String] {
        &self.inner.explainer.kernels
    }

    /// Name of the drafter of speculative decoding; `none` without one.
    pub fn draft(&self) -> &str {
        self.inner.draft.name()
    }

    /// Name of the queue policy.
    pub fn policy(&self) -> &str {
        &self.inner.policy
    }

    /// Name of the instruction set of the CPU kernels.
    pub fn isa(&self) -> &str {
        self.inner.isa
    }

    /// Total time by which each device exceeded its model. More than a little means that this machine
    /// is too slow to emulate the device's rates.
    pub fn late(&self) -> Vec<Duration> {
        self.inner.live.behind()
    }

    /// Decisions of the start that a user should know: that a model which is larger than a GPU's memory was
    /// split by layers, or that nothing was prepared for an NPU ([`EngineBuilder::prepare_blocking`]).
    pub fn notes(&self) -> &[String] {
        &self.inner.notes
    }

    /// Pages of keys and values that were copied between the host and devices with their own memory.
    pub fn kv_copies(&self) -> KvCopies {
        self.inner.kv.copies()
    }

    /// Use of the buffer pool that all devices share.
    pub fn slots(&self) -> SlotStats {
        self.inner.slots.stats()
    }

    /// Source of predicted times, with its error where it is known.
    pub fn cost_source(&self) -> String {
        self.inner.explainer.cost_source()
    }

    /// The engine's recorder. [`Recorder::set_scope`] selects what is recorded and may be called at
    /// any time; [`Request::traced`] marks single requests.
    pub fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// What the engine has done and is doing: requests, tokens, KV pages, by client.
    ///
    /// # Errors
    /// When the engine has ended.
    pub async fn stats(&self) -> Result<EngineStats, Error> {
        Ok(self.inner.live.stats().await?)
    }

    /// Number of requests waiting or running.
    pub fn requests(&self) -> usize {
        self.inner.live.requests()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("model", &self.inner.path)
            .field("placement", &self.inner.placement)
            .finish_non_exhaustive()
    }
}
