//! Builds strategies from an engine's settings.

use std::sync::Arc;

use lapwing_kernels::device::DeviceKind;
use lapwing_plan::place::{Placed, Places};
use lapwing_plan::strategy::{
    Auto, CpuOnly, GpuOnly, Guarded, Strategy, StrategyOptions, by_name, registry,
};

use crate::config::{Chosen, Settings, StrategyChoice};
use crate::error::Error;

/// The strategy that chooses among the others.
const DECIDER: &str = "auto";

/// Builds strategies by name, each with the caller's options and manual placements.
pub(super) struct Strategies {
    options: StrategyOptions,
    places: Places,
}

impl Strategies {
    pub(super) fn new(settings: &Settings, chosen: &Chosen) -> Result<Strategies, Error> {
        let options = StrategyOptions { in_flight: chosen.permits, ..settings.options.clone() };
        Ok(Strategies { options, places: Places::parse(&settings.places)? })
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
        let others = registry().iter().filter(|known| known.name != DECIDER);
        let candidates = others.map(|known| self.placed((known.make)(&self.options))).collect();
        Auto::new(candidates, self.options.in_flight)
    }

    fn named(&self, name: &str) -> Result<Arc<dyn Strategy>, Error> {
        if name == DECIDER {
            return Ok(Arc::new(self.decider()));
        }
        let found = by_name(name, &self.options).ok_or_else(|| {
            let names: Vec<&str> = registry().iter().map(|known| known.name).collect();
            Error::unknown("strategy", name, &names.join(", "))
        })?;
        Ok(self.placed(found))
    }

    fn placed(&self, inner: Arc<dyn Strategy>) -> Arc<dyn Strategy> {
        if self.places.is_empty() {
            return inner;
        }
        let (places, order_swap) = (self.places.clone(), self.options.order_swap);
        Arc::new(Placed { inner, places, order_swap })
    }
}
