//! Counters of energy, as powercap shows them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::{folders, number, text};

/// A counter in microjoules, which wraps around.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    name: String,
    path: PathBuf,
    /// Highest value before it wraps around; `None` if the system does not say.
    range: Option<u64>,
}

impl Counter {
    /// Counters of packages, memory and board. Those of cores and of graphics are parts of their
    /// package, and `intel-rapl-mmio` shows the packages of `intel-rapl` again.
    pub(super) fn all(powercap: &Path) -> Vec<Counter> {
        let all = folders(powercap);
        let file_name = |path: &PathBuf| {
            path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned()
        };
        let twice = all.iter().any(|path| file_name(path).starts_with("intel-rapl:"));
        let counter = |folder: &PathBuf| {
            let file = file_name(folder);
            let name = text(&folder.join("name")).ok()?;
            let is_part = file.matches(':').count() > 1 && name != "dram";
            let path = folder.join("energy_uj");
            if is_part || !path.exists() || twice && file.starts_with("intel-rapl-mmio:") {
                return None;
            }
            let range = number(&folder.join("max_energy_range_uj")).ok();
            Some(Counter { name, path, range })
        };
        all.iter().filter_map(counter).collect()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its value in microjoules.
    pub(super) fn read(&self) -> io::Result<u64> {
        number(&self.path)
    }

    /// Joules between two values, with at most one wrap-around.
    pub(super) fn joules(&self, start: u64, end: u64) -> f64 {
        let microjoules = match end.checked_sub(start) {
            Some(difference) => difference,
            None => self.range.unwrap_or(start).saturating_sub(start).saturating_add(end),
        };
        microjoules as f64 * 1e-6
    }
}
