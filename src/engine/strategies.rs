//! Strategies as an engine's settings want them.

use std::sync::Arc;

use lapwing_kernels::device::DeviceKind;
use lapwing_plan::place::{Placed, Places};
use lapwing_plan::strategy::{
    Auto, CpuOnly, GpuOnly, Strategy, StrategyOptions, by_name, registry,
};

use crate::config::{Chosen, Settings, StrategyChoice};
use crate::error::Error;

/// The strategy that decides among the others.
const DECIDER: &str = "auto";

/// Makes strategies by name, each with the options and the placements by hand that the caller
/// wants.
pub(super) struct Strategies {
    options: StrategyOptions,
    places: Places,
}

impl Strategies {
    pub(super) fn new(settings: &Settings, chosen: &Chosen) -> Result<Strategies, Error> {
        let options = StrategyOptions { in_flight: chosen.permits, ..settings.options.clone() };
        Ok(Strategies { options, places: Places::parse(&settings.places)? })
    }

    /// The strategy of an engine with these settings.
    pub(super) fn choose(
        &self,
        choice: &StrategyChoice,
        chosen: &Chosen,
    ) -> Result<Arc<dyn Strategy>, Error> {
        let kinds: Vec<DeviceKind> = chosen.devices.iter().map(|(spec, _)| spec.kind).collect();
        if kinds.iter().all(|kind| *kind == DeviceKind::Npu) {
            return Err(Error::npu_alone());
        }
        match (choice, &kinds[..]) {
            (StrategyChoice::Suitable, [DeviceKind::Gpu]) => Ok(self.placed(Arc::new(GpuOnly))),
            (StrategyChoice::Suitable, [_]) => Ok(self.placed(Arc::new(CpuOnly))),
            (StrategyChoice::Suitable, _) => self.named(DECIDER),
            (StrategyChoice::Named(name), _) => self.named(name),
            (StrategyChoice::Own(own), _) => Ok(self.placed(Arc::clone(own))),
        }
    }

    /// A decider among all others: it rates them with what is placed by hand.
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
            Error::config("strategy", format!("'{name}'"), &format!("one of {}", names.join(", ")))
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
