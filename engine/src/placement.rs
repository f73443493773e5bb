//! The placement report: which device and kernels run each stage, the predicted time, and why.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use lapwing_plan::Phase;
use lapwing_traces::text::counted;

mod explainer;

pub(crate) use explainer::Explainer;

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
    /// Source of all predicted times, if it is a cost model of the program's own
    /// ([`EngineBuilder::cost_model`](crate::EngineBuilder::cost_model)).
    pub times: Option<String>,
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
    /// Range of the experts of a layer; `None` for all.
    pub experts: Option<Range<usize>>,
    /// Rows of the prepared graphs it runs; empty if it needs none.
    pub graphs: Vec<usize>,
    /// Whether the operands of its matmuls are swapped (order swap, HeteroLLM section 4): on an emulated array. Graphs for OpenVINO and
    /// QNN have one order, and their drivers choose their own.
    pub swapped: bool,
    /// Time predicted by the device's model, if it has one.
    pub predicted: Option<Duration>,
    /// Kernels of the device, and the rates it is throttled to.
    pub kernels: String,
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
        if let Some(experts) = &self.experts {
            write!(f, ", experts {} to {}", experts.start, experts.end.saturating_sub(1))?;
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
        let (from, to) = match self.to_host {
            true => (&*self.device, "host"),
            false => ("host", &*self.device),
        };
        let (transfers, bytes) = (counted(self.count, "transfer"), self.bytes);
        write!(f, "{transfers} {from} → {to}, {bytes} bytes")
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
        if let Some(times) = &self.times {
            writeln!(f, "  times of {times}")?;
        }
        for kind in self.kinds() {
            let StageKind { first: stage, count, layers } = kind;
            let times = if count > 1 { format!("{count} × ") } else { String::new() };
            write!(f, "  {times}stage of {}", counted(stage.ops, "op"))?;
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
