//! A link between a device and the host.

use std::time::Duration;

/// The link between a device with a memory of its own and the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Rate in GB/s, which is bytes per nanosecond.
    pub gbps: f64,
    /// Time of a transfer apart from its bytes.
    pub latency: Duration,
}

impl Link {
    /// PCIe 4.0 with 8 lanes, a thousandth as fast (`presets/laptop.toml`).
    pub const LAPTOP: Link = Link { gbps: 0.012, latency: Duration::from_micros(10) };

    /// Time of a transfer; `bytes` counts reads and writes, of which each value has one of both.
    pub fn time(&self, bytes: u64) -> Duration {
        self.latency + Duration::from_nanos((bytes as f64 / 2.0 / self.gbps).ceil() as u64)
    }
}
