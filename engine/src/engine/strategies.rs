//! Builds strategies from an engine's settings.

use std::sync::Arc;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_plan::DeviceId;
use lapwing_plan::moment::arithmetic_classes;
use lapwing_plan::place::{Placed, Places};
use lapwing_plan::strategy::{
    Auto, CpuOnly, GpuOnly, Guarded, MomentRoutes, Strategies, Strategy, StrategyOptions,
};

use crate::config::{Chosen, Settings, StrategyChoice};
use crate::error::Error;

/// The strategy that chooses among the others.
const DECIDER: &str = "auto";

/// Builds strategies by name, each with the caller's options and manual placements.
pub(super) struct PlacedStrategies {
    known: Strategies,
    options: StrategyOptions,
    places: Places,
}

impl PlacedStrategies {
    pub(super) fn new(settings: &Settings, chosen: &Chosen) -> Result<PlacedStrategies, Error> {
        let options = StrategyOptions { in_flight: chosen.permits, ..settings.options.clone() };
        let (known, places) = (settings.strategies.clone(), Places::parse(&settings.places)?);
        Ok(PlacedStrategies { known, options, places })
    }

    /// The strategy that these settings select.
    pub(super) fn choose(
        &self,
        choice: &StrategyChoice,
        chosen: &Chosen,
    ) -> Result<Arc<dyn Strategy>, Error> {
        let kinds: Vec<DeviceKind> = chosen.devices.iter().map(|(spec, _)| spec.kind).collect();
        if chosen.devices.iter().all(|(spec, _)| spec.is_static()) {
            return Err(Error::npu_alone());
        }
        match (choice, &kinds[..]) {
            (StrategyChoice::Suitable, [DeviceKind::Gpu]) => Ok(self.placed(Arc::new(GpuOnly))),
            (StrategyChoice::Suitable, [_]) => Ok(self.placed(Arc::new(CpuOnly))),
            (StrategyChoice::Suitable, _) => self.named(DECIDER),
            (StrategyChoice::Named(name), _) => self.named(name),
            (StrategyChoice::Own(own), _) => {
                Ok(self.placed(Arc::new(Guarded::new(Arc::clone(own)))))
            }
        }
    }

    /// A strategy that chooses among all others, rated with the manual placements applied.
    pub(super) fn decider(&self) -> Auto {
        let candidates = self.known.candidates(&self.options).into_iter();
        let candidates = candidates.map(|one| self.placed(one)).collect();
        Auto::new(candidates, self.options.in_flight).with_moment(self.options.moment)
    }

    /// A note if routes by the moment let answers of this strategy depend on what else the devices do.
    pub(super) fn moment_note(&self, strategy: &str, devices: &[DeviceInfo]) -> Option<String> {
        let is_any = strategy == DECIDER && self.options.moment == MomentRoutes::Any;
        let classes = arithmetic_classes(devices);
        if !is_any || classes.len() < 2 {
            return None;
        }
        let name = |device: &DeviceId| devices[device.0].name.as_str();
        let classes =
            classes.iter().map(|class| class.iter().map(name).collect::<Vec<_>>().join(", "));
        let note = format!(
            "answers may depend on what else the devices do: with --moment any a chunk takes the route on which it ends first, and these \
             devices round in different ways: {}",
            classes.collect::<Vec<_>>().join(" | ")
        );
        tracing::info!("{note}");
        Some(note)
    }

    fn named(&self, name: &str) -> Result<Arc<dyn Strategy>, Error> {
        if name == DECIDER {
            return Ok(Arc::new(self.decider()));
        }
        let found = self.known.get(name, &self.options);
        found
            .map(|found| self.placed(found))
            .map_err(|error| Error::choice("strategy", name, &error))
    }

    fn placed(&self, inner: Arc<dyn Strategy>) -> Arc<dyn Strategy> {
        if self.places.is_empty() {
            return inner;
        }
        let (places, order_swap) = (self.places.clone(), self.options.order_swap);
        Arc::new(Placed { inner, places, order_swap })
    }
}
