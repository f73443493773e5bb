//! The numbers that describe a system.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Above 0.
    Positive,
    /// 0 or more.
    NotNegative,
    /// From 0 to 1.
    Share,
}

use Range::{NotNegative, Positive, Share};

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
    number("gpu.rate", "TFLOP/s", Positive, "F_g: matrix products of many rows"),
    number("gpu.weight_time", "ns/weight", NotNegative, "d: reading and unpacking a weight"),
    number("gpu.kernel", "us", NotNegative, "c0: start of a matrix kernel in a running queue"),
    number("gpu.bandwidth", "GB/s", Positive, "B_g: memory bandwidth that it reaches alone"),
    number("gpu.small_rate", "TFLOP/s", Positive, "F_s: matrix products of few rows"),
    number("gpu.attention_rate", "TFLOP/s", Positive, "F_a: attention"),
    number("gpu.element_kernel", "us", NotNegative, "shortest element-wise kernel"),
    number("gpu.submit_empty", "us", NotNegative, "s_0: submission to an empty queue"),
    number("gpu.submit_queued", "us", NotNegative, "s_q: submission, if it is not hidden"),
    number(
        "npu.rate",
        "TFLOP/s",
        Positive,
        "F_n: products with at least as many outputs as inputs",
    ),
    number("npu.wide_rate", "TFLOP/s", Positive, "F_d: products with more inputs than outputs"),
    number(
        "npu.wide_rows",
        "rows",
        NotNegative,
        "M0: rows that such a product costs beside its own",
    ),
    number("npu.ratio_floor", "1", Share, "least share of the rate, however bad the shape"),
    number("npu.rate_max", "TFLOP/s", Positive, "no product is faster"),
    number("npu.tile", "rows", Positive, "rows are padded to a multiple of this"),
    number("npu.bandwidth", "GB/s", Positive, "B_n: products of one row"),
    number("npu.element_bandwidth", "GB/s", Positive, "element-wise ops in static graphs"),
    number("npu.submit", "us", NotNegative, "submission of a graph in a running queue"),
    number("npu.prepare_short", "ms", NotNegative, "preparation of the four graphs of 135 rows"),
    number("npu.prepare_long", "ms", NotNegative, "preparation of the four graphs of 1000 rows"),
    number("cpu.rate", "TFLOP/s", Positive, "matrix products and attention"),
    number("cpu.bandwidth", "GB/s", Positive, "memory bandwidth that it reaches alone"),
    number("memory.cap", "GB/s", Positive, "bandwidth that all processors share"),
    number(
        "memory.copy",
        "GB/s",
        Positive,
        "copies that put parts together, read and write in fp16",
    ),
    number(
        "memory.element_bytes",
        "B/value",
        Positive,
        "bytes per value that an element-wise op moves",
    ),
    number("sync.slow", "us", NotNegative, "c_s: a queue is finished, and restarted empty"),
    number("sync.queues", "1", NotNegative, "queues that a slow hand-over finishes one by one"),
    number("sync.fast", "us", NotNegative, "c_f: poll, notify and queued submission"),
    number("power.base", "W", NotNegative, "P_0: what is drawn without work"),
    number("power.gpu", "W", NotNegative, "P_g: GPU at work alone"),
    number("power.npu", "W", NotNegative, "P_n: NPU at work"),
    number("power.cpu", "W", NotNegative, "CPU at work"),
    number("power.co_run", "1", Share, "phi: share of P_g while another processor works"),
    number("power.dram", "W/(GB/s)", NotNegative, "P_dram: memory traffic"),
    number("power.spin", "W", NotNegative, "P_little: a core that polls"),
    number("renderer.period", "ms", Positive, "time from frame to frame"),
    number("renderer.time", "ms", NotNegative, "g: GPU time of a frame"),
    number("noise.spread", "1", Share, "standard deviation of a run's time, as a share of it"),
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
        let (good, expected) = match self.range {
            Positive => (value > 0.0, "above 0"),
            NotNegative => (value >= 0.0, "0 or more"),
            Share => ((0.0..=1.0).contains(&value), "between 0 and 1"),
        };
        // What is infinitely fast or large is no impossible idea; a time of that length is.
        let bounded = value.is_finite() || (self.range == Positive && value > 0.0);
        if good && bounded {
            return Ok(());
        }
        let Parameter { path, unit, .. } = *self;
        Err(SocError::Value { path, value, unit, expected })
    }

    /// The nearest value that a system can have.
    pub(super) fn nearest_value(&self, value: f64) -> f64 {
        match self.range {
            Positive => value.max(f64::MIN_POSITIVE),
            NotNegative => value.max(0.0),
            Share => value.clamp(0.0, 1.0),
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
