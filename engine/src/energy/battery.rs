//! Batteries, as Linux shows them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::{folders, number, text};

/// A battery that supplies the machine.
#[derive(Clone, Debug)]
pub(super) struct Battery {
    name: String,
    path: PathBuf,
}

impl Battery {
    /// The batteries that are being discharged.
    pub(super) fn discharging(supplies: &Path) -> Vec<Battery> {
        let is = |path: &Path, file: &str, value: &str| {
            text(&path.join(file)).is_ok_and(|text| text.eq_ignore_ascii_case(value))
        };
        let in_use = |path: &PathBuf| {
            is(path, "type", "Battery")
                && !is(path, "scope", "Device")
                && is(path, "status", "Discharging")
        };
        let battery = |path: PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or("battery").to_owned();
            Battery { name, path }
        };
        folders(supplies).into_iter().filter(in_use).map(battery).collect()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its present power: stated, or current times voltage.
    pub(super) fn watts(&self) -> io::Result<f64> {
        let value = |file: &str| number(&self.path.join(file)).map(|micro| micro as f64 * 1e-6);
        value("power_now").or_else(|_| Ok(value("current_now")? * value("voltage_now")?))
    }
}
