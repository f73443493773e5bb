//! The numbers that describe a system.

use std::fmt;

use super::SocError;

/// A number that every description has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Section and name.
    pub path: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Which values are possible.
    pub range: Range,
}

/// Possible values of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// A rate: at least [`Range::RATE_MIN`] of its unit; infinite is no impossible idea.
    Rate,
    /// From the first to the second.
    Between(f64, f64),
    /// A whole number from the first to the second.
    Whole(u32, u32),
}

use Range::{Between, Rate, Whole};

/// Times in microseconds, and as many milliseconds: 1000 s.
const MICROS: Range = Between(0.0, 1e9);
const MILLIS: Range = Between(0.0, 1e6);
const SHARE: Range = Between(0.0, 1.0);
/// Any other amount.
const AMOUNT: Range = Between(0.0, 1e6);

impl Range {
    /// Least rate, in the number's unit.
    pub const RATE_MIN: f64 = 1e-6;

    /// Whether the value is one of them.
    pub fn contains(self, value: f64) -> bool {
        match self {
            Rate => value >= Range::RATE_MIN,
            Between(from, to) => (from..=to).contains(&value),
            Whole(from, to) => {
                value.fract() == 0.0 && (f64::from(from)..=f64::from(to)).contains(&value)
            }
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate => write!(f, "{} or more", Range::RATE_MIN),
            Between(from, to) => write!(f, "between {from} and {to}"),
            Whole(from, to) => write!(f, "a whole number between {from} and {to}"),
        }
    }
}

const fn number(
    path: &'static str,
    unit: &'static str,
    range: Range,
    about: &'static str,
) -> Parameter {
    Parameter { path, unit, about, range }
}

/// All numbers.
pub const PARAMETERS: &[Parameter] = &[
    number("gpu.rate", "TFLOP/s", Rate, "F_g: matrix products of many rows"),
    number("gpu.weight_time", "ns/weight", AMOUNT, "d: reading and unpacking a weight"),
    number("gpu.kernel", "us", MICROS, "c0: start of a matrix kernel in a running queue"),
    number("gpu.bandwidth", "GB/s", Rate, "B_g: memory bandwidth that it reaches alone"),
    number("gpu.small_rate", "TFLOP/s", Rate, "F_s: matrix products of few rows"),
    number("gpu.attention_rate", "TFLOP/s", Rate, "F_a: attention"),
    number("gpu.element_kernel", "us", MICROS, "shortest element-wise kernel"),
    number("gpu.submit_empty", "us", MICROS, "s_0: submission to an empty queue"),
    number("gpu.submit_queued", "us", MICROS, "s_q: submission, if it is not hidden"),
    number("npu.rate", "TFLOP/s", Rate, "F_n: products with at least as many outputs as inputs"),
    number("npu.wide_rate", "TFLOP/s", Rate, "F_d: products with more inputs than outputs"),
    number("npu.wide_rows", "rows", AMOUNT, "M0: rows that such a product costs beside its own"),
    number("npu.ratio_floor", "1", SHARE, "least share of the rate, however bad the shape"),
    number("npu.rate_max", "TFLOP/s", Rate, "no product is faster"),
    number("npu.tile", "rows", Whole(1, 65_536), "rows are padded to a multiple of this"),
    number("npu.bandwidth", "GB/s", Rate, "B_n: products of one row"),
    number("npu.element_bandwidth", "GB/s", Rate, "element-wise ops in static graphs"),
    number("npu.submit", "us", MICROS, "submission of a graph in a running queue"),
    number("npu.prepare_short", "ms", MILLIS, "preparation of the four graphs for 135 rows"),
    number("npu.prepare_long", "ms", MILLIS, "preparation of the four graphs for 1000 rows"),
    number("cpu.rate", "TFLOP/s", Rate, "matrix products and attention"),
    number("cpu.bandwidth", "GB/s", Rate, "memory bandwidth that it reaches alone"),
    number("memory.cap", "GB/s", Rate, "bandwidth that all processors share"),
    number("memory.copy", "GB/s", Rate, "copies that put parts together, read and write in fp16"),
    number(
        "memory.element_bytes",
        "B/value",
        AMOUNT,
        "bytes per value that an element-wise op moves",
    ),
    number("sync.slow", "us", MICROS, "c_s: a queue is finished, and restarted empty"),
    number("sync.queues", "1", AMOUNT, "queues that a slow hand-over finishes one by one"),
    number("sync.fast", "us", MICROS, "c_f: poll, notify and queued submission"),
    number("power.base", "W", AMOUNT, "P_0: what is drawn without work"),
    number("power.gpu", "W", AMOUNT, "P_g: GPU at work alone"),
    number("power.npu", "W", AMOUNT, "P_n: NPU at work"),
    number("power.cpu", "W", AMOUNT, "CPU at work"),
    number("power.co_run", "1", SHARE, "phi: share of P_g while another processor works"),
    number("power.dram", "W/(GB/s)", AMOUNT, "P_dram: memory traffic"),
    number("power.spin", "W", AMOUNT, "P_little: a core that polls"),
    number("renderer.period", "ms", Between(0.1, 1e6), "time from frame to frame"),
    number("renderer.time", "ms", MILLIS, "g: GPU time of a frame"),
    number("noise.spread", "1", SHARE, "standard deviation of a run's time, as a share of it"),
];

impl Parameter {
    /// The number of that path.
    pub(super) fn find(path: &str) -> Result<&'static Parameter, SocError> {
        let found = PARAMETERS.iter().find(|parameter| parameter.path == path);
        found.ok_or_else(|| SocError::UnknownNumber {
            path: path.to_owned(),
            nearest: nearest(path),
        })
    }

    /// Whether a system can have that value.
    pub(super) fn check(&self, value: f64) -> Result<(), SocError> {
        if self.range.contains(value) {
            return Ok(());
        }
        let Parameter { path, unit, range, .. } = *self;
        Err(SocError::Value { path, value, unit, expected: range })
    }

    /// The nearest value that a system can have.
    pub(super) fn nearest_value(&self, value: f64) -> f64 {
        match self.range {
            Rate => value.max(Range::RATE_MIN),
            Between(from, to) => value.clamp(from, to),
            Whole(from, to) => value.round().clamp(f64::from(from), f64::from(to)),
        }
    }
}

/// The number whose path has the longest start in common, or the first of all.
fn nearest(path: &str) -> &'static str {
    let common = |parameter: &&Parameter| {
        let pairs = parameter.path.chars().zip(path.chars());
        pairs.take_while(|(a, b)| a == b).count()
    };
    PARAMETERS.iter().rev().max_by_key(common).map_or("", |parameter| parameter.path)
}
