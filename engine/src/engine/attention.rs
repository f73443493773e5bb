//! Masks of attention in place of a model's own.

use lapwing_kernels::mask::AttentionRule;
use lapwing_kernels::weights::WeightFile;

use super::{Engine, EngineBuilder};
use crate::error::Error;

impl EngineBuilder {
    /// Replaces the causal mask of attention, in all layers or in some; may be called several times,
    /// and the last rule that covers a layer counts. A sliding window of the architecture stays in
    /// force: a row sees a key if both the mask and the window see it. By default a model's own masks
    /// apply. Any other mask changes the results of a model that was trained without it: this is for
    /// research on what attention costs and gains.
    ///
    /// A window and a dilated window are those of Longformer (Beltagy et al., 2020, section 3.1), a
    /// dilated window over all positions the strided head of sparse transformers (Child et al., 2019,
    /// section 4.2), and lists of blocks those of BigBird (Zaheer et al., 2020, section 2). A list of
    /// blocks limits the context to its positions.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// use lapwing::{BlockList, Mask};
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// // 32 blocks of 64 positions: each sees itself, three before it, and the first.
    /// let blocks = BlockList::local_and_global(64, 4, 1, 32)?;
    /// let engine = Engine::builder()
    ///     .model("model.gguf")
    ///     .attention(Mask::blocks(blocks))
    ///     .attention("0-11:window=512".parse::<lapwing::AttentionRule>()?)
    ///     .build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn attention(mut self, rule: impl Into<AttentionRule>) -> EngineBuilder {
        self.settings.attention.push(rule.into());
        self
    }

    /// The masks in force with [`attention`](EngineBuilder::attention), as
    /// [`Engine::attention`]. Reads only the file's header.
    ///
    /// # Errors
    /// When the model cannot be read or is not supported, or a mask does not fit it.
    pub fn attention_masks(&self) -> Result<Option<Vec<AttentionRule>>, Error> {
        if self.settings.attention.is_empty() {
            return Ok(None);
        }
        let settings = self.settled()?;
        let file = WeightFile::open(&settings.model)?;
        Ok(Some(settings.model(&file)?.0.graph.attention()))
    }
}

impl Engine {
    /// The masks in force in each layer, including the architecture's own windows; `None` without
    /// [`attention`](EngineBuilder::attention).
    pub fn attention(&self) -> Option<&[AttentionRule]> {
        self.inner.attention.as_deref()
    }
}
