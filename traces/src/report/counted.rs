//! Figures of counters and of memory.

use serde::Serialize;

/// Figures of a counter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterReport {
    /// Name.
    pub name: String,
    /// Lane that counts.
    pub lane: String,
    /// Smallest value.
    pub min: i64,
    /// Largest.
    pub max: i64,
    /// Mean over time.
    pub mean: f64,
    /// Last value.
    pub last: i64,
}

/// Memory freed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreedReport {
    /// Name of the memory.
    pub name: String,
    /// Number of times.
    pub count: usize,
    /// Total size in bytes.
    pub bytes: u64,
}
