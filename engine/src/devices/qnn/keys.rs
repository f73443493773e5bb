//! Keys of devices of Qualcomm QNN.

use std::path::{Path, PathBuf};

use lapwing_kernels::npu::{QnnActivations, WeightForm};

use crate::devices::keys::Key;

/// Reads a number of QNN, at least 1.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number > 0)
}

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "library",
        expected: "the path of libQnnHtp or of its folder, without ',' and '+'",
        read: |spec, text| {
            let is_path = !text.is_empty() && !text.contains([',', '+']);
            spec.qnn_processor_mut()?.library = Some(is_path.then(|| PathBuf::from(text))?);
            Some(())
        },
        write: |spec| {
            spec.qnn_processor()?.library.as_deref().and_then(Path::to_str).map(str::to_owned)
        },
        of: |_| true,
    },
    Key {
        name: "soc",
        expected: "Qualcomm's number of the system on chip, such as 57",
        read: |spec, text| {
            spec.qnn_processor_mut()?.soc = number(text)?;
            Some(())
        },
        write: |spec| Some(spec.qnn_processor()?.soc.to_string()),
        of: |_| true,
    },
    Key {
        name: "arch",
        expected: "a version of the Hexagon architecture, such as 75",
        read: |spec, text| {
            spec.qnn_processor_mut()?.arch = number(text)?;
            Some(())
        },
        write: |spec| Some(spec.qnn_processor()?.arch.to_string()),
        of: |_| true,
    },
    Key {
        name: "activations",
        expected: "f16, or u16 or u8, with one fixed scale for each input and output of a product",
        read: |spec, text| {
            let named = QnnActivations::NAMED.into_iter().find(|(_, name)| *name == text);
            spec.qnn_processor_mut()?.activations = named?.0;
            Some(())
        },
        write: |spec| Some(spec.qnn_processor()?.activations.name().to_owned()),
        of: |_| true,
    },
    Key {
        name: "weights",
        expected: "f16, int8, int4, or int4:16, int4:32, int4:64 or int4:128 in blocks",
        read: |spec, text| {
            let named = WeightForm::NAMED.into_iter().find(|(_, name)| *name == text);
            spec.qnn_processor_mut()?.weights = named?.0;
            Some(())
        },
        write: |spec| Some(spec.qnn_processor()?.weights.name().to_owned()),
        of: |_| true,
    },
];
