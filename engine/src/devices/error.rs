//! Errors of device specifications.

use lapwing_kernels::device::DeviceKind;

/// Why a device specification is invalid. The message says what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceSpecError {
    /// The name has invalid characters or an invalid length.
    #[error(
        "invalid device name '{name}': use 1 to 32 letters, digits, '-' and '_', as in gpu, npu or gpu-2"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// Two devices have the same name.
    #[error("device '{name}' is given twice; give each its own name, as in {name}-2=…")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// The name is no preset, and nothing else is given.
    #[error(
        "unknown device '{name}' (presets: cpu, gpu, npu, phone, laptop); to define one, write \
         {name}=opencl, {name}=openvino, {name}=qnn, {name}=throttled:gflops=40,gbps=8 or {name}=systolic:gflops=40"
    )]
    Preset {
        /// The name.
        name: String,
    },
    /// The form is unknown.
    #[error(
        "device '{name}': unknown form '{form}' (expected opencl for a GPU of this machine, openvino for an Intel NPU, qnn for a Qualcomm NPU, cores for no throttling, throttled for stated rates, or systolic for an NPU in software)"
    )]
    Form {
        /// Name of the device.
        name: String,
        /// The form.
        form: String,
    },
    /// The form has no such key.
    #[error("device '{name}': unknown key '{key}' (form {form} has {known})")]
    Key {
        /// Name of the device.
        name: String,
        /// The form.
        form: &'static str,
        /// The key.
        key: String,
        /// The keys of the form.
        known: String,
    },
    /// A key is given twice.
    #[error("device '{name}': key '{key}' is given twice")]
    KeyTwice {
        /// Name of the device.
        name: String,
        /// The key.
        key: String,
    },
    /// A value is invalid.
    #[error("device '{name}': {key} is '{value}', but must be {expected}")]
    Value {
        /// Name of the device.
        name: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is accepted.
        expected: &'static str,
    },
    /// Kind, back end and pace do not fit each other. Only a device made by a program can be so.
    #[error("device '{name}' of kind {}: {reason}", kind.name())]
    Combination {
        /// Name of the device.
        name: String,
        /// Its kind.
        kind: DeviceKind,
        /// What has to be different.
        reason: &'static str,
    },
}
