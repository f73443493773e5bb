//! Devices of this machine in place of the stand-ins that the presets `gpu` and `npu` describe.

use lapwing_kernels::device::DeviceKind;

use super::{Backend, DeviceSpec, DeviceSpecError, Pace};

/// Devices, with what a user should know of how they were chosen.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PresentDevices {
    /// The devices.
    pub devices: Vec<DeviceSpec>,
    /// A line for each preset that a processor of this machine took the place of, and one that names the devices
    /// which are emulated.
    pub notes: Vec<String>,
}

/// A processor that a driver of this machine has.
struct Found {
    device: DeviceSpec,
    /// The processor and its driver.
    what: String,
}

impl DeviceSpec {
    /// Parses devices as [`list`](DeviceSpec::list) does. The presets `gpu` and `npu` alone, without a form, are the
    /// GPU with an OpenCL driver and the NPU of OpenVINO or QNN of this machine, as far as it has them. `phone`,
    /// `gpu=throttled` and `npu=systolic` are always emulated.
    ///
    /// # Errors
    /// [`DeviceSpecError`].
    pub fn list_present(text: &str) -> Result<PresentDevices, DeviceSpecError> {
        present(text, find)
    }

    /// Whether CPU threads compute its values in the place of the processor that it stands for.
    pub fn is_emulated(&self) -> bool {
        matches!(
            (&self.backend, &self.pace),
            (Backend::Cpu | Backend::Systolic(_), Pace::Throttled(_))
        )
    }
}

fn present(
    text: &str,
    find: impl Fn(DeviceKind) -> Option<Found>,
) -> Result<PresentDevices, DeviceSpecError> {
    let mut present = PresentDevices { devices: DeviceSpec::list(text)?, notes: Vec::new() };
    let mut absent = Vec::new();
    for (name, kind) in [("gpu", DeviceKind::Gpu), ("npu", DeviceKind::Npu)] {
        if !text.split('+').any(|part| part.trim() == name) {
            continue;
        }
        let device = present.devices.iter_mut().find(|device| device.name == name);
        match (find(kind), device) {
            (Some(found), Some(device)) => {
                let emulated = if kind == DeviceKind::Gpu { "throttled" } else { "systolic" };
                present.notes.push(format!(
                    "{name} is {} ({name}={emulated} emulates one instead)",
                    found.what
                ));
                *device = found.device;
            }
            _ => absent.push(kind.name().to_uppercase()),
        }
    }
    let emulated: Vec<&DeviceSpec> =
        present.devices.iter().filter(|device| device.is_emulated()).collect();
    if !emulated.is_empty() {
        present.notes.push(about_emulation(&emulated, &absent));
    }
    Ok(present)
}

/// One line on the devices that are emulated, and which kinds of processor no driver has.
fn about_emulation(emulated: &[&DeviceSpec], absent: &[String]) -> String {
    let names: Vec<&str> = emulated.iter().map(|device| &*device.name).collect();
    let rates: Vec<String> =
        emulated.iter().filter_map(|device| Some(device.rates()?.gflops.to_string())).collect();
    let (are, their) = if names.len() == 1 { ("is", "its") } else { ("are", "their") };
    let missing = match absent {
        [] => String::new(),
        kinds => format!("; no driver of this machine has a usable {}", kinds.join(" or ")),
    };
    format!(
        "{} {are} emulated: CPU threads compute {their} values, throttled to {} GFLOP/s{missing}",
        listed(&names),
        listed(&rates)
    )
}

/// A list in words: `a`, `a and b`, `a, b and c`.
fn listed<T: AsRef<str>>(all: &[T]) -> String {
    let texts: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
    match &texts[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => texts.concat(),
    }
}

/// The processor of that kind that a driver of this machine has, if there is one.
fn find(kind: DeviceKind) -> Option<Found> {
    match kind {
        DeviceKind::Cpu | DeviceKind::Own(_) => None,
        DeviceKind::Gpu => opencl(),
        DeviceKind::Npu => openvino().or_else(qnn),
    }
}

#[cfg(feature = "opencl")]
fn opencl() -> Option<Found> {
    use lapwing_kernels::opencl::{OpenClKind, devices};

    let all = devices().ok()?;
    let gpu = all.iter().find(|info| info.kind == OpenClKind::Gpu)?;
    let what = format!("{}, with the OpenCL driver {}", gpu.name, gpu.platform);
    Some(Found { device: DeviceSpec::opencl("gpu", ""), what })
}

#[cfg(feature = "openvino")]
fn openvino() -> Option<Found> {
    let all = lapwing_kernels::npu::openvino_devices().ok()?;
    let npu = all.iter().find(|info| info.device.starts_with("NPU"))?;
    let what = format!("{}, with OpenVINO", npu.processor);
    Some(Found { device: DeviceSpec::openvino("npu", ""), what })
}

#[cfg(feature = "qnn")]
fn qnn() -> Option<Found> {
    let npu = lapwing_kernels::npu::qnn_device().ok().filter(|info| !info.emulated)?;
    let what = format!("{}, with QNN", npu.processor);
    Some(Found { device: DeviceSpec::qnn("npu", super::QnnSettings::default()), what })
}

#[cfg(not(feature = "opencl"))]
fn opencl() -> Option<Found> {
    None
}

#[cfg(not(feature = "openvino"))]
fn openvino() -> Option<Found> {
    None
}

#[cfg(not(feature = "qnn"))]
fn qnn() -> Option<Found> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, gpu: bool) -> (Vec<String>, Vec<String>) {
        let find = |kind| {
            let what = "Arc 140V, with the OpenCL driver Intel".to_owned();
            (gpu && kind == DeviceKind::Gpu)
                .then(|| Found { device: DeviceSpec::opencl("gpu", ""), what })
        };
        let present = present(text, find).expect(text);
        (present.devices.iter().map(ToString::to_string).collect(), present.notes)
    }

    #[test]
    fn a_preset_is_a_processor_of_this_machine_or_says_that_it_is_emulated() {
        let (devices, notes) = shown("cpu+gpu", true);
        assert_eq!(devices[1], "gpu=opencl");
        assert_eq!(
            notes,
            ["gpu is Arc 140V, with the OpenCL driver Intel (gpu=throttled emulates one instead)"]
        );
        let (devices, notes) = shown("cpu + gpu + npu", false);
        assert!(devices[1].starts_with("gpu=throttled") && devices[2].starts_with("npu=systolic"));
        assert_eq!(
            notes,
            [
                "gpu and npu are emulated: CPU threads compute their values, throttled to 10 and 40 GFLOP/s; \
              no driver of this machine has a usable GPU or NPU"
            ]
        );
    }

    #[test]
    fn a_phone_and_explicit_forms_are_emulated_whatever_the_machine_has() {
        let (devices, notes) = shown("phone", true);
        assert!(devices[1].starts_with("gpu=throttled"));
        assert_eq!(
            notes,
            [
                "cpu, gpu and npu are emulated: CPU threads compute their values, throttled to 8, 10 and 40 \
              GFLOP/s"
            ]
        );
        let (devices, notes) = shown("gpu=throttled:gflops=2.5", true);
        assert!(devices[0].starts_with("gpu=throttled"));
        assert_eq!(
            notes,
            ["gpu is emulated: CPU threads compute its values, throttled to 2.5 GFLOP/s"]
        );
        assert_eq!(shown("cpu", true).1, Vec::<String>::new());
        assert_eq!(shown("gpu=opencl+npu=openvino", false).1, Vec::<String>::new());
    }
}
