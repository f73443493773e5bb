//! Placement of a model's modules on devices, as a chain.

use super::EngineBuilder;

/// Ops of a model, selected by the pattern of their paths; the next call places them on a device.
#[derive(Clone, Debug)]
#[must_use = "`to_device` returns the builder"]
pub struct Module {
    builder: EngineBuilder,
    pattern: String,
}

impl EngineBuilder {
    /// The ops whose paths match `pattern`, such as `layers.*.ffn` or `layers.0.attn.q`;
    /// [`Module::to_device`] places them, regardless of the strategy. Paths are those of
    /// [`lapwing_plan::place`].
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder()
    ///     .model("model.gguf")
    ///     .device("cpu".parse()?)
    ///     .device("npu".parse()?)
    ///     .module("layers.*.ffn").to_device("npu")
    ///     .module("layers.0.ffn").to_device("cpu")
    ///     .build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn module(self, pattern: impl Into<String>) -> Module {
        Module { builder: self, pattern: pattern.into() }
    }
}

impl Module {
    /// Places the ops on the device of this name. The last call that matches an op wins.
    ///
    /// An unknown device, a pattern that matches nothing, and ops for which the device has no kernel are
    /// errors of [`EngineBuilder::build`].
    pub fn to_device(self, device: &str) -> EngineBuilder {
        self.builder.place(format!("{}={device}", self.pattern))
    }
}

#[cfg(test)]
mod tests {
    use crate::Engine;

    #[test]
    fn a_chain_of_modules_is_the_list_of_placements() {
        let chain = Engine::builder()
            .module("layers.*.ffn")
            .to_device("npu")
            .module("layers.0.ffn")
            .to_device("cpu");
        assert_eq!(chain.settings.places, ["layers.*.ffn=npu", "layers.0.ffn=cpu"]);
    }
}
