//! The devices of a run: processors of the system, and devices of the caller's own.

use std::sync::Arc;

use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_plan::cost::{AsSimulated, Modelled};
use lapwing_plan::soc::{Soc, Workload};
use lapwing_plan::time::TimeModel;

use super::SocOptions;
use crate::simulate::error::SocRunError;

/// The devices of a run, by number: the processors in the order of [`Soc::KINDS`], then the caller's own.
pub(super) struct Devices {
    pub(super) infos: Vec<DeviceInfo>,
    /// The models that drive them.
    pub(super) times: Vec<Arc<dyn TimeModel>>,
    /// Predicts their times.
    pub(super) cost: AsSimulated,
    pub(super) units: Vec<Unit>,
}

/// A device in the figures of a run.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) power: Power,
}

/// The power of a device while it computes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Power {
    /// That of the system's processor of this kind.
    Of(DeviceKind),
    /// That of a device of the caller's own, in W, if it is known.
    Own(Option<f64>),
}

impl Devices {
    /// The processors of these kinds, and the options' own devices.
    pub(super) fn new(
        soc: &Soc,
        kinds: &[DeviceKind],
        workload: &Workload,
        options: &SocOptions,
    ) -> Result<Devices, SocRunError> {
        let SocOptions { own, sync, planned_sync, .. } = options;
        let mut infos = Soc::devices(kinds);
        infos.extend(own.iter().map(|device| device.info().clone()));
        let is_twice = |at: &usize| infos[..*at].iter().any(|info| info.name == infos[*at].name);
        if let Some(at) = (0..infos.len()).find(is_twice) {
            return Err(SocRunError::NameTwice { name: infos[at].name.clone() });
        }
        let laws = own.iter().map(|device| device.times(workload));
        let laws = laws.collect::<Result<Vec<Arc<dyn TimeModel>>, SocRunError>>()?;
        let with_own = |mut times: Vec<Arc<dyn TimeModel>>| {
            times.extend(laws.iter().cloned());
            times
        };
        let models = soc.cost(kinds, workload, *planned_sync);
        let models = Modelled { devices: with_own(models.devices), ..models };
        let times = match sync == planned_sync {
            true => models.devices.clone(),
            false => with_own(soc.times(kinds, workload, *sync)),
        };
        let processor =
            |kind: &DeviceKind| Unit { name: kind.name().to_owned(), power: Power::Of(*kind) };
        let mut units: Vec<Unit> = kinds.iter().map(processor).collect();
        units.extend(own.iter().map(|device| Unit {
            name: device.name().to_owned(),
            power: Power::Own(device.power()),
        }));
        let own = own.iter().map(|device| device.name().to_owned()).collect();
        Ok(Devices { infos, times, cost: AsSimulated { models, own }, units })
    }

    /// Numbers of the devices in the order in which the options name them. Devices that they do not name come last, the
    /// caller's own at the very end.
    pub(super) fn order(&self, asked: &[DeviceKind]) -> Vec<usize> {
        let place = |number: &usize| match self.units[*number].power {
            Power::Of(kind) => asked.iter().position(|asked| *asked == kind).unwrap_or(asked.len()),
            Power::Own(_) => asked.len() + 1,
        };
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by_key(place);
        order
    }
}
