//! `lapwing devices --kernels --device gpu=opencl`: the kernels that were chosen for matmuls on an OpenCL
//! device.

use lapwing_engine::devices::{Backend, DeviceSpec, OpenClSettings};
use lapwing_engine::drivers::DriverKind;
use lapwing_engine::models::ModelCache;
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::opencl::{MatMulKernels, OpenClError, OpenClInfo, find, matmul_kernels};
use serde::Serialize;

use super::kernels::graph;
use crate::cli::drivers;
use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::resolve::model_file;
use crate::cli::session::Session;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

#[derive(Debug, Serialize)]
struct Report {
    device: String,
    platform: String,
    driver: String,
    /// Whether runs of few rows may be one kernel, and why.
    persistent: Persistent,
    matmuls: Vec<MatMulReport>,
}

/// Whether a persistent kernel may compute runs of few rows.
#[derive(Debug, Serialize)]
struct Persistent {
    may_be_used: bool,
    why: &'static str,
}

impl Persistent {
    fn of(device: &OpenClInfo, settings: &OpenClSettings) -> Persistent {
        let (may_be_used, why) = match (device.may_be_persistent(), settings.no_persistent) {
            (true, false) => (true, "used where it is faster at the start of a model"),
            (true, true) => (false, "off, as persistent=off says"),
            (false, _) => {
                (false, "its groups need a fence that only NVIDIA's driver is known to have")
            }
        };
        Persistent { may_be_used, why }
    }
}

/// The kernels for one format of weights.
#[derive(Debug, Serialize)]
struct MatMulReport {
    format: String,
    many: &'static str,
    few: &'static str,
    many_us: Vec<Measured>,
    few_us: Vec<Measured>,
}

#[derive(Debug, Serialize)]
struct Measured {
    kernel: &'static str,
    us: f64,
}

impl From<MatMulKernels> for MatMulReport {
    fn from(kernels: MatMulKernels) -> MatMulReport {
        let measured = |times: Vec<(&'static str, u64)>| {
            let times = times.into_iter();
            times.map(|(kernel, ns)| Measured { kernel, us: ns as f64 / 1e3 }).collect()
        };
        MatMulReport {
            format: kernels.dtype.to_string(),
            many: kernels.many,
            few: kernels.few,
            many_us: measured(kernels.many_ns),
            few_us: measured(kernels.few_ns),
        }
    }
}

/// Chooses the kernels, unless an earlier start has, and prints them.
pub(super) async fn run(
    spec: &DeviceSpec,
    model: Option<&str>,
    session: &Session,
) -> Result<(), Failure> {
    let Backend::OpenCl(settings) = &spec.backend else {
        return Err(Failure::usage(format!(
            "'{spec}' computes with the kernels of the CPU, which `lapwing devices --kernels` shows; \
             use an OpenCL device (--device gpu=opencl)"
        )));
    };
    let formats = match model {
        Some(model) => formats(&graph(&model_file(model, session).await?)?),
        None => DType::ALL.to_vec(),
    };
    session.note(
        "choosing the kernels of the device; the first time takes a few seconds for each format",
    );
    drivers::check(&DriverKind::OpenCl)?;
    let which = settings.which.clone();
    // The folder of an engine's compiled programs.
    let programs = ModelCache::open(None).ok().map(|cache| cache.dir().join("packed/programs"));
    let work = tokio::task::spawn_blocking(move || {
        let device = find(&which)?;
        let kernels = matmul_kernels(&device, programs, &formats)?;
        Ok((device, kernels))
    });
    let done: Result<Result<(OpenClInfo, Vec<MatMulKernels>), OpenClError>, _> = work.await;
    let (device, kernels) = match done {
        Ok(done) => done.map_err(|error| Failure::failed(error.to_string()))?,
        Err(error) => {
            return Err(Failure::failed(format!("the measurement ended early: {error}")));
        }
    };
    let report = Report {
        persistent: Persistent::of(&device, settings),
        device: device.name,
        platform: device.platform,
        driver: device.driver,
        matmuls: kernels.into_iter().map(MatMulReport::from).collect(),
    };
    if session.json { print_json(&report) } else { print(&text(&report)) }
}

/// Formats of the matrices of a model's matmuls, each once.
fn formats(graph: &Graph) -> Vec<DType> {
    let mut formats = Vec::new();
    for node in graph.nodes() {
        if let Op::MatMul { weight, .. } = &node.op {
            let dtype = graph.weights()[weight.0].dtype;
            if !formats.contains(&dtype) {
                formats.push(dtype);
            }
        }
    }
    formats
}

fn text(report: &Report) -> String {
    let bold = anstyle::Style::new().bold();
    let times = |times: &[Measured]| {
        if times.is_empty() {
            return "no choice".to_owned();
        }
        let times = times.iter().map(|time| format!("{} {:.0} µs", time.kernel, time.us));
        times.collect::<Vec<_>>().join(", ")
    };
    let row = |matmul: &MatMulReport| {
        [
            matmul.format.clone(),
            matmul.many.to_owned(),
            times(&matmul.many_us),
            matmul.few.to_owned(),
            times(&matmul.few_us),
        ]
    };
    let header = [
        ("format", Align::Left),
        ("many rows", Align::Left),
        ("measured", Align::Left),
        ("few rows", Align::Left),
        ("measured", Align::Left),
    ];
    format!(
        "{}, driver {} of {}\nruns of few rows: {} ({})\n\n{bold}Kernels of matmuls{bold:#}\n{}",
        visible(&report.device),
        visible(&report.driver),
        visible(&report.platform),
        if report.persistent.may_be_used { "one persistent kernel" } else { "op by op" },
        report.persistent.why,
        table(header, report.matmuls.iter().map(row).collect())
    )
}
