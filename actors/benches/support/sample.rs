//! Measured waits.

use lapwing_traces::event::WaitMode;

use crate::Outcome;

/// Waits of one mode and length.
#[derive(Default)]
pub(crate) struct Sample {
    pub(crate) late: Vec<u64>,
    pub(crate) cpu: u64,
    pub(crate) errors: Vec<u64>,
    pub(crate) parked: usize,
}

impl Sample {
    pub(crate) fn add(&mut self, outcome: Outcome) {
        let Outcome { late, cpu, record } = outcome;
        self.late.push(late);
        self.cpu += cpu;
        let Some(record) = record else { return };
        self.errors.extend(record.error().map(i64::unsigned_abs));
        self.parked += usize::from(record.mode == WaitMode::Callback);
    }

    pub(crate) fn late(&self, tenths: usize) -> f64 {
        quantile(&self.late, tenths)
    }

    /// CPU time per wait in µs.
    pub(crate) fn cpu(&self) -> f64 {
        self.cpu as f64 / self.late.len().max(1) as f64 / 1e3
    }
}

/// In µs.
pub(crate) fn quantile(values: &[u64], tenths: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() * tenths / 10).map_or(f64::NAN, |ns| *ns as f64 / 1e3)
}
