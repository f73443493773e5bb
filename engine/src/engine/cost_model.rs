//! The cost model of an engine's plans: of a profile, of the devices' own models, or of the caller's own.

use std::sync::Arc;

use lapwing_plan::cost::{CostModel, Modelled};
use lapwing_plan::fit::Fitted;

use super::builder::EngineBuilder;
use super::graphs::MeasuredGraphs;
use super::opened::Opened;
use super::own_cost::{CostSubject, OwnCost};
use crate::config::{COPY_RATE, SYNC_TIME, Settings};
use crate::devices::build::{Built, Shared};
use crate::error::Error;

impl EngineBuilder {
    /// Predicts times with a cost model of the caller's own, which `make` makes for the engine's models and devices: strategies
    /// compare routes by it, and [`Engine::plan`](crate::Engine::plan), [`Engine::predict`](crate::Engine::predict) and the
    /// scheduler take its times. [`Engine::cost_source`](crate::Engine::cost_source) and placements say that they are its.
    /// It changes no device: a throttled one keeps the rates that it is throttled to.
    ///
    /// The engine cannot be built with a [`profile`](EngineBuilder::profile) or with [`plans`](EngineBuilder::plans) beside it,
    /// whose times would be others. Nothing can be prepared with it. The model must not panic: that ends the engine.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # use lapwing::devices::DeviceSpec;
    /// use std::time::Duration;
    /// use lapwing::plan::Modelled;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// // What if synchronisation took a millisecond? The devices' own models for everything else.
    /// let engine = Engine::builder()
    ///     .model("model.gguf")
    ///     .devices(DeviceSpec::list("phone")?)
    ///     .cost_model(|of| Modelled { sync: Duration::from_millis(1), ..of.models.clone() })
    ///     .build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cost_model<C: CostModel + 'static>(
        mut self,
        make: impl Fn(&CostSubject) -> C + Send + Sync + 'static,
    ) -> EngineBuilder {
        self.settings.cost = Some(OwnCost::new(make));
        self
    }
}

impl Settings {
    /// Checks that nothing else states the times that a cost model of the caller's own states.
    ///
    /// # Errors
    /// With the setting that does.
    pub(crate) fn check_cost(&self) -> Result<(), Error> {
        let others = [(self.profile.is_some(), "profile"), (self.plans.is_some(), "plans")];
        match others.into_iter().find(|(is_set, _)| *is_set && self.cost.is_some()) {
            None => Ok(()),
            Some((_, other)) => {
                let expected = format!(
                    "without {other}, which state other times; leave one of the two settings out"
                );
                Err(Error::config("cost_model", "a model of the program's own", &expected))
            }
        }
    }

    /// Checks that plans can be stored: those of a cost model of the caller's own cannot be told from others.
    ///
    /// # Errors
    /// If the settings have such a model.
    pub(crate) fn check_stored_plans(&self) -> Result<(), Error> {
        match self.cost {
            None => Ok(()),
            Some(_) => {
                let expected = "without it to prepare plans, because a later start could not tell that \
                                they were made with this model; let the engine plan as it runs";
                Err(Error::config("cost_model", "a model of the program's own", expected))
            }
        }
    }
}

/// The cost model of the settings.
pub(super) fn chosen(shared: Shared<'_>, devices: &[Built]) -> Result<Arc<dyn CostModel>, Error> {
    let Opened { settings, graph, .. } = shared.opened;
    let models = Modelled {
        devices: devices.iter().map(|built| Arc::clone(&built.time)).collect(),
        sync: SYNC_TIME,
        copy_rate: COPY_RATE,
    };
    if let Some(own) = &settings.cost {
        let draft = shared.memory.draft.as_ref().map(|draft| Arc::clone(&draft.graph));
        let subject = CostSubject {
            graphs: [Arc::clone(graph)].into_iter().chain(draft).collect(),
            devices: devices.iter().map(|built| built.info.clone()).collect(),
            models,
        };
        return Ok(own.make(&subject));
    }
    let cost: Arc<dyn CostModel> = match &settings.profile {
        Some(profile) => {
            profile.check_identity(&shared.opened.identity())?;
            Arc::new(Fitted::new(profile, Arc::clone(graph))?)
        }
        None => Arc::new(models),
    };
    Ok(Arc::new(MeasuredGraphs::new(cost, devices)))
}
