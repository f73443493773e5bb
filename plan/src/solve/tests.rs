//! The solver on devices whose time follows a known law.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind, GraphKey};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{Part, Share};

use super::*;
use crate::chunk::ChunkShape;
use crate::cost::CostModel;
use crate::device::DeviceId;
use crate::phase::Phase;
use crate::stage::StagePart;
use crate::strategy::PlanInput;
use crate::time::{Crossing, Job};

mod brute_force;
mod published;

/// Time in µs of the matmul x[m, k]·W[n, k]ᵀ on a device, from n, k and m.
type Law = Arc<dyn Fn(usize, usize, usize) -> f64 + Send + Sync>;

/// A cost model from the laws of the devices.
struct Laws {
    graph: Arc<Graph>,
    laws: Vec<Law>,
    sync: Duration,
    bytes_per_us: f64,
}

impl CostModel for Laws {
    fn source(&self) -> String {
        "a test's laws".to_owned()
    }

    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration {
        let nodes = (job.first..job.end).map(|node| {
            let value = self.graph.value(self.graph.nodes()[node].output);
            let Op::MatMul { weight, .. } = self.graph.nodes()[node].op else { return 0.0 };
            let n = job.part.features.of_width(value.width).len();
            let k = self.graph.weights()[weight.0].cols;
            let law = &self.laws[device.0];
            match &job.part.graphs[..] {
                [] => law(n, k, job.part.row_count(job.batch)),
                sizes => sizes.iter().map(|m| law(n, k, *m)).sum(),
            }
        });
        Duration::from_nanos((nodes.sum::<f64>() * 1000.0) as u64)
    }

    fn sync_time(&self, crossing: Crossing) -> Duration {
        if crossing.from == crossing.to { Duration::ZERO } else { self.sync }
    }

    fn copy_time(&self, bytes: u64) -> Duration {
        Duration::from_nanos((bytes as f64 / self.bytes_per_us * 1000.0) as u64)
    }

    fn prepare_time(&self, _: DeviceId, _: &GraphKey) -> Duration {
        Duration::ZERO
    }
}

/// A graph of one matmul on an embedding.
fn matmul(n: usize, k: usize) -> Arc<Graph> {
    let mut g = Graph::default();
    let weight = |g: &mut Graph, rows, cols| {
        g.add_weight(WeightSpec { name: "w".into(), rows, cols, dtype: DType::Q4_0 })
    };
    let (table, w) = (weight(&mut g, 8, k), weight(&mut g, n, k));
    let node = |op, inputs, width| NewNode { op, inputs, width, layer: Some(0), role: "test" };
    let x = g.push(node(Op::Embed { table, scale: 1.0 }, &[], k));
    g.push(node(Op::MatMul { weight: w, bias: None }, &[x], n));
    Arc::new(g)
}

fn device(kind: DeviceKind, sizes: &[usize]) -> DeviceInfo {
    DeviceInfo::new(kind.name(), kind).with_graphs(sizes.to_vec(), None)
}

const SIZES: [usize; 6] = [32, 64, 128, 256, 512, 1024];

/// A block to solve.
struct Case {
    laws: Laws,
    devices: Vec<DeviceInfo>,
    rows: usize,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times: Vec<f64> = self.laws.laws.iter().map(|law| law(self.width(), 64, 32)).collect();
        write!(f, "{} × {} on {times:?}, {:?}", self.rows, self.width(), self.laws.sync)
    }
}

impl Case {
    fn shape(&self) -> ChunkShape {
        let (phase, rows) = (Phase::Prefill, self.rows);
        ChunkShape { phase, rows, selected: 1, context: 0, prompt: rows }
    }

    /// Time of a part of `rows` rows on a device, in the fastest of its graphs if it has any.
    fn part_time(&self, device: usize, part: &Part, rows: usize) -> Duration {
        let batch = self.shape().batch();
        let info = &self.devices[device];
        let ways = match info.kind {
            DeviceKind::Npu => covers(rows, &info.sizes),
            _ => vec![Vec::new()],
        };
        let times = ways.into_iter().map(|graphs| {
            let part = &Part { graphs, ..part.clone() };
            let job = Job::alone(1..2, part, &batch);
            self.laws.job_time(DeviceId(device), &job)
        });
        times.min().expect("a way")
    }

    fn solve(&self) -> Arc<Solution> {
        self.solve_with(&self.devices)
    }

    fn solve_with(&self, devices: &[DeviceInfo]) -> Arc<Solution> {
        let graph = &*self.laws.graph;
        let input = PlanInput {
            model: Default::default(),
            graph,
            devices,
            cost: &self.laws,
            chunk_rows: 1024,
        };
        let shape = self.shape();
        let problem = Problem { first: 1, end: 2, shape: &shape, home: DeviceId(0), divide: true };
        Solver::new().solve(&input, problem)
    }

    fn width(&self) -> usize {
        self.laws.graph.value(self.laws.graph.output()).width
    }
}

fn shares(parts: &[StagePart], width: usize) -> Vec<usize> {
    parts.iter().map(|p| p.part.features.of_width(width).len()).collect()
}
