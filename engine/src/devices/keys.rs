//! Reads and writes devices as text: `NAME=FORM:KEY=VALUE,…`.

use std::fmt;

use lapwing_kernels::cpu::THREADS_MAX;
use lapwing_kernels::device::DeviceKind;

use super::text::{self, BYTES, CELLS, RATE, SIZES, TIME};
use super::{Backend, DeviceSpec, DeviceSpecError, Pace, QnnSettings};

mod int8;
mod opencl;
mod qnn;

/// A key: how its value is read and written, and which devices have it.
struct Key {
    name: &'static str,
    expected: &'static str,
    read: fn(&mut DeviceSpec, &str) -> Option<()>,
    /// `None` if the device has no such value.
    write: fn(&DeviceSpec) -> Option<String>,
    /// Whether a device has this key.
    of: fn(&DeviceSpec) -> bool,
}

fn has_rates(spec: &DeviceSpec) -> bool {
    spec.rates().is_some()
}

fn has_array(spec: &DeviceSpec) -> bool {
    spec.array().is_some()
}

fn has_graphs(spec: &DeviceSpec) -> bool {
    spec.is_static()
}

fn has_openvino(spec: &DeviceSpec) -> bool {
    spec.openvino_device().is_some()
}

macro_rules! rate_key {
    ($name:literal, $field:ident, $read:path, $write:expr, $expected:expr) => {
        Key {
            name: $name,
            expected: $expected,
            read: |spec, text| {
                spec.rates_mut()?.$field = $read(text)?;
                Some(())
            },
            write: |spec| Some($write(spec.rates()?.$field)),
            of: has_rates,
        }
    };
}

macro_rules! array_key {
    ($name:literal, $field:ident, $read:expr, $write:expr, $expected:expr) => {
        Key {
            name: $name,
            expected: $expected,
            read: |spec, text| {
                spec.array_mut()?.$field = $read(text)?;
                Some(())
            },
            write: |spec| Some($write(spec.array()?.$field)),
            of: has_array,
        }
    };
}

fn number(value: f64) -> String {
    value.to_string()
}

const KEYS: &[Key] = &[
    Key {
        name: "threads",
        expected: "a number of threads, at least 1",
        read: |spec, text| {
            let threads = text.parse().ok().filter(|n| (1..=THREADS_MAX).contains(n));
            spec.threads = Some(threads?);
            Some(())
        },
        write: |spec| spec.threads.map(|threads| threads.to_string()),
        of: |spec| spec.has_threads() || has_openvino(spec),
    },
    Key {
        name: "device",
        expected: "OpenVINO's name of a device, such as NPU or CPU",
        read: |spec, text| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
            (!text.is_empty() && text.len() <= 32 && text.chars().all(is_name)).then_some(())?;
            spec.backend = Backend::OpenVino(text.to_owned());
            Some(())
        },
        write: |spec| spec.openvino_device().filter(|name| !name.is_empty()).map(str::to_owned),
        of: has_openvino,
    },
    rate_key!("gflops", gflops, text::rate, number, RATE),
    rate_key!("gbps", gbps, text::rate, number, RATE),
    rate_key!("submit", submit_queued, text::time, text::write_time, TIME),
    rate_key!("idle-submit", submit_idle, text::time, text::write_time, TIME),
    rate_key!("sync", sync, text::time, text::write_time, TIME),
    array_key!("array", array, text::cells, |n: usize| n.to_string(), CELLS),
    array_key!("floor", floor, text::share, number, "a share above 0, at most 1"),
    array_key!("prepare", prepare, text::time, text::write_time, TIME),
    array_key!("prepare-gweight", prepare_gweight, text::time, text::write_time, TIME),
    int8::ACTIVATIONS,
    int8::CLIP,
    int8::OUTLIERS,
    int8::PRUNE,
    Key {
        name: "sizes",
        expected: SIZES,
        read: |spec, text| {
            spec.graphs.sizes = text::sizes(text)?;
            Some(())
        },
        write: |spec| Some(text::write_sizes(&spec.graphs.sizes)),
        of: has_graphs,
    },
    Key {
        name: "budget",
        expected: BYTES,
        read: |spec, text| {
            spec.graphs.budget = text::bytes(text)?;
            Some(())
        },
        write: |spec| Some(text::write_bytes(spec.graphs.budget)),
        of: has_graphs,
    },
];

/// The keys of a device.
fn keys_of(spec: &DeviceSpec) -> impl Iterator<Item = &'static Key> {
    qnn::KEYS.iter().chain(opencl::KEYS).chain(KEYS).filter(|key| (key.of)(spec))
}

/// The kind of processor that a name begins with.
fn kind_of(name: &str) -> Option<DeviceKind> {
    DeviceKind::ALL.into_iter().find(|kind| name.starts_with(kind.name()))
}

fn form_of(spec: &DeviceSpec) -> &'static str {
    match (&spec.backend, &spec.pace) {
        (Backend::Cpu, Pace::Native) => "cores",
        (Backend::Cpu, Pace::Throttled(_)) => "throttled",
        (Backend::Systolic(_), _) => "systolic",
        (Backend::OpenCl(_), _) => "opencl",
        (Backend::OpenVino(_), _) => "openvino",
        (Backend::Qnn(_), _) => "qnn",
    }
}

pub(super) fn parse(text: &str) -> Result<DeviceSpec, DeviceSpecError> {
    let (name, form) = match text.split_once('=') {
        Some((name, form)) => (name.trim(), Some(form.trim())),
        None => (text.trim(), None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 32 || !name.chars().all(is_name) {
        return Err(DeviceSpecError::Name { name: name.to_owned() });
    }
    let Some(form) = form else {
        return match name {
            "cpu" => Ok(DeviceSpec::cpu()),
            "gpu" => Ok(DeviceSpec::throttled("gpu", DeviceKind::Gpu)),
            "npu" => Ok(DeviceSpec::systolic("npu")),
            _ => Err(DeviceSpecError::Preset { name: name.to_owned() }),
        };
    };
    let (form, pairs) = form.split_once(':').unwrap_or((form, ""));
    let (which, parts) = match form {
        "opencl" => opencl::divided(pairs),
        _ => (String::new(), pairs.split(',').collect()),
    };
    let pairs: Vec<(&str, &str)> = parts
        .into_iter()
        .filter(|pair| !pair.trim().is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    let mut spec = match form {
        "opencl" => DeviceSpec::opencl(name, &which),
        _ => start(name, form, &pairs)?,
    };
    for (at, (key, value)) in pairs.iter().enumerate() {
        if pairs[..at].iter().any(|(other, _)| other == key) {
            let (name, key) = (name.to_owned(), (*key).to_owned());
            return Err(DeviceSpecError::KeyTwice { name, key });
        }
        if *key != "kind" {
            set(&mut spec, key, value)?;
        }
    }
    Ok(spec)
}

/// A device with the defaults of its form and kind.
fn start(name: &str, form: &str, pairs: &[(&str, &str)]) -> Result<DeviceSpec, DeviceSpecError> {
    let given = pairs.iter().find(|(key, _)| *key == "kind").map(|(_, kind)| *kind);
    let bad_kind = |value: &str, expected| DeviceSpecError::Value {
        name: name.to_owned(),
        key: "kind".to_owned(),
        value: value.to_owned(),
        expected,
    };
    let kind = match given {
        None => kind_of(name),
        Some(name) => {
            Some(DeviceKind::by_name(name).ok_or_else(|| bad_kind(name, "cpu, gpu or npu"))?)
        }
    };
    match form {
        "cores" if matches!(kind, None | Some(DeviceKind::Cpu)) => {
            Ok(DeviceSpec { name: name.to_owned(), ..DeviceSpec::cpu() })
        }
        "cores" => Err(bad_kind(
            kind.map_or("", DeviceKind::name),
            "cpu for the form cores; \
             an emulated device is throttled or systolic",
        )),
        "throttled" => Ok(DeviceSpec::throttled(name, kind.unwrap_or(DeviceKind::Gpu))),
        "systolic" if given.is_none() || kind == Some(DeviceKind::Npu) => {
            Ok(DeviceSpec::systolic(name))
        }
        "systolic" => Err(bad_kind(given.unwrap_or_default(), "npu for the form systolic")),
        "openvino" if given.is_none() || kind == Some(DeviceKind::Npu) => {
            Ok(DeviceSpec::openvino(name, ""))
        }
        "openvino" => Err(bad_kind(given.unwrap_or_default(), "npu for the form openvino")),
        "qnn" if given.is_none() || kind == Some(DeviceKind::Npu) => {
            Ok(DeviceSpec::qnn(name, QnnSettings::default()))
        }
        "qnn" => Err(bad_kind(given.unwrap_or_default(), "npu for the form qnn")),
        _ => Err(DeviceSpecError::Form { name: name.to_owned(), form: form.to_owned() }),
    }
}

fn set(spec: &mut DeviceSpec, key: &str, value: &str) -> Result<(), DeviceSpecError> {
    let Some(known) = keys_of(spec).find(|known| known.name == key) else {
        let names: Vec<&str> = keys_of(spec).map(|known| known.name).chain(["kind"]).collect();
        return Err(DeviceSpecError::Key {
            name: spec.name.clone(),
            form: form_of(spec),
            key: key.to_owned(),
            known: names.join(", "),
        });
    };
    (known.read)(spec, value).ok_or_else(|| DeviceSpecError::Value {
        name: spec.name.clone(),
        key: key.to_owned(),
        value: value.to_owned(),
        expected: known.expected,
    })
}

pub(super) fn write(spec: &DeviceSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}={}", spec.name, form_of(spec))?;
    let which = spec.opencl_settings().map(|settings| settings.which.clone());
    let which = which.filter(|which| !which.is_empty());
    let kind = (form_of(spec) == "throttled").then(|| format!("kind={}", spec.kind.name()));
    let pairs =
        keys_of(spec).filter_map(|key| Some(format!("{}={}", key.name, (key.write)(spec)?)));
    for (at, pair) in which.into_iter().chain(kind).chain(pairs).enumerate() {
        write!(f, "{}{pair}", if at == 0 { ':' } else { ',' })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
