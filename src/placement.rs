//! The placement report: which device and kernels run each stage, the predicted time, and why.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use lapwing_kernels::device::MemoryDomain;
use lapwing_kernels::graph::{Node, RowSet, ValueId, ValueSpec};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::OperandOrder;
use lapwing_plan::Phase;
use lapwing_plan::planner::PlannerParts;
use lapwing_plan::rate::Rates;
use lapwing_plan::strategy::{ChunkShape, PromptRows};
use lapwing_plan::time::Job;
use lapwing_plan::{DeviceId, PlanError, Route, Stage, StagePart, StageWork};

use crate::devices::DeviceSpec;

/// Where each stage of a chunk runs, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// Name of the strategy that made the route.
    pub strategy: String,
    /// Why the strategy chose this route.
    pub reason: String,
    /// Prefill or decode.
    pub phase: Phase,
    /// Rows of the chunk.
    pub rows: usize,
    /// Rows of the sequence that are in the cache before the chunk.
    pub context: usize,
    /// Predicted time of the chunk alone; `None` if the strategy makes no prediction.
    pub predicted: Option<Duration>,
    /// Stages, in order.
    pub stages: Vec<StagePlacement>,
    /// Copies between the host's memory and that of devices, one entry for each device and direction.
    pub transfers: Vec<TransferPlacement>,
}

/// The copies of a chunk's values into a device's memory, or out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferPlacement {
    /// The device.
    pub device: String,
    /// Whether values are copied to the host; otherwise to the device.
    pub to_host: bool,
    /// Number of transfers.
    pub count: usize,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// One stage of the route.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StagePlacement {
    /// Device that runs it; for a stage that is cut, all of its devices, joined by ` + `.
    pub device: String,
    /// Number of ops.
    pub ops: usize,
    /// First and last layer; `None` for a stage outside the layers.
    pub layers: Option<(usize, usize)>,
    /// Kernels of the device, and why they were chosen; for a stage that is cut, of its first part.
    pub kernels: String,
    /// Weight formats of the stage's matmuls, with the number of matrices of each.
    pub formats: Vec<(String, usize)>,
    /// The part of each device.
    pub parts: Vec<PartPlacement>,
}

/// A device's part of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartPlacement {
    /// Device that runs it.
    pub device: String,
    /// Rows of the chunk; `None` for all.
    pub rows: Option<Range<usize>>,
    /// Range of output channels as fractions: from, to and the number of units they are counted in;
    /// `None` for all.
    pub features: Option<(usize, usize, usize)>,
    /// Rows of the prepared graphs it runs; empty if it needs none.
    pub graphs: Vec<usize>,
    /// Whether the operands of its matmuls are swapped (order swap, HeteroLLM section 4).
    pub swapped: bool,
    /// Time predicted by the device's model, if it has one.
    pub predicted: Option<Duration>,
    /// Kernels of the device, and the rates it is throttled to.
    pub kernels: String,
}

/// An engine's data about its devices, which explains routes.
pub(crate) struct Explainer {
    /// The planner's parts, from which routes are made.
    pub(crate) parts: PlannerParts,
    pub(crate) specs: Vec<DeviceSpec>,
    /// Descriptions of the kernels, by device.
    pub(crate) kernels: Vec<String>,
    /// Whether the times of all devices come from a profile.
    pub(crate) measured: bool,
    /// Rates of the native devices that were timed at the start.
    pub(crate) timed: Vec<Option<Rates>>,
}

impl Explainer {
    /// The placement of a chunk of that shape on a route.
    pub(crate) fn placement(&self, route: &Route, shape: ChunkShape) -> Placement {
        let compute: Vec<&Stage> = route.compute_stages().collect();
        let stages = compute.iter().copied().enumerate();
        let stages = stages.map(|(at, stage)| {
            let before = at.checked_sub(1).map(|before| compute[before]);
            self.stage(stage, before, shape)
        });
        Placement {
            strategy: self.parts.strategy.name().to_owned(),
            reason: route.reason.clone(),
            phase: shape.phase,
            rows: shape.rows,
            context: shape.context,
            predicted: route.predicted,
            stages: stages.collect(),
            transfers: self.transfers(route, shape),
        }
    }

    fn transfers(&self, route: &Route, shape: ChunkShape) -> Vec<TransferPlacement> {
        let mut transfers: Vec<TransferPlacement> = Vec::new();
        for stage in &route.stages {
            let (StageWork::Transfer { values, to }, Some(device)) =
                (&stage.work, stage.only_device())
            else {
                continue;
            };
            let bytes = |id: &ValueId| {
                let ValueSpec { width, rows } = self.parts.graph.value(*id);
                let rows = if rows == RowSet::All { shape.rows } else { shape.selected };
                (rows * width * size_of::<f32>()) as u64
            };
            let bytes = values.iter().map(bytes).sum::<u64>();
            let device = &self.parts.devices[device.0].name;
            let to_host = *to == MemoryDomain::Host;
            match transfers.iter_mut().find(|t| t.device == *device && t.to_host == to_host) {
                Some(known) => (known.count, known.bytes) = (known.count + 1, known.bytes + bytes),
                None => transfers.push(TransferPlacement {
                    device: device.clone(),
                    to_host,
                    count: 1,
                    bytes,
                }),
            }
        }
        transfers
    }

    /// The placement of the first full chunk of a prompt that fills the context.
    pub(crate) fn full_chunk(&self, context: usize) -> Result<Placement, PlanError> {
        let PlannerParts { strategy, chunk_rows, .. } = &self.parts;
        let input = self.parts.input();
        let most = context.min(*chunk_rows).max(1);
        let (phase, prompt) = (Phase::Prefill, context);
        let rows = strategy.chunk_rows(&input, PromptRows::new(prompt)).clamp(1, most);
        let shape = ChunkShape { phase, rows, selected: 1, context: 0, prompt };
        Ok(self.placement(&*strategy.route(&input, &shape)?, shape))
    }

    /// Whether the speed of every device of the route is known.
    pub(crate) fn knows_times(&self, route: &Route) -> bool {
        let mut parts = route.compute_stages().flat_map(|stage| &stage.parts);
        parts.all(|part| self.knows(part.device))
    }

    fn knows(&self, device: DeviceId) -> bool {
        let timed = self.timed[device.0].is_some();
        self.measured || timed || self.specs[device.0].is_throttled()
    }

    /// The source of predicted times, with the rates of timed devices.
    pub(crate) fn cost_source(&self) -> String {
        let mut source = self.parts.cost.source();
        for (spec, rates) in self.specs.iter().zip(&self.timed) {
            let Some(Rates { gflops, gbps, .. }) = rates else { continue };
            let name = &spec.name;
            source
                .push_str(&format!("; timed briefly: {name} {gflops:.0} GFLOP/s, {gbps:.1} GB/s"));
        }
        source
    }

    fn stage(&self, stage: &Stage, before: Option<&Stage>, shape: ChunkShape) -> StagePlacement {
        let nodes = &self.parts.graph.nodes()[stage.nodes.clone()];
        let layers = nodes.iter().filter_map(|n| n.layer);
        let parts = stage.parts.iter().map(|part| self.part(stage, part, (before, shape)));
        let parts: Vec<PartPlacement> = parts.collect();
        let devices: Vec<&str> = parts.iter().map(|part| part.device.as_str()).collect();
        StagePlacement {
            device: devices.join(" + "),
            ops: nodes.len(),
            layers: layers.clone().min().zip(layers.max()),
            kernels: parts.first().map_or_else(String::new, |part| part.kernels.clone()),
            formats: self.formats(nodes),
            parts,
        }
    }

    fn part(
        &self,
        stage: &Stage,
        StagePart { device, part }: &StagePart,
        (before, shape): (Option<&Stage>, ChunkShape),
    ) -> PartPlacement {
        let spec = &self.specs[device.0];
        let crossed = before.is_some_and(|stage| stage.only_device() != Some(*device));
        let batch = shape.batch();
        let job = Job {
            first: stage.nodes.start,
            end: stage.nodes.end,
            part,
            batch: &batch,
            crossed,
            queued: false,
        };
        let share = part.features;
        PartPlacement {
            device: spec.name.clone(),
            rows: part.rows.clone(),
            features: (!share.is_whole()).then_some((share.from, share.to, share.of)),
            graphs: part.graphs.clone(),
            swapped: part.order == OperandOrder::Swapped,
            predicted: self.knows(*device).then(|| self.parts.cost.job_time(*device, &job)),
            kernels: self.kernels[device.0].clone(),
        }
    }

    fn formats(&self, nodes: &[Node]) -> Vec<(String, usize)> {
        let mut formats: Vec<(String, usize)> = Vec::new();
        for node in nodes {
            let Op::MatMul { weight, .. } = node.op else { continue };
            let name = self.parts.graph.weights()[weight.0].dtype.to_string();
            match formats.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => formats.push((name, 1)),
            }
        }
        formats
    }
}

impl Placement {
    /// Groups stages of the same kind: the first of each group, their number, and the layers they
    /// span. Models repeat their layers, and so do plans.
    pub fn kinds(&self) -> Vec<StageKind<'_>> {
        let mut kinds: Vec<StageKind<'_>> = Vec::new();
        for stage in &self.stages {
            let alike = kinds.iter_mut().find(|kind| kind.first.is_like(stage));
            match alike {
                None => kinds.push(StageKind { first: stage, count: 1, layers: stage.layers }),
                Some(kind) => {
                    kind.count += 1;
                    let both = kind.layers.zip(stage.layers);
                    kind.layers = both.map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
                }
            }
        }
        kinds
    }
}

/// Stages of a placement that differ only in their layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageKind<'a> {
    /// The first of them.
    pub first: &'a StagePlacement,
    /// Number of stages.
    pub count: usize,
    /// First and last layer of the group.
    pub layers: Option<(usize, usize)>,
}

impl StagePlacement {
    fn is_like(&self, other: &StagePlacement) -> bool {
        let layers = |stage: &StagePlacement| stage.layers.map(|(first, last)| last - first);
        let key = |stage: &StagePlacement| (stage.ops, layers(stage));
        key(self) == key(other) && self.formats == other.formats && self.parts == other.parts
    }
}

impl fmt::Display for PartPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.device)?;
        if let Some(rows) = &self.rows {
            write!(f, ", rows {} to {}", rows.start, rows.end.saturating_sub(1))?;
        }
        if let Some((from, to, of)) = self.features {
            write!(f, ", output channels {from}/{of} to {to}/{of}")?;
        }
        if !self.graphs.is_empty() {
            let sizes: Vec<String> = self.graphs.iter().map(usize::to_string).collect();
            write!(f, ", graphs of {} rows", sizes.join(" + "))?;
        }
        if self.swapped {
            write!(f, ", operands swapped")?;
        }
        match self.predicted {
            Some(time) => write!(f, ", predicted {time:.2?}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TransferPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.count == 1 { "" } else { "s" };
        let (from, to) = match self.to_host {
            true => (&*self.device, "host"),
            false => ("host", &*self.device),
        };
        write!(f, "{} transfer{plural} {from} → {to}, {} bytes", self.count, self.bytes)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "strategy {}: {}", self.strategy, self.reason)?;
        let Placement { rows, context, .. } = self;
        write!(f, "  {} of {rows} rows after {context}", self.phase.name())?;
        match self.predicted {
            Some(time) => writeln!(f, ", predicted {time:.2?}")?,
            None => writeln!(f)?,
        }
        for kind in self.kinds() {
            let StageKind { first: stage, count, layers } = kind;
            let times = if count > 1 { format!("{count} × ") } else { String::new() };
            write!(f, "  {times}stage of {} ops", stage.ops)?;
            if let Some((first, last)) = layers {
                write!(f, ", layers {first} to {last}")?;
            }
            writeln!(f)?;
            for part in &stage.parts {
                writeln!(f, "    on {part}\n      kernels: {}", part.kernels)?;
            }
            let formats: Vec<_> =
                stage.formats.iter().map(|(name, count)| format!("{count} × {name}")).collect();
            if !formats.is_empty() {
                writeln!(f, "    matrices: {}", formats.join(", "))?;
            }
        }
        for transfer in &self.transfers {
            writeln!(f, "  {transfer}")?;
        }
        Ok(())
    }
}
