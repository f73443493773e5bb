//! `lapwing devices --kernels`: the kernels in use, why they were chosen, and their share of the
//! machine's peak.

use std::path::Path;
use std::time::Duration;

use lapwing_engine::profile::{Limits, OpShape, Sample};
use lapwing_kernels::cost::Cost;
use lapwing_kernels::cpu::roofline::{Kernel, OP_NAMES, Peak, Roofline, RooflineError};
use lapwing_kernels::cpu::{Cpu, Isa};
use lapwing_kernels::device::Batch;
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvDtype;
use lapwing_kernels::model::Model;
use lapwing_kernels::part::Part;
use lapwing_kernels::weights::WeightFile;
use lapwing_traces::{Clock, OsClock};
use serde::Serialize;

use super::Args;
use crate::cli::EngineArgs;
use crate::cli::failure::Failure;
use crate::cli::output::print_json;
use crate::cli::profiles::measure;
use crate::cli::requant::RequantReport;
use crate::cli::resolve::model_file;
use crate::cli::session::Session;

mod blocks;
mod text;

use blocks::BlocksReport;

/// Runs with which each peak rate is measured.
const ROUNDS: usize = 25;
/// Time for measuring the ops of a model, not counting the first run of each kind.
const PER_DEVICE: Duration = Duration::from_secs(3);

#[derive(Debug, Serialize)]
struct Report {
    isa: &'static str,
    why: String,
    threads: usize,
    /// The cores that the threads are pinned to.
    cores: Option<String>,
    roofline: RooflineReport,
    blocks: BlocksReport,
    kernels: Vec<KernelReport>,
    /// `None` without a model.
    measured: Option<Vec<OpReport>>,
    requant: Option<RequantReport>,
}

#[derive(Debug, Serialize)]
struct RooflineReport {
    int8: Option<PeakReport>,
    bf16: Option<PeakReport>,
    f32: Option<PeakReport>,
    read_gbps: f64,
    read_bytes: usize,
}

#[derive(Debug, Serialize)]
struct PeakReport {
    instructions: &'static str,
    gops: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct KernelReport {
    op: String,
    format: Option<String>,
    arithmetic: &'static str,
    how: String,
}

#[derive(Debug, Serialize)]
struct OpReport {
    op: String,
    features: usize,
    inner: usize,
    format: Option<String>,
    rows: usize,
    context: usize,
    us: f64,
    gops: f64,
    gbps: f64,
    bound_by: Option<&'static str>,
    of_bound: Option<f64>,
}

/// Measures and prints.
pub(super) async fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let engine = EngineArgs {
        threads: args.threads,
        cores: args.cores.clone(),
        isa: args.isa.clone(),
        requant: args.requant,
        ..EngineArgs::default()
    };
    engine.check(session)?;
    let isa = Isa::available().into_iter().find(|isa| isa.name() == engine.isa_name());
    let isa = isa.unwrap_or_else(Isa::best);
    let path = match &args.model {
        Some(model) => Some(model_file(model, session).await?),
        None => None,
    };
    let (roof, blocks) = limits(engine.cpu()?, engine.thread_count(), session).await?;
    let kernels =
        Kernels { cpu: Cpu::new(1, isa).with_activations(engine.activations()), kv: engine.kv };
    let mut requant = None;
    let (kernels, measured) = match &path {
        None => (all_kernels(&kernels), None),
        Some(path) => {
            let limits =
                Limits { runs: 7, per_op: Duration::from_millis(60), per_device: PER_DEVICE };
            let profile = measure(engine.builder(path.clone())?, limits, session).await?;
            let samples = profile.devices.into_iter().flat_map(|device| device.samples).collect();
            let mut graph = graph(path)?;
            let requantized = args.requant.map(|format| graph.requantize(format));
            requant = requantized.as_ref().map(RequantReport::of);
            (kernels_of(&graph, &kernels), Some(ops(&graph, &kernels, &roof, samples)))
        }
    };
    let peak = |peak: Peak| PeakReport {
        instructions: peak.instructions,
        gops: peak.ops_per_second / 1e9,
    };
    let report = Report {
        isa: isa.name(),
        why: isa.explain(),
        threads: roof.threads,
        cores: args.cores.as_ref().map(ToString::to_string),
        roofline: RooflineReport {
            int8: roof.int8.map(peak),
            bf16: roof.bf16.map(peak),
            f32: roof.f32.map(peak),
            read_gbps: roof.read_bytes_per_second / 1e9,
            read_bytes: roof.read_bytes,
        },
        blocks,
        kernels,
        measured,
        requant,
    };
    if session.json { print_json(&report) } else { text::print_report(&report) }
}

/// Measures the peak rates on a thread of its own, and reads the block sizes of matmuls.
async fn limits(
    cpu: Cpu,
    threads: usize,
    session: &Session,
) -> Result<(Roofline, BlocksReport), Failure> {
    session.note("measuring the peak rates of the CPU");
    let work = tokio::task::spawn_blocking(move || {
        let clock = OsClock::start();
        let now = || Duration::from_nanos(clock.now().0);
        // Refused only if a core has gone since the check: the rates are then those of any core.
        let _pinned = cpu.pool().pin_caller();
        Ok((Roofline::measure(&cpu, ROUNDS, &now)?, BlocksReport::of(&cpu)))
    });
    let done: Result<Result<_, RooflineError>, _> = work.await;
    match done {
        Ok(Ok((roof, blocks))) if roof.threads == threads => Ok((roof, blocks)),
        Ok(Ok((roof, _))) => {
            let got = roof.threads;
            Err(Failure::failed(format!(
                "only {got} of {threads} threads are available; use -t {got}"
            )))
        }
        Ok(Err(error)) => Err(Failure::failed(error.to_string())),
        Err(error) => Err(Failure::failed(format!("the measurement ended early: {error}"))),
    }
}

pub(super) fn graph(path: &Path) -> Result<Graph, Failure> {
    let file = WeightFile::open(path).map_err(|error| Failure::failed(error.to_string()))?;
    let model = Model::from_weights(&file).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(model.graph)
}

/// Kernels of all ops, and of matmuls in all formats.
fn all_kernels(kernels: &Kernels) -> Vec<KernelReport> {
    let formats = |op: &str| match op {
        "matmul" => DType::ALL.map(Some).to_vec(),
        _ => vec![None],
    };
    let pairs = OP_NAMES.into_iter().flat_map(|op| formats(op).into_iter().map(move |f| (op, f)));
    pairs.filter_map(|(op, format)| kernels.report(op, format)).collect()
}

/// Kernels of the ops and formats of a model, in the order of the model.
fn kernels_of(graph: &Graph, kernels: &Kernels) -> Vec<KernelReport> {
    let mut reports: Vec<KernelReport> = Vec::new();
    for node in 0..graph.nodes().len() {
        let shape = OpShape::of(graph, node, &Part::WHOLE);
        let report = kernels.report(&shape.op, format(&shape));
        reports.extend(report.filter(|report| !reports.contains(report)));
    }
    reports
}

/// Storage format of an op's weight.
fn format(shape: &OpShape) -> Option<DType> {
    let name = shape.dtype.as_ref()?;
    DType::ALL.into_iter().find(|dtype| dtype.to_string() == *name)
}

/// The settings that select kernels.
struct Kernels {
    cpu: Cpu,
    kv: KvDtype,
}

impl Kernels {
    fn of(&self, op: &str, format: Option<DType>) -> Option<Kernel> {
        Kernel::of(&self.cpu, op, format, self.kv)
    }

    fn report(&self, op: &str, format: Option<DType>) -> Option<KernelReport> {
        let Kernel { arithmetic, how } = self.of(op, format)?;
        let arithmetic = arithmetic.name();
        let format = format.map(|format| format.to_string());
        Some(KernelReport { op: op.to_owned(), format, arithmetic, how })
    }
}

/// Each shape, with the fewest and the most rows measured.
fn ops(
    graph: &Graph,
    kernels: &Kernels,
    roof: &Roofline,
    mut samples: Vec<Sample>,
) -> Vec<OpReport> {
    samples.sort_by(|a, b| (&a.shape, a.m, a.context).cmp(&(&b.shape, b.m, b.context)));
    samples.dedup_by(|a, b| (&a.shape, a.m, a.context) == (&b.shape, b.m, b.context));
    let ends = |sample: &Sample| {
        let rows = samples.iter().filter(|other| other.shape == sample.shape).map(|s| s.m);
        rows.clone().min() == Some(sample.m) || rows.max() == Some(sample.m)
    };
    let shown = samples.iter().filter(|sample| ends(sample));
    shown.filter_map(|sample| op(graph, kernels, roof, sample)).collect()
}

fn op(graph: &Graph, kernels: &Kernels, roof: &Roofline, sample: &Sample) -> Option<OpReport> {
    let Sample { shape, m, context, time } = sample;
    let node =
        (0..graph.nodes().len()).find(|node| OpShape::of(graph, *node, &Part::WHOLE) == *shape)?;
    let mut batch = Batch::default();
    batch.push(&vec![0; *m], *context, Vec::new(), 0..*m);
    let cost = graph.cost(node, &batch);
    let kernel = kernels.of(&shape.op, format(shape))?;
    let bound = roof.bound(kernel.arithmetic, cost);
    let seconds = time.median().as_secs_f64();
    let Cost { flops, bytes } = cost;
    let per_ns = |count: u64| count as f64 / seconds / 1e9;
    Some(OpReport {
        op: shape.op.clone(),
        features: shape.n,
        inner: shape.k,
        format: shape.dtype.clone(),
        rows: *m,
        context: *context,
        us: seconds * 1e6,
        gops: per_ns(flops),
        gbps: per_ns(bytes),
        bound_by: bound.map(|bound| bound.by),
        of_bound: bound.map(|bound| bound.seconds / seconds),
    })
}
