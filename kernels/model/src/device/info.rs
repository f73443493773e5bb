//! Description of a device for the planner.

use std::fmt;
use std::sync::Arc;

use super::graphs::GraphKey;
use super::room::{Packing, Room};
use crate::graph::Graph;
use crate::op::Op;
use crate::ops::OpInfo;

/// Kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// Runs every op.
    Cpu,
    /// Runs every op, for any number of rows.
    Gpu,
    /// Runs prepared, static graphs of ops whose rows depend neither on each other nor on their
    /// position.
    Npu,
    /// A kind of the caller's own with its name, for devices of simulations. A device of it runs prepared
    /// graphs only if it has graph sizes. Strategies that assign roles by kind do not use it; those that
    /// compare predicted times do, and so do strategies that ask for this kind.
    Own(&'static str),
}

impl DeviceKind {
    /// Every kind that a live device has.
    pub const ALL: [DeviceKind; 3] = [DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Npu];

    /// The kind of [`ALL`](DeviceKind::ALL) with this [`name`](DeviceKind::name).
    pub fn by_name(name: &str) -> Option<DeviceKind> {
        DeviceKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Gpu => "gpu",
            DeviceKind::Npu => "npu",
            DeviceKind::Own(name) => name,
        }
    }
}

/// An address space that holds tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryDomain {
    /// Memory of the host, which every device with this domain reads and writes in place.
    #[default]
    Host,
    /// Memory of one device, by number. The host reads it only through a transfer.
    Device(usize),
}

/// A set of op kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpSet(u32);

impl OpSet {
    /// No op.
    pub const NONE: OpSet = OpSet(0);

    /// Every op.
    pub const ALL: OpSet = OpSet(u32::MAX);

    /// All ops but those that only CPUs compute.
    pub const COMMON: OpSet = OpSet(OpSet::ALL.0 & !OpSet::by_traits()[0].0);

    /// Ops that a static graph can hold: the result of a row depends on that row only, and not on
    /// its position.
    pub const STATIC: OpSet = OpSet::by_traits()[1];

    /// Kinds that only CPUs compute, and those that static graphs can hold.
    const fn by_traits() -> [OpSet; 2] {
        let (mut sets, mut at) = ([OpSet::NONE; 2], 0);
        while at < OpInfo::ALL.len() {
            sets[0].0 |= (OpInfo::ALL[at].is_for_cpus as u32) << at;
            sets[1].0 |= (OpInfo::ALL[at].is_static as u32) << at;
            at += 1;
        }
        sets
    }

    /// Whether the set holds the op's kind. Attention whose rows see later ones is a kind of its own.
    pub fn contains(self, op: &Op) -> bool {
        self.0 & (1 << op.info().number) != 0
    }

    /// The set with the op's kind.
    #[must_use]
    pub fn with(self, op: &Op) -> OpSet {
        OpSet(self.0 | (1 << op.info().number))
    }

    /// The set without the op's kind.
    #[must_use]
    pub fn without(self, op: &Op) -> OpSet {
        OpSet(self.0 & !(1 << op.info().number))
    }
}

/// Bytes that a prepared graph keeps.
type GraphBytes = dyn Fn(&Graph, &GraphKey) -> u64 + Send + Sync;

/// Memory for the static graphs of a device.
#[derive(Clone)]
pub struct GraphBudget {
    /// Bytes that all prepared graphs may take together.
    pub bytes: u64,
    measure: Arc<GraphBytes>,
}

impl GraphBudget {
    /// A budget of `bytes`. `measure` is the back end's own statement of the bytes that a prepared
    /// graph keeps.
    pub fn new(
        bytes: u64,
        measure: impl Fn(&Graph, &GraphKey) -> u64 + Send + Sync + 'static,
    ) -> GraphBudget {
        GraphBudget { bytes, measure: Arc::new(measure) }
    }

    /// Bytes that a prepared graph keeps.
    pub fn graph_bytes(&self, graph: &Graph, key: &GraphKey) -> u64 {
        (self.measure)(graph, key)
    }
}

impl fmt::Debug for GraphBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBudget").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// How the values of a device are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// As by the kernels of CPUs, which back ends in software have, too: all these devices give the same bits.
    #[default]
    Cpu,
    /// As by a driver: no other device gives the same bits.
    Own,
}

/// Description of a device for planner and worker. The device states it; nothing here follows
/// from its kind alone.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Name, such as `gpu`; unique in an engine.
    pub name: String,
    /// Kind of processor, by which strategies assign roles.
    pub kind: DeviceKind,
    /// Ops that it can run.
    pub ops: OpSet,
    /// Where its results are.
    pub memory: MemoryDomain,
    /// Runs that may be submitted to it and not completed, at least 1.
    pub depth: usize,
    /// Rows of a static graph are a multiple of this, or fewer; 1 without static graphs.
    pub row_alignment: usize,
    /// Row counts for which it can have prepared graphs, ascending; empty if it takes any number.
    pub sizes: Vec<usize>,
    /// Memory for its prepared graphs; `None` where there is no limit or there are no graphs.
    pub budget: Option<GraphBudget>,
    /// Room for weights, keys and values in a memory of its own; `None` where they are in that of the host.
    pub room: Option<Room>,
    /// How its values are rounded.
    pub arithmetic: Arithmetic,
    /// How many bytes matrices take in its memory.
    pub packing: Packing,
}

impl DeviceInfo {
    /// A device of a kind, with the properties of the kind's software back end: results in host
    /// memory, one run at a time. An NPU runs static ops only; its sizes are
    /// empty until [`with_graphs`](DeviceInfo::with_graphs).
    pub fn new(name: impl Into<String>, kind: DeviceKind) -> DeviceInfo {
        let is_npu = kind == DeviceKind::Npu;
        DeviceInfo {
            name: name.into(),
            kind,
            ops: if is_npu { OpSet::STATIC } else { OpSet::ALL },
            memory: MemoryDomain::Host,
            depth: 1,
            row_alignment: if is_npu { 32 } else { 1 },
            sizes: Vec::new(),
            budget: None,
            room: None,
            arithmetic: Arithmetic::default(),
            packing: Packing::FILE,
        }
    }

    /// With these ops in place of those of its kind.
    #[must_use]
    pub fn with_ops(mut self, ops: OpSet) -> DeviceInfo {
        self.ops = ops;
        self
    }

    /// With prepared graphs of these row counts, within a budget.
    #[must_use]
    pub fn with_graphs(mut self, sizes: Vec<usize>, budget: Option<GraphBudget>) -> DeviceInfo {
        (self.sizes, self.budget) = (sizes, budget);
        self
    }

    /// With results in a memory domain, and `depth` runs in flight.
    #[must_use]
    pub fn with_queue(mut self, memory: MemoryDomain, depth: usize) -> DeviceInfo {
        (self.memory, self.depth) = (memory, depth.max(1));
        self
    }

    /// With room for weights, keys and values in a memory of its own.
    #[must_use]
    pub fn with_room(mut self, room: Room) -> DeviceInfo {
        self.room = Some(room);
        self
    }

    /// With values that are rounded in that way.
    #[must_use]
    pub fn with_arithmetic(mut self, arithmetic: Arithmetic) -> DeviceInfo {
        self.arithmetic = arithmetic;
        self
    }

    /// Whether it can run an op.
    pub fn runs(&self, op: &Op) -> bool {
        self.ops.contains(op)
    }

    /// Whether it runs prepared graphs only.
    pub fn is_static(&self) -> bool {
        match self.kind {
            DeviceKind::Cpu | DeviceKind::Gpu => false,
            DeviceKind::Npu => true,
            DeviceKind::Own(_) => !self.sizes.is_empty(),
        }
    }
}
