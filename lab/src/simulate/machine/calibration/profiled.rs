//! A calibration of devices that were measured op by op.

use std::sync::Arc;

use lapwing_actors::simulate::OwnDevice;
use lapwing_engine::profile::{Fitted, FittedTimes, Profile};
use lapwing_kernels::device::DeviceInfo;
use lapwing_plan::DeviceId;
use lapwing_plan::soc::Workload;

use super::{Calibration, Planned, RATES};
use crate::simulate::error::SimulateError;
use crate::simulate::machine::Machine;
use crate::simulate::scenario::Scenario;

impl Calibration {
    /// With the profile by which the live engine planned, of the devices and in the order of the machine. Simulated devices then are
    /// what the live ones say of themselves, and their ops take the measured times.
    ///
    /// # Errors
    /// If the model cannot be read, or the profile is not of these devices.
    pub fn with_profile(mut self, profile: &Profile) -> Result<Calibration, SimulateError> {
        let wrong = |reason: String| SimulateError::Preset { reason };
        let names = |devices: &[String]| devices.join(" + ");
        let measured: Vec<String> = profile.devices.iter().map(|it| it.name.clone()).collect();
        let live: Vec<String> = self.infos.iter().map(|info| info.name.to_string()).collect();
        if measured != live {
            let (measured, live) = (names(&measured), names(&live));
            return Err(wrong(format!("the profile is of {measured}, but {live} ran")));
        }
        let mut scenario = Scenario::on(self.machine.clone());
        scenario.model.clone_from(&self.model);
        let graph = Arc::new(scenario.load_model()?.0.graph);
        let fitted = Fitted::new(profile, graph).map_err(|error| wrong(error.to_string()))?;
        self.planned = Planned::Profile(Arc::new(fitted));
        Ok(self)
    }

    /// With a profile, devices that take the measured times of their ops, at the speed by which their rates in a machine differ from those
    /// of the profile; otherwise none.
    pub(super) fn own_devices(&self, machine: &Machine) -> Vec<OwnDevice> {
        let Planned::Profile(fitted) = &self.planned else { return Vec::new() };
        let device = |(at, info): (usize, &DeviceInfo)| {
            let rate = |machine: &Machine| {
                let number = machine.device.get(at).and_then(|device| device.numbers.get(RATES[0]));
                number.map_or(1.0, |number| number.value)
            };
            let (fitted, speed) = (Arc::clone(fitted), rate(machine) / rate(&self.machine));
            let law =
                move |_: &Workload| FittedTimes::new(Arc::clone(&fitted), DeviceId(at), speed);
            OwnDevice::new(info.clone(), law)
        };
        self.infos.iter().enumerate().map(device).collect()
    }
}
