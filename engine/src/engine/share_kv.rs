//! Keys and values that layers or heads share.

use lapwing_kernels::kv::KvSharing;

use super::{Engine, EngineBuilder};

impl EngineBuilder {
    /// Makes groups of layers or heads share keys and values, for research; by default each has the
    /// model's own. With layers, the first of each group of consecutive layers computes and stores them
    /// for the group; with heads, the first of each group of consecutive KV heads. The other projections
    /// are neither read nor packed, and the KV cache shrinks accordingly. A model that was not trained so
    /// loses much accuracy. A draft model `self:FORMAT` shares them as well.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine =
    ///     Engine::builder().model("model.gguf").share_kv("layers=2".parse()?).build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn share_kv(mut self, sharing: KvSharing) -> EngineBuilder {
        self.settings.share_kv = Some(sharing);
        self
    }

    /// The sharing that [`share_kv`](EngineBuilder::share_kv) chooses.
    pub fn shared_kv(&self) -> Option<KvSharing> {
        self.settings.share_kv
    }
}

impl Engine {
    /// Which layers or heads share keys and values; `None` without
    /// [`share_kv`](EngineBuilder::share_kv). The KV layers and KV heads of [`model`](Engine::model) are
    /// those that remain.
    pub fn shared_kv(&self) -> Option<KvSharing> {
        self.inner.share_kv
    }
}
