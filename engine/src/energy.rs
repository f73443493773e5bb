//! Energy that the machine takes while something runs, from what the operating system offers: the
//! processors' counters (powercap on Linux, such as Intel's and AMD's RAPL) and the power that a battery
//! gives.
//!
//! Both measure the machine, not the process: other programs, and with a battery the screen, are included.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use lapwing::energy::EnergyMeter;
//!
//! let meter = EnergyMeter::start();
//! // … work that took two seconds …
//! let energy = meter.stop(Duration::from_secs(2));
//! match energy.joules() {
//!     Some(joules) => println!("{joules:.1} J"),
//!     None => println!("unknown: {}", energy.unavailable.join("; ")),
//! }
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

mod battery;
mod counter;

use battery::Battery;
use counter::Counter;

/// Folders in which Linux shows counters of energy, and batteries.
const POWERCAP: &str = "/sys/class/powercap";
const SUPPLIES: &str = "/sys/class/power_supply";

/// Measures energy from its start on.
#[derive(Clone, Debug)]
pub struct EnergyMeter {
    counters: Vec<(Counter, u64)>,
    batteries: Vec<(Battery, f64)>,
    unavailable: Vec<String>,
}

/// Energy of an interval.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Energy {
    /// One for each source that could be read.
    pub domains: Vec<EnergyDomain>,
    /// Sources that could not be read, and why; also says if there are none.
    pub unavailable: Vec<String>,
}

/// Energy of one source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EnergyDomain {
    /// The system's name, such as `package-0`, `dram`, `psys` or `BAT0`.
    pub name: String,
    /// Where the value comes from.
    pub source: EnergySource,
    /// Joules.
    pub joules: f64,
}

/// Where a value of energy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EnergySource {
    /// A counter of the processor or of the board.
    Counter,
    /// The mean of a battery's power at start and stop, times the duration.
    Battery,
}

impl EnergySource {
    /// `counter` or `battery`.
    pub fn name(self) -> &'static str {
        match self {
            EnergySource::Counter => "counter",
            EnergySource::Battery => "battery",
        }
    }
}

impl EnergyMeter {
    /// Starts a measurement. Never fails: what cannot be read is named in [`Energy::unavailable`].
    pub fn start() -> EnergyMeter {
        EnergyMeter::of(POWERCAP.as_ref(), SUPPLIES.as_ref())
    }

    fn of(powercap: &Path, supplies: &Path) -> EnergyMeter {
        let mut unavailable = Vec::new();
        let mut note = |path: &Path, error: std::io::Error| {
            unavailable.push(format!("cannot read {}: {error}", path.display()));
        };
        let mut counters = Vec::new();
        for counter in Counter::all(powercap) {
            match counter.read() {
                Ok(start) => counters.push((counter, start)),
                Err(error) => note(counter.path(), error),
            }
        }
        let mut batteries = Vec::new();
        for battery in Battery::discharging(supplies) {
            match battery.watts() {
                Ok(start) => batteries.push((battery, start)),
                Err(error) => note(battery.path(), error),
            }
        }
        if counters.is_empty() && batteries.is_empty() && unavailable.is_empty() {
            unavailable.push(format!(
                "this system has no energy counter in {} and no battery in use",
                powercap.display()
            ));
        }
        EnergyMeter { counters, batteries, unavailable }
    }

    /// The energy since the start, `elapsed` ago. May be called several times. A counter that wraps around
    /// more than once in this time, after many minutes, shows too little.
    pub fn stop(&self, elapsed: Duration) -> Energy {
        let mut energy = Energy { unavailable: self.unavailable.clone(), ..Energy::default() };
        let counted = self.counters.iter().map(|(counter, start)| {
            let joules = counter.read().map(|end| counter.joules(*start, end));
            (counter.name(), EnergySource::Counter, counter.path(), joules)
        });
        let given = self.batteries.iter().map(|(battery, start)| {
            let joules = battery.watts().map(|end| (start + end) / 2.0 * elapsed.as_secs_f64());
            (battery.name(), EnergySource::Battery, battery.path(), joules)
        });
        for (name, source, path, joules) in counted.chain(given) {
            match joules {
                Ok(joules) => {
                    energy.domains.push(EnergyDomain { name: name.to_owned(), source, joules });
                }
                Err(error) => {
                    energy.unavailable.push(format!("cannot read {}: {error}", path.display()));
                }
            }
        }
        energy
    }
}

impl Energy {
    /// Joules of the machine: of the whole board if it has a counter (`psys`), otherwise of the processor
    /// packages and the memory, otherwise of the batteries. `None` if nothing can be read.
    pub fn joules(&self) -> Option<f64> {
        let sum = |of: &dyn Fn(&EnergyDomain) -> bool| {
            let mut found = self.domains.iter().filter(|domain| of(domain)).peekable();
            found.peek()?;
            Some(found.map(|domain| domain.joules).sum())
        };
        let is_counter = |domain: &EnergyDomain| domain.source == EnergySource::Counter;
        sum(&|domain| is_counter(domain) && domain.name == "psys")
            .or_else(|| sum(&is_counter))
            .or_else(|| sum(&|domain| domain.source == EnergySource::Battery))
    }
}

/// The folders in `folder`, by name.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The text of a file, without white space at its ends.
fn text(path: &Path) -> std::io::Result<String> {
    Ok(std::fs::read_to_string(path)?.trim().to_owned())
}

/// The number in a file.
fn number(path: &Path) -> std::io::Result<u64> {
    text(path)?.parse().map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests;
