//! Outliers of devices with int8 activations of fixed scales, in reports.

use lapwing_engine::Engine;
use serde::Serialize;

use super::visible::visible;

/// Outliers of a device.
#[derive(Debug, Serialize)]
pub(crate) struct OutlierReport {
    device: String,
    products: u64,
    shadowed: u64,
    values: u64,
    outliers: u64,
    share: f64,
    columns: u64,
    read: u64,
    multiply_adds: u64,
}

impl OutlierReport {
    /// Those of all devices that have any.
    pub(crate) fn of(engine: &Engine) -> Vec<OutlierReport> {
        let report = |found: lapwing_engine::ranges::DeviceOutliers| {
            let counts = found.counts;
            OutlierReport {
                device: found.device,
                products: counts.products,
                shadowed: counts.shadowed,
                values: counts.values,
                outliers: counts.outliers,
                share: counts.share(),
                columns: counts.columns,
                read: counts.read,
                multiply_adds: counts.multiply_adds,
            }
        };
        engine.outliers().into_iter().map(report).collect()
    }

    /// One line.
    pub(crate) fn line(&self) -> String {
        format!(
            "{}: the CPU computed {:.3} % of the values of {} products as outliers, in {} of them, with {:.1} \
             channels each\n",
            visible(&self.device),
            self.share * 100.0,
            self.products,
            self.shadowed,
            self.columns as f64 / (self.shadowed as f64).max(1.0),
        )
    }
}
