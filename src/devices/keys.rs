//! Reads and writes devices as text: `NAME=FORM:KEY=VALUE,…`.

use std::fmt;

use lapwing_kernels::cpu::THREADS_MAX;
use lapwing_kernels::device::DeviceKind;

use super::text::{self, BYTES, CELLS, RATE, SIZES, TIME};
use super::{ArraySettings, DeviceSpec, DeviceSpecError, Rates, Speed};

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

fn rates(spec: &DeviceSpec) -> Option<&Rates> {
    match &spec.speed {
        Speed::Real => None,
        Speed::Throttled(rates) | Speed::Systolic(rates, _) => Some(rates),
    }
}

fn rates_mut(spec: &mut DeviceSpec) -> Option<&mut Rates> {
    match &mut spec.speed {
        Speed::Real => None,
        Speed::Throttled(rates) | Speed::Systolic(rates, _) => Some(rates),
    }
}

fn array(spec: &DeviceSpec) -> Option<&ArraySettings> {
    match &spec.speed {
        Speed::Systolic(_, array) => Some(array),
        _ => None,
    }
}

fn array_mut(spec: &mut DeviceSpec) -> Option<&mut ArraySettings> {
    match &mut spec.speed {
        Speed::Systolic(_, array) => Some(array),
        _ => None,
    }
}

fn any(_: &DeviceSpec) -> bool {
    true
}

fn has_rates(spec: &DeviceSpec) -> bool {
    rates(spec).is_some()
}

fn has_array(spec: &DeviceSpec) -> bool {
    array(spec).is_some()
}

fn has_graphs(spec: &DeviceSpec) -> bool {
    spec.kind == DeviceKind::Npu
}

macro_rules! rate_key {
    ($name:literal, $field:ident, $read:path, $write:expr, $expected:expr) => {
        Key {
            name: $name,
            expected: $expected,
            read: |spec, text| {
                rates_mut(spec)?.$field = $read(text)?;
                Some(())
            },
            write: |spec| Some($write(rates(spec)?.$field)),
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
                array_mut(spec)?.$field = $read(text)?;
                Some(())
            },
            write: |spec| Some($write(array(spec)?.$field)),
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
        of: any,
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

/// The kind of processor that a name begins with.
fn kind_of(name: &str) -> Option<DeviceKind> {
    [DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Npu]
        .into_iter()
        .find(|kind| name.starts_with(kind.name()))
}

fn form_of(spec: &DeviceSpec) -> &'static str {
    match spec.speed {
        Speed::Real => "cores",
        Speed::Throttled(_) => "throttled",
        Speed::Systolic(..) => "systolic",
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
    let pairs: Vec<(&str, &str)> = pairs
        .split(',')
        .filter(|pair| !pair.trim().is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    let mut spec = start((name, form), &pairs)?;
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
fn start(
    (name, form): (&str, &str),
    pairs: &[(&str, &str)],
) -> Result<DeviceSpec, DeviceSpecError> {
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
            let kind = kind_of(name).filter(|kind| kind.name() == name);
            Some(kind.ok_or_else(|| bad_kind(name, "cpu, gpu or npu"))?)
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
        _ => Err(DeviceSpecError::Form { name: name.to_owned(), form: form.to_owned() }),
    }
}

fn set(spec: &mut DeviceSpec, key: &str, value: &str) -> Result<(), DeviceSpecError> {
    let found = KEYS.iter().filter(|known| (known.of)(spec)).find(|known| known.name == key);
    let Some(known) = found else {
        let names: Vec<&str> = KEYS
            .iter()
            .filter(|known| (known.of)(spec))
            .map(|known| known.name)
            .chain(["kind"])
            .collect();
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
    let kind =
        matches!(spec.speed, Speed::Throttled(_)).then(|| format!("kind={}", spec.kind.name()));
    let keys = KEYS.iter().filter(|key| (key.of)(spec));
    let pairs = keys.filter_map(|key| Some(format!("{}={}", key.name, (key.write)(spec)?)));
    for (at, pair) in kind.into_iter().chain(pairs).enumerate() {
        write!(f, "{}{pair}", if at == 0 { ':' } else { ',' })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn parsed(text: &str) -> DeviceSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn written_devices_parse_to_equal_devices() {
        for text in [
            "cpu",
            "gpu",
            "npu",
            "cpu=cores:threads=3",
            "cpu=throttled",
            "gpu=throttled:gflops=40,gbps=8,submit=15us,idle-submit=75us,sync=20us",
            "x=throttled:kind=npu,sizes=32/96,budget=1000",
            "npu-2=systolic:gflops=2.5,budget=256MiB,sizes=32-1024,array=16,floor=0.25,prepare=0",
            "npu-3=systolic:sizes=32/96/160,array=8,gflops=0.001",
            "y=systolic:prepare-gweight=1500ns,submit=1.5ms",
        ] {
            let spec = parsed(text);
            assert_eq!(parsed(&spec.to_string()), spec, "{text} became {spec}");
        }
    }

    #[test]
    fn each_key_sets_its_own_value() {
        let gpu = parsed("gpu=throttled:gflops=40,gbps=8,submit=15us,idle-submit=75us,sync=0.4ms");
        let us = Duration::from_micros;
        let rates = Rates {
            gflops: 40.0,
            gbps: 8.0,
            submit_queued: us(15),
            submit_idle: us(75),
            sync: us(400),
        };
        assert_eq!((gpu.kind, gpu.speed), (DeviceKind::Gpu, Speed::Throttled(rates)));
        let npu = parsed("npu=systolic:budget=2MiB,sizes=33-200,threads=2");
        assert_eq!((npu.graphs.budget, npu.threads), (2 << 20, Some(2)));
        assert_eq!(npu.graphs.sizes, [64, 128]);
        assert_eq!(parsed("fast=throttled:kind=cpu").kind, DeviceKind::Cpu);
        assert_eq!(parsed("fast=throttled").kind, DeviceKind::Gpu);
        assert_eq!(parsed("npu=throttled").kind, DeviceKind::Npu);
    }

    #[test]
    fn errors_say_what_is_accepted() {
        for (text, says) in [
            ("", "letters, digits"),
            ("g pu=throttled", "letters, digits"),
            ("tpu", "unknown device 'tpu' (presets: cpu, gpu, npu, phone)"),
            (
                "gpu=fast",
                "expected cores for no throttling, throttled for stated rates, or systolic for an NPU",
            ),
            ("gpu=throttled:tflops=1", "gflops, gbps, submit, idle-submit, sync, kind"),
            ("gpu=throttled:sizes=32", "unknown key 'sizes' (form throttled has "),
            ("cpu=cores:gflops=1", "unknown key 'gflops' (form cores has threads, kind)"),
            ("gpu=throttled:gflops=0", "positive number"),
            ("gpu=throttled:gflops=inf", "positive number"),
            ("gpu=throttled:gflops", "gflops is ''"),
            ("gpu=throttled:sync=20", "15us"),
            ("gpu=throttled:sync=-1us", "15us"),
            ("gpu=throttled:sync=2h", "15us"),
            ("gpu=throttled:sync=1us,sync=2us", "'sync' is given twice"),
            ("npu=systolic:sizes=0", "32-1024"),
            ("npu=systolic:sizes=33-60", "32-1024"),
            ("npu=systolic:sizes=33/70", "multiples of 32 rows"),
            ("npu=systolic:sizes=16-1024", "multiples of 32 rows"),
            ("npu=systolic:sizes=32/131072", "up to 65536"),
            ("npu=systolic:array=24", "1, 2, 4, 8, 16 or 32 cells"),
            ("npu=systolic:array=64", "1, 2, 4, 8, 16 or 32 cells"),
            ("npu=systolic:array=0", "1, 2, 4, 8, 16 or 32 cells"),
            ("gpu=throttled:gflops=1e-4", "at least 0.001"),
            ("gpu=throttled:gbps=0.0009", "at least 0.001"),
            ("gpu=throttled:gbps=nan", "at least 0.001"),
            ("npu=systolic:budget=0", "64MiB"),
            ("npu=systolic:floor=2", "at most 1"),
            ("npu=systolic:kind=gpu", "npu for the form systolic"),
            ("gpu=cores", "cpu for the form cores"),
            ("x=throttled:kind=tpu", "cpu, gpu or npu"),
        ] {
            let error = text.parse::<DeviceSpec>().expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let twice = DeviceSpec::list("phone+gpu").expect_err("two GPUs of one name");
        assert!(twice.to_string().contains("'gpu' is given twice"));
    }
}
