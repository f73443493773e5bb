//! The devices of a scenario: those of its processors, and devices of the caller's own.

use lapwing_actors::simulate::OwnDevice;
use lapwing_engine::devices::{DeviceSpec, build};
use lapwing_kernels::device::DeviceKind;
use lapwing_plan::registry::ChoiceError;
use lapwing_plan::soc::{Soc, Workload};

use super::Scenario;
use crate::simulate::error::SimulateError;
use crate::simulate::processors::Processors;

/// Processors of a SoC that compute if a scenario chooses no devices. The CPU only controls, unless the strategy requires
/// it.
const USUAL: [DeviceKind; 2] = [DeviceKind::Gpu, DeviceKind::Npu];

/// A choice of devices.
#[derive(Clone)]
pub(in crate::simulate) struct ChosenDevices {
    /// As the setting `device` gives it.
    text: String,
    names: Vec<String>,
    /// Devices that the text describes by their rates.
    described: Vec<OwnDevice>,
}

/// The devices of a run.
pub(in crate::simulate) struct Picked {
    /// Devices of the processors, as indices in [`Scenario::present`].
    pub(in crate::simulate) present: Vec<usize>,
    pub(in crate::simulate) own: Vec<OwnDevice>,
    /// Whether the scenario chooses them.
    pub(in crate::simulate) is_chosen: bool,
}

impl Scenario {
    /// Adds a device of the caller's own: a processor with a law of time of its own. It computes beside the devices of the
    /// processors, and takes the place of one that has its name. Strategies plan with the same law.
    ///
    /// Strategies that assign roles to a CPU, a GPU and an NPU do not use a device of another kind; `auto-place`,
    /// `barrier-per-op`, `layer-split`, `tensor-level` and `auto` do, and so do those that ask for its kind
    /// ([`PlanInput::need`](lapwing_plan::strategy::PlanInput::need)).
    #[must_use]
    pub fn own_device(mut self, device: OwnDevice) -> Scenario {
        self.own.push(device);
        self
    }

    /// Chooses the devices that compute, as the setting `device` does. Without a choice they are all devices of a machine,
    /// and all own ones; of a SoC the GPU and the NPU, and the CPU if the strategy requires it.
    ///
    /// # Errors
    /// [`SimulateError::UnknownDevice`] and [`SimulateError::DeviceTwice`].
    pub fn devices<S: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = S>,
    ) -> Result<Scenario, SimulateError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.choose_devices(&names.join("+"))?;
        Ok(self)
    }

    /// The chosen devices, as the setting `device` gives them; `None` without a choice.
    pub fn chosen_devices(&self) -> Option<&str> {
        self.chosen.as_ref().map(|chosen| &*chosen.text)
    }

    /// Names of the devices that can be chosen.
    pub fn device_names(&self) -> Vec<String> {
        let own = self.own.iter().map(|device| device.name().to_owned());
        let mut names = self.present();
        names.extend(own.filter(|name| !self.present().contains(name)));
        names
    }

    /// Names of the processors' devices.
    pub(in crate::simulate) fn present(&self) -> Vec<String> {
        match self.processors() {
            Processors::Soc(_) => Soc::KINDS.iter().map(|kind| kind.name().to_owned()).collect(),
            Processors::Machine(machine) => {
                machine.device.iter().map(|device| device.name().to_owned()).collect()
            }
        }
    }

    /// Chooses devices: names joined by `+`, or `NAME=FORM:KEY=VALUE,…` for one with the times of a throttled live device.
    pub(super) fn choose_devices(&mut self, text: &str) -> Result<(), SimulateError> {
        let (mut names, mut described) = (Vec::new(), Vec::new());
        for part in text.split('+').map(str::trim) {
            if part.contains('=') {
                let device = described_by(part, usize::MAX - described.len())?;
                names.push(device.name().to_owned());
                described.push(device);
            } else {
                names.push(part.to_owned());
            }
        }
        let text = text.to_owned();
        let before = self.chosen.replace(ChosenDevices { text, names, described });
        match self.pick() {
            Ok(_) => Ok(()),
            Err(error) => {
                self.chosen = before;
                Err(error)
            }
        }
    }

    /// The devices of a run.
    ///
    /// # Errors
    /// When a chosen device does not exist, or two devices have the same name.
    pub(in crate::simulate) fn pick(&self) -> Result<Picked, SimulateError> {
        let (own, present) = (&self.own, self.present());
        let twice = |names: &[&str]| {
            let is_twice = |at: &usize| names[..*at].contains(&names[*at]);
            let found = (0..names.len()).find(is_twice).map(|at| names[at].to_owned());
            found.map_or(Ok(()), |device| Err(SimulateError::DeviceTwice { device }))
        };
        twice(&own.iter().map(OwnDevice::name).collect::<Vec<_>>())?;
        let Some(ChosenDevices { names, described, .. }) = &self.chosen else {
            let is_soc = matches!(self.processors(), Processors::Soc(_));
            let is_usual = |name: &str| !is_soc || USUAL.iter().any(|kind| kind.name() == name);
            let is_replaced = |name: &str| own.iter().any(|device| device.name() == name);
            let stays = |at: &usize| is_usual(&present[*at]) && !is_replaced(&present[*at]);
            let present = (0..present.len()).filter(stays).collect();
            return Ok(Picked { present, own: own.clone(), is_chosen: false });
        };
        twice(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
        let mut picked = Picked { present: Vec::new(), own: Vec::new(), is_chosen: true };
        for name in names {
            let of_own = described.iter().chain(own).find(|device| device.name() == name);
            match (of_own, present.iter().position(|known| known == name)) {
                (Some(device), _) => picked.own.push(device.clone()),
                (None, Some(at)) => picked.present.push(at),
                (None, None) => {
                    let known = self.device_names();
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let source = ChoiceError::unknown("device", name, &known);
                    return Err(SimulateError::UnknownDevice { source });
                }
            }
        }
        // A route's devices have the order of the processors, whatever the order of the choice.
        picked.present.sort_unstable();
        Ok(picked)
    }

    /// Text that tells own devices from others.
    pub(super) fn own_identity(&self) -> String {
        self.own.iter().map(|device| format!(" {}", device.identity())).collect()
    }
}

/// A device that a text describes by its rates. If it has memory of its own, this is the memory of that number.
fn described_by(text: &str, memory: usize) -> Result<OwnDevice, SimulateError> {
    let wrong = |expected: String| SimulateError::BadValue {
        key: "device".to_owned(),
        value: text.to_owned(),
        expected,
    };
    let spec: DeviceSpec = text.parse().map_err(|error| wrong(format!("{error}")))?;
    if !spec.is_throttled() {
        let expected = "its form must be throttled or systolic, because no other states its times";
        return Err(wrong(expected.to_owned()));
    }
    let times = {
        let spec = spec.clone();
        move |workload: &Workload| build::time_model(&spec, &workload.graph, build::estimated(1))
    };
    Ok(OwnDevice::with_law(build::info(memory, &spec), times))
}

#[cfg(test)]
mod tests;
