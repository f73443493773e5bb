//! Why a text is no device.

/// Why a text is no device. It says what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceSpecError {
    /// The name is none.
    #[error(
        "'{name}' is no device name: use 1 to 32 letters, digits, '-' and '_', as in gpu, npu or gpu-2"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// Two devices have the same name.
    #[error("device '{name}' is there twice; give each its own name, as in {name}-2=…")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// A name alone that is no preset.
    #[error(
        "'{name}' alone says nothing: the presets are cpu, gpu, npu and phone; others are written \
         {name}=throttled:gflops=40,gbps=8 or {name}=systolic:gflops=40"
    )]
    Preset {
        /// The name.
        name: String,
    },
    /// The form is not known.
    #[error(
        "device '{name}' has form '{form}'; forms are cores (no model), throttled (rates) and systolic (an NPU)"
    )]
    Form {
        /// Name of the device.
        name: String,
        /// The form.
        form: String,
    },
    /// The form has no such key.
    #[error("device '{name}': {form} has no '{key}'; it has {known}")]
    Key {
        /// Name of the device.
        name: String,
        /// The form.
        form: &'static str,
        /// The key.
        key: String,
        /// Keys that there are.
        known: String,
    },
    /// A key is there twice.
    #[error("device '{name}' has '{key}' twice")]
    KeyTwice {
        /// Name of the device.
        name: String,
        /// The key.
        key: String,
    },
    /// A value is none.
    #[error("device '{name}': {key} is '{value}', but must be {expected}")]
    Value {
        /// Name of the device.
        name: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
}
