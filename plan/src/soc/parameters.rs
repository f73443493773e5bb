//! The parameters of a system, with their units and valid values.

use super::error::SocError;
use super::range::Range::{self, Between, Rate, Whole};

/// A parameter of every description.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Section and name, such as `gpu.rate`.
    pub path: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Description.
    pub about: &'static str,
    /// Valid values.
    pub range: Range,
}

/// Maximum time: 1000 s, in µs and in ms.
const MICROS: Range = Between(0.0, 1e9);
const MILLIS: Range = Between(0.0, 1e6);
const SHARE: Range = Between(0.0, 1.0);
/// Any other amount.
const AMOUNT: Range = Between(0.0, 1e6);

const fn number(
    path: &'static str,
    unit: &'static str,
    range: Range,
    about: &'static str,
) -> Parameter {
    Parameter { path, unit, about, range }
}

/// All parameters.
pub const PARAMETERS: &[Parameter] = &[
    number("gpu.rate", "TFLOP/s", Rate, "F_g: GEMM rate"),
    number("gpu.weight_time", "ns/weight", AMOUNT, "d: time to read and unpack a weight"),
    number("gpu.kernel", "us", MICROS, "c0: launch of a GEMM kernel in a running queue"),
    number("gpu.bandwidth", "GB/s", Rate, "B_g: memory bandwidth of the GPU alone"),
    number("gpu.small_rate", "TFLOP/s", Rate, "F_s: batched GEMV rate, for few rows"),
    number("gpu.attention_rate", "TFLOP/s", Rate, "F_a: attention rate"),
    number("gpu.element_kernel", "us", MICROS, "minimum time of an element-wise kernel"),
    number("gpu.submit_empty", "us", MICROS, "s_0: submission to an empty queue"),
    number("gpu.submit_queued", "us", MICROS, "s_q: submission to a busy queue, unless hidden"),
    number("npu.rate", "TFLOP/s", Rate, "F_n: matmuls with at least as many outputs as inputs"),
    number("npu.wide_rate", "TFLOP/s", Rate, "F_d: matmuls with more inputs than outputs"),
    number("npu.wide_rows", "rows", AMOUNT, "M0: fixed overhead of such a matmul, in rows"),
    number("npu.ratio_floor", "1", SHARE, "minimum fraction of the rate, for the worst shape"),
    number("npu.rate_max", "TFLOP/s", Rate, "maximum rate of any matmul"),
    number("npu.tile", "rows", Whole(1, 65_536), "rows are padded to a multiple of this"),
    number("npu.bandwidth", "GB/s", Rate, "B_n: memory bandwidth of matmuls of one row"),
    number(
        "npu.element_bandwidth",
        "GB/s",
        Rate,
        "memory bandwidth of element-wise ops in static graphs",
    ),
    number("npu.launch", "us", MICROS, "L: launch of a graph in a running queue"),
    number("npu.prepare_short", "ms", MILLIS, "preparation of four graphs for 135 rows"),
    number("npu.prepare_long", "ms", MILLIS, "preparation of four graphs for 1000 rows"),
    number("cpu.rate", "TFLOP/s", Rate, "rate of matmuls and attention"),
    number("cpu.bandwidth", "GB/s", Rate, "memory bandwidth of the CPU alone"),
    number("memory.cap", "GB/s", Rate, "total bandwidth of all processors"),
    number("memory.copy", "GB/s", Rate, "copies that merge parts, with read and write in fp16"),
    number(
        "memory.element_bytes",
        "B/value",
        AMOUNT,
        "bytes moved per value of an element-wise op",
    ),
    number("sync.copy", "us", MICROS, "c_c: latency of a copy call, which drains the queue"),
    number("sync.fast", "us", MICROS, "c_f: poll, notification and queued submission"),
    number("power.base", "W", AMOUNT, "P_0: idle power"),
    number("power.gpu", "W", AMOUNT, "P_g: power of the GPU, busy alone"),
    number("power.npu", "W", AMOUNT, "P_n: power of the busy NPU"),
    number("power.cpu", "W", AMOUNT, "power of the busy CPU"),
    number("power.co_run", "1", SHARE, "phi: fraction of P_g while another processor is busy"),
    number("power.dram", "W/(GB/s)", AMOUNT, "P_dram: power of memory traffic"),
    number("power.spin", "W", AMOUNT, "P_little: power of a polling core"),
    number("renderer.period", "ms", Between(0.1, 1e6), "frame period of a competing renderer"),
    number("renderer.time", "ms", MILLIS, "g: GPU time per frame of the renderer"),
    number("noise.spread", "1", SHARE, "relative standard deviation of the time of a run"),
];

impl Parameter {
    /// The parameter with that path.
    pub(super) fn find(path: &str) -> Result<&'static Parameter, SocError> {
        let found = PARAMETERS.iter().find(|parameter| parameter.path == path);
        found.ok_or_else(|| SocError::UnknownNumber {
            path: path.to_owned(),
            nearest: nearest(path),
        })
    }

    /// Checks that the value is valid.
    pub(super) fn check(&self, value: f64) -> Result<(), SocError> {
        if self.range.contains(value) {
            return Ok(());
        }
        let Parameter { path, unit, range, .. } = *self;
        Err(SocError::Value { path, value, unit, expected: range })
    }

    /// The valid value nearest to `value`.
    pub(super) fn nearest_value(&self, value: f64) -> f64 {
        self.range.nearest(value)
    }
}

/// The path with the longest common prefix; the first path of all if there is none.
fn nearest(path: &str) -> &'static str {
    let common = |parameter: &&Parameter| {
        let pairs = parameter.path.chars().zip(path.chars());
        pairs.take_while(|(a, b)| a == b).count()
    };
    PARAMETERS.iter().rev().max_by_key(common).map_or("", |parameter| parameter.path)
}
