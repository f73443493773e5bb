//! Keys of int8 activations with fixed scales.

use lapwing_kernels::npu::StaticInt8;

use crate::devices::keys::Key;
use crate::devices::{DeviceSpec, text};

/// The settings, which any of the keys turns on.
fn int8(spec: &mut DeviceSpec) -> Option<&mut StaticInt8> {
    Some(spec.array_mut()?.int8.get_or_insert_default())
}

fn of(spec: &DeviceSpec) -> Option<StaticInt8> {
    spec.array()?.int8
}

pub(super) const KEYS: &[Key] = &[ACTIVATIONS, CLIP, OUTLIERS, PRUNE];

const ACTIVATIONS: Key = Key {
    name: "activations",
    expected: "int8, one fixed scale for each product (without the key: as the engine's)",
    read: |spec, text| (text == "int8").then(|| int8(spec)).flatten().map(|_| ()),
    write: |spec| of(spec).map(|_| "int8".to_owned()),
    of: |_| true,
};

const CLIP: Key = Key {
    name: "clip",
    expected: "the share of the values that a scale covers, above 0, at most 1",
    read: |spec, text| {
        int8(spec)?.clip = text::share(text)?;
        Some(())
    },
    write: |spec| Some(of(spec)?.clip.to_string()),
    of: |_| true,
};

const OUTLIERS: Key = Key {
    name: "outliers",
    expected: "cpu, which computes them beside the array, or none, which limits them",
    read: |spec, text| {
        int8(spec)?.outliers = match text {
            "cpu" => true,
            "none" => false,
            _ => return None,
        };
        Some(())
    },
    write: |spec| Some(if of(spec)?.outliers { "cpu" } else { "none" }.to_owned()),
    of: |_| true,
};

const PRUNE: Key = Key {
    name: "prune",
    expected: "the share of the products whose outliers are not computed, 0 to 1",
    read: |spec, text| {
        let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
        int8(spec)?.prune = share?;
        Some(())
    },
    write: |spec| Some(of(spec)?.prune.to_string()),
    of: |_| true,
};
