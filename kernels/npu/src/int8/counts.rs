//! Counts of outliers.

use std::sync::Arc;

use lapwing_model::sync::{Mutex, lock};

/// What a device has rounded, and what it has computed beside the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutlierCounts {
    /// Values of inputs of products, rows × channels, whether or not their outliers are computed. Padding counts.
    pub values: u64,
    /// Of these, outliers that the CPU has computed.
    pub outliers: u64,
    /// Columns of weights that the CPU has multiplied with: the sum over the products that have run of the
    /// channels with an outlier in any row.
    pub columns: u64,
    /// Of these, columns that had to be read from the matrix first.
    pub read: u64,
    /// Products that have run, and those that had outliers to compute.
    pub products: u64,
    /// Products that had outliers to compute.
    pub shadowed: u64,
    /// Multiply-adds of the CPU.
    pub multiply_adds: u64,
}

/// Counts outliers of a device. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct OutlierCounter(Arc<Mutex<OutlierCounts>>);

impl OutlierCounter {
    /// The counts so far.
    pub fn counts(&self) -> OutlierCounts {
        *lock(&self.0)
    }

    pub(super) fn add(&self, more: &OutlierCounts) {
        let mut counts = lock(&self.0);
        counts.values += more.values;
        counts.outliers += more.outliers;
        counts.columns += more.columns;
        counts.read += more.read;
        counts.products += more.products;
        counts.shadowed += more.shadowed;
        counts.multiply_adds += more.multiply_adds;
    }
}

impl OutlierCounts {
    /// Outliers among the values, 0 to 1.
    pub fn share(&self) -> f64 {
        self.outliers as f64 / (self.values as f64).max(1.0)
    }
}
