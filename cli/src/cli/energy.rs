//! Reports the energy of a run.

use lapwing_engine::energy::{Energy, EnergyMeter};
use lapwing_engine::traces::{Clock, Nanos};
use serde::Serialize;

/// The JSON form.
#[derive(Debug, Serialize)]
pub(crate) struct EnergyReport {
    joules: Option<f64>,
    domains: Vec<DomainReport>,
    unavailable: Vec<String>,
}

#[derive(Debug, Serialize)]
struct DomainReport {
    name: String,
    source: &'static str,
    joules: f64,
}

/// A measurement that has been started.
pub(crate) struct Measuring<'a> {
    meter: EnergyMeter,
    clock: &'a dyn Clock,
    start: Nanos,
}

impl<'a> Measuring<'a> {
    /// Starts measuring.
    pub(crate) fn start(clock: &'a dyn Clock) -> Measuring<'a> {
        Measuring { meter: EnergyMeter::start(), start: clock.now(), clock }
    }

    /// The energy since then.
    pub(crate) fn stop(&self) -> EnergyReport {
        EnergyReport::of(&self.meter.stop(self.clock.now().since(self.start)))
    }
}

impl EnergyReport {
    fn of(energy: &Energy) -> EnergyReport {
        let domains = energy.domains.iter().map(|domain| DomainReport {
            name: domain.name.clone(),
            source: domain.source.name(),
            joules: domain.joules,
        });
        EnergyReport {
            joules: energy.joules(),
            domains: domains.collect(),
            unavailable: energy.unavailable.clone(),
        }
    }

    /// Whether it could be measured.
    pub(crate) fn is_known(&self) -> bool {
        self.joules.is_some()
    }

    /// The energy on one line; per token if there are `tokens`.
    pub(crate) fn line(&self, tokens: usize) -> String {
        let Some(joules) = self.joules else {
            return format!("[energy unknown: {}]", self.unavailable.join("; "));
        };
        let each = self.domains.iter().map(|d| format!("{} {:.1} J", d.name, d.joules));
        let each = each.collect::<Vec<_>>().join(", ");
        let per_token = match tokens {
            0 => String::new(),
            tokens => format!(", {:.2} J per token of prompt and answer", joules / tokens as f64),
        };
        format!("[energy of the machine: {joules:.1} J{per_token} ({each})]")
    }
}
