//! Settings of an engine that concern strategies.

use std::sync::Arc;

use lapwing_plan::strategy::{GpuLayers, Strategies, Strategy, StrategyOptions};

use super::EngineBuilder;
use crate::config::StrategyChoice;

impl EngineBuilder {
    /// Selects by name the strategy that places ops on devices and cuts prompts into chunks, with or without
    /// parameters, as in `chunked:chunk=512` ([`plan::strategies`] lists the built-in ones, and
    /// [`strategies`] adds others). The default is `auto` with several devices, and `cpu-only` or
    /// `gpu-only` with one.
    ///
    /// [`plan::strategies`]: crate::plan::strategies
    /// [`strategies`]: EngineBuilder::strategies
    pub fn strategy(mut self, name: impl Into<String>) -> EngineBuilder {
        self.settings.strategy = StrategyChoice::Named(name.into());
        self
    }

    /// Sets the strategies that are known by name; by default the built-in ones.
    /// [`strategy`](EngineBuilder::strategy), `auto`, [`Engine::explain`](crate::Engine::explain) and comparisons find them.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # use lapwing::devices::DeviceSpec;
    /// use lapwing::plan::Strategies;
    /// use lapwing::plan::strategy::LayerSplit;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let strategies = Strategies::builtin().with("mine", "half of the layers", |_| LayerSplit)?;
    /// let engine = Engine::builder()
    ///     .model("model.gguf")
    ///     .devices(DeviceSpec::list("cpu+gpu")?)
    ///     .strategies(strategies)
    ///     .strategy("mine")
    ///     .build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn strategies(mut self, strategies: Strategies) -> EngineBuilder {
        self.settings.strategies = strategies;
        self
    }

    /// The strategies that are known by name.
    pub fn known_strategies(&self) -> &Strategies {
        &self.settings.strategies
    }

    /// Sets options of built-in strategies, such as the ratio of a cut or whether operands may be
    /// swapped; each strategy uses the options it knows. `in_flight` is overwritten by
    /// [`permits`](EngineBuilder::permits).
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # use lapwing::devices::DeviceSpec;
    /// use lapwing::plan::{OrderSwap, StrategyOptions};
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder()
    ///     .model("model.gguf")
    ///     .devices(DeviceSpec::list("phone")?)
    ///     .strategy("row-cut")
    ///     .strategy_options(StrategyOptions {
    ///         order_swap: OrderSwap::Off,
    ///         ratio: Some("6:2:1".parse()?),
    ///         ..StrategyOptions::default()
    ///     })
    ///     .build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn strategy_options(mut self, options: StrategyOptions) -> EngineBuilder {
        self.settings.options = options;
        self
    }

    /// As [`strategy`](EngineBuilder::strategy), with a strategy of the caller's own.
    pub fn own_strategy(self, strategy: impl Strategy + 'static) -> EngineBuilder {
        self.shared_strategy(Arc::new(strategy))
    }

    /// Runs the last `layers` layers and the output matrix on the GPU, and the layers before them on the
    /// CPU, for a model that is larger than the GPU's memory. It takes the place of the strategy.
    pub fn gpu_layers(self, layers: usize) -> EngineBuilder {
        self.own_strategy(GpuLayers { layers })
    }

    /// Sets whether requests wait for prepared graphs that their strategy needs and that are not ready. By default they do
    /// not: until the graphs are ready, the CPU or the GPU computes in their place, and the graphs are made while the engine
    /// has no request. What computed where is in [`Engine::stats`](crate::Engine::stats) and in recordings. Answers are equal
    /// as far as these devices round alike, such as all with activations in f32.
    ///
    /// Requests wait in any case if ops are placed by hand ([`place`](EngineBuilder::place)), or if the strategy prepares its
    /// graphs while a prompt runs, as `online-prepare` does.
    pub fn wait_for_graphs(mut self, wait: bool) -> EngineBuilder {
        self.settings.wait_for_graphs = wait;
        self
    }

    /// As [`own_strategy`](EngineBuilder::own_strategy), with a strategy that is shared.
    pub fn shared_strategy(mut self, strategy: Arc<dyn Strategy>) -> EngineBuilder {
        self.settings.strategy = StrategyChoice::Own(strategy);
        self
    }
}
