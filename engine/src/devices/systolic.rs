//! A systolic array in software: an emulated NPU.

use lapwing_kernels::device::DeviceKind;

use super::back_end::{BackEnd, Form, ThreadUse};
use super::build::{Built, Shared, on_threads};
use super::keys::{GRAPHS, Key, RATES, THREADS, number};
use super::text::{self, CELLS, TIME};
use super::{Backend, DeviceSpec, Pace, Rates};
use crate::config::Threads;
use crate::error::Error;

mod int8;
mod settings;

pub use settings::ArraySettings;

pub(super) const FORM: Form = Form {
    name: "systolic",
    divide: None,
    names_kind: false,
    start: |name, kind, _| {
        kind.npu("npu for the form systolic")?;
        Ok(DeviceSpec::systolic(name))
    },
};

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
            of: |_| true,
        }
    };
}

const ARRAY: &[Key] = &[
    array_key!("array", array, text::cells, |n: usize| n.to_string(), CELLS),
    array_key!("floor", floor, text::share, number, "a share above 0, at most 1"),
    array_key!("prepare", prepare, text::time, text::write_time, TIME),
    array_key!("prepare-gweight", prepare_gweight, text::time, text::write_time, TIME),
];

impl BackEnd for ArraySettings {
    fn form(&self, _: &DeviceSpec) -> &'static Form {
        &FORM
    }

    fn keys(&self) -> &'static [&'static [Key]] {
        &[THREADS, RATES, ARRAY, int8::KEYS, GRAPHS]
    }

    fn check(&self, spec: &DeviceSpec) -> Result<(), &'static str> {
        match (spec.pace, spec.kind) {
            (_, DeviceKind::Cpu | DeviceKind::Gpu | DeviceKind::Own(_)) => {
                Err("a systolic array must be an NPU")
            }
            (Pace::Native, DeviceKind::Npu) => {
                Err("a systolic array must be throttled to stated rates")
            }
            _ if spec.memory.is_some() => {
                Err("only an emulated GPU can have memory of its own; leave it out")
            }
            _ if self.int8.is_some_and(|int8| !int8.outliers && int8.prune > 0.0) => Err(
                "prune leaves out outliers that outliers=none does not compute; give one of them",
            ),
            _ => Ok(()),
        }
    }

    fn threads(&self) -> ThreadUse {
        ThreadUse::Engine
    }

    fn rounds_as_cpu(&self) -> bool {
        self.int8.is_none()
    }

    fn refuses_rows(&self, _: &DeviceSpec) -> Option<&'static str> {
        Some("its graphs quantise activations in blocks")
    }

    fn build(
        &self,
        number: usize,
        spec: &DeviceSpec,
        threads: &Threads,
        shared: &Shared<'_>,
    ) -> Result<Built, Error> {
        on_threads::build(number, spec, threads, shared)
    }
}

impl DeviceSpec {
    /// A software NPU with the default rates.
    pub fn systolic(name: &str) -> DeviceSpec {
        let backend = Backend::Systolic(ArraySettings::default());
        DeviceSpec::new(name, DeviceKind::Npu, backend, Pace::Throttled(Rates::NPU))
    }

    /// The systolic array that computes, if one does.
    pub fn array(&self) -> Option<&ArraySettings> {
        match &self.backend {
            Backend::Systolic(array) => Some(array),
            _ => None,
        }
    }

    /// As [`array`](DeviceSpec::array), to change it.
    pub fn array_mut(&mut self) -> Option<&mut ArraySettings> {
        match &mut self.backend {
            Backend::Systolic(array) => Some(array),
            _ => None,
        }
    }
}
