//! Devices that know the expected value of every tensor, and hash the whole sequence as it is stored in
//! its KV pages. A row that is missing, stale, doubled, out of order or in the wrong place is either
//! detected when it is read, or changes every later token.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lapwing_actors::message::FinishReason;
use lapwing_kernels::device::{
    Batch, BlockingDevice, DeviceError, DeviceInfo, DeviceKind, GraphKey, ModelId, Observer,
    Prepare, Prepared, Preparer, StageRun, Step, Tensor,
};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, RowSet, ValueId, WeightSpec};
use lapwing_kernels::kv::{DuplicatePage, KvDtype, KvLayout, PageId};
use lapwing_kernels::mask::Mask;
use lapwing_kernels::op::{AttentionOp, Op};
use lapwing_kernels::part::Share;

pub const VOCAB: usize = 97;
pub const PAGE_ROWS: usize = 4;
/// Token that ends a text.
pub const STOP: u32 = 96;
/// Channels of every value except the logits: two shares of [`Share::ALIGN`].
pub const WIDTH: usize = 2 * Share::ALIGN;
/// Row counts for which an NPU oracle has graphs.
pub const SIZES: [usize; 4] = [4, 8, 16, 32];

/// A graph of `layers` layers with every kind of block; only its shape matters to the oracle.
pub fn graph(layers: usize) -> Graph {
    let mut graph = Graph::default();
    let mut weight = |name: &str, rows, cols| {
        graph.add_weight(WeightSpec { name: name.to_owned(), rows, cols, dtype: DType::F32 })
    };
    let table = weight("table", VOCAB, WIDTH);
    let gain = weight("gain", 1, WIDTH);
    let matrix = weight("matrix", WIDTH, WIDTH);
    let head = weight("head", VOCAB, WIDTH);
    let mut push = |op, inputs: &[ValueId], width, layer| {
        graph.push(NewNode { op, inputs, width, layer, role: "oracle" })
    };
    let mut x = push(Op::Embed { table, scale: 1.0 }, &[], WIDTH, None);
    for layer in 0..layers {
        let mut push = |op, inputs: &[ValueId]| push(op, inputs, WIDTH, Some(layer));
        let matmul = || Op::MatMul { weight: matrix, bias: None };
        let normed = push(Op::RmsNorm { weight: gain, eps: 1e-5 }, &[x]);
        let (q, k) = (push(matmul(), &[normed]), push(matmul(), &[normed]));
        let op =
            AttentionOp { layer, scale: 1.0, window: None, mask: Mask::Causal, soft_cap: None };
        let mixed = push(Op::Attention(op), &[q, k, k]);
        let out = push(matmul(), &[mixed]);
        x = push(Op::Add, &[out, x]);
    }
    let selected = push(Op::SelectRows, &[x], WIDTH, None);
    push(Op::MatMul { weight: head, bias: None }, &[selected], VOCAB, None);
    graph
}

pub fn layout() -> KvLayout {
    KvLayout { layers: 1, kv_heads: 1, head_dim: 2, page_rows: PAGE_ROWS, dtype: KvDtype::F16 }
}

fn mix(hash: u64, id: u32) -> u64 {
    (hash ^ u64::from(id)).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
}

/// The token that follows `ids`.
pub fn next_token(ids: &[u32]) -> u32 {
    (ids.iter().fold(START, |h, id| mix(h, *id)) % VOCAB as u64) as u32
}

/// The tokens that follow a prompt, and the finish reason.
pub fn foretell(prompt: &[u32], tokens_max: usize) -> (Vec<u32>, FinishReason) {
    let mut ids = prompt.to_vec();
    for _ in 0..tokens_max {
        let next = next_token(&ids);
        ids.push(next);
        if next == STOP {
            return (ids.split_off(prompt.len()), FinishReason::Stop);
        }
    }
    (ids.split_off(prompt.len()), FinishReason::Length)
}

/// Expected first channel of a value; each further channel is one more.
fn expected(value: ValueId, id: u32, position: u32) -> f32 {
    (mix(mix(mix(7, id), position), value.0 as u32) % 65_536) as f32
}

/// Hidden states of these rows of a text, in a graph of `layers` layers.
pub fn hidden(ids: &[u32], rows: Range<usize>, layers: usize) -> Vec<f32> {
    let value = graph(layers).hidden().output();
    let row = |at: usize| {
        let first = expected(value, ids[at], at as u32);
        (0..WIDTH).map(move |feature| first + feature as f32)
    };
    rows.flat_map(row).collect()
}

/// Behaviour of a device at its n-th stage.
pub type Fault = Arc<dyn Fn(usize) -> Option<DeviceError> + Send + Sync>;

/// The keys and values of all oracles of an engine: for each slot of a page, the hash of the tokens up
/// to the one in that slot. Each hash continues that of the previous slot, so rows that are computed
/// out of order stay wrong.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    hashes: Arc<Mutex<HashMap<(PageId, usize), u64>>>,
    copies: Arc<AtomicUsize>,
    /// Every n-th copy of a page fails.
    pub failing_copies: Option<usize>,
}

impl DuplicatePage for Memory {
    fn duplicate_page(&self, from: PageId, to: PageId) -> Result<(), DeviceError> {
        let copy = self.copies.fetch_add(1, Ordering::Relaxed) + 1;
        if self.failing_copies.is_some_and(|n| copy.is_multiple_of(n)) {
            let reason = "planted: no copy".to_owned();
            return Err(DeviceError::Failed { device: "oracle".to_owned(), reason });
        }
        let mut hashes = self.hashes.lock().expect("no panic");
        for row in 0..PAGE_ROWS {
            match hashes.get(&(from, row)).copied() {
                Some(hash) => hashes.insert((to, row), hash),
                None => hashes.remove(&(to, row)),
            };
        }
        Ok(())
    }
}

/// Hash of no tokens.
const START: u64 = 0xcbf2_9ce4_8422_2325;

pub struct Oracle {
    info: DeviceInfo,
    graph: Arc<Graph>,
    memory: Memory,
    graphs: Arc<Mutex<Graphs>>,
    pub rows_run: Arc<AtomicUsize>,
    pub stages_run: Arc<AtomicUsize>,
    fault: Fault,
    /// One token of so many is another one, as of a draft model.
    wrong: Option<u64>,
}

impl Oracle {
    pub fn new(info: DeviceInfo, graph: &Arc<Graph>, memory: &Memory, fault: Fault) -> Oracle {
        Oracle {
            info,
            graph: Arc::clone(graph),
            memory: memory.clone(),
            graphs: Arc::default(),
            rows_run: Arc::new(AtomicUsize::new(0)),
            stages_run: Arc::new(AtomicUsize::new(0)),
            fault,
            wrong: None,
        }
    }

    /// Gives another token at one of so many positions, if any.
    pub fn wrong_one_of(self, wrong: Option<u64>) -> Oracle {
        Oracle { wrong, ..self }
    }

    /// Keeps at most `budget` graphs, and fails to make every `failing`-th.
    pub fn with_graphs(self, budget: usize, failing: Option<usize>) -> Oracle {
        *self.graphs.lock().expect("no panic") = Graphs { budget, failing, ..Graphs::default() };
        self
    }

    /// Checks that every value that is read equals the value that was written at its place.
    fn check(&self, work: &StageRun<'_>) {
        let read = |node: usize| self.graph.nodes()[node].inputs.iter();
        let outside = work.nodes.clone().flat_map(read).filter(|v| v.0 < work.nodes.start);
        let outside: HashSet<ValueId> = outside.copied().collect();
        for value in outside {
            let tensor = work.inputs.get(value).expect("a value from the stage before");
            let spec = self.graph.value(value);
            assert_eq!(tensor.width, spec.width, "{value:?}");
            for (at, row) in
                tensor.host().expect("on the host").chunks_exact(spec.width).enumerate()
            {
                let row_of = |at| row_of(work.batch, spec.rows, at);
                let (id, position) = row_of(at);
                let first = expected(value, id, position);
                for (feature, found) in row.iter().enumerate() {
                    assert_eq!(*found, first + feature as f32, "{value:?} row {at}");
                }
            }
            assert_eq!(tensor.rows(), rows(work.batch, spec.rows), "{value:?}");
        }
    }

    /// Writes the requested part of a value.
    fn value(&self, work: &StageRun<'_>, value: ValueId) -> Tensor {
        let spec = self.graph.value(value);
        let features = work.part.features.of_width(spec.width);
        let mut data = Vec::new();
        for at in work.part.rows_of(spec, work.batch) {
            if value == self.graph.output() {
                let (next, other) = self.next(work.batch, work.batch.selected[at]);
                let logit = |f: usize| match f as u32 {
                    f if f == next => 10.0,
                    f if f == other => 9.9,
                    _ => 0.0,
                };
                data.extend(features.clone().map(logit));
            } else {
                let (id, position) = row_of(work.batch, spec.rows, at);
                let first = expected(value, id, position);
                data.extend(features.clone().map(|feature| first + feature as f32));
            }
        }
        Tensor::new(features.len(), data)
    }

    /// The token that follows a row, computed from the KV pages, and one that is nearly as likely: the right one where
    /// the first is wrong, and of a model that may be wrong often another one where it is right.
    fn next(&self, batch: &Batch, row: usize) -> (u32, u32) {
        let span = batch.spans.iter().find(|s| s.rows.contains(&row)).expect("an owner");
        let memory = self.memory.hashes.lock().expect("no panic");
        let hash = hash_at(&memory, &span.pages, batch.positions[row] as usize);
        let is_wrong = self.wrong.is_some_and(|of| (hash >> 20).is_multiple_of(of));
        let token = |hash: u64| (hash % VOCAB as u64) as u32;
        let doubts = self.wrong.is_some() && (hash >> 40).is_multiple_of(2);
        let other = hash + u64::from(doubts && !is_wrong);
        (token(hash + u64::from(is_wrong)), token(other))
    }

    /// Checks that an NPU runs prepared graphs only.
    fn check_graphs(&self, work: &mut StageRun<'_>) -> Result<(), DeviceError> {
        if self.info.kind != DeviceKind::Npu {
            assert!(work.part.graphs.is_empty(), "graphs for {}", self.info.name);
            return Ok(());
        }
        let mut graphs = self.graphs.lock().expect("no panic");
        for size in &work.part.graphs {
            let key = GraphKey {
                model: ModelId::default(),
                nodes: work.nodes.clone(),
                features: work.part.features,
                rows: *size,
                order: work.part.order,
            };
            if work.prepare == Prepare::OnTheSpot {
                let (first, end) = (work.nodes.start, work.nodes.end);
                work.observer.step_done(Step::Prepared { first, end, rows: *size, bytes: 1 });
            } else if !graphs.ready.contains(&key) {
                let (nodes, rows) = (key.nodes, key.rows);
                return Err(DeviceError::NotPrepared {
                    device: self.info.name.clone(),
                    nodes,
                    rows,
                });
            }
        }
        graphs.runs += 1;
        Ok(())
    }
}

/// Hash of a sequence up to a position. A lost sequence may read rows that were never computed; in any
/// other sequence they would give wrong tokens.
fn hash_at(memory: &HashMap<(PageId, usize), u64>, pages: &[PageId], at: usize) -> u64 {
    memory.get(&(pages[at / PAGE_ROWS], at % PAGE_ROWS)).copied().unwrap_or(0)
}

/// A row's token and position.
fn row_of(batch: &Batch, set: RowSet, at: usize) -> (u32, u32) {
    let row = match set {
        RowSet::All => at,
        RowSet::Selected => batch.selected[at],
    };
    (batch.ids[row], batch.positions[row])
}

fn rows(batch: &Batch, set: RowSet) -> usize {
    match set {
        RowSet::All => batch.rows(),
        RowSet::Selected => batch.selected.len(),
    }
}

impl BlockingDevice for Oracle {
    fn name(&self) -> &str {
        &self.info.name
    }

    fn run(&mut self, mut work: StageRun<'_>) -> Result<(), DeviceError> {
        let stage = self.stages_run.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(error) = (self.fault)(stage) {
            return Err(error);
        }
        self.check_graphs(&mut work)?;
        self.check(&work);
        work.nodes.clone().for_each(|node| work.observer.nodes_done(node..node + 1));
        self.rows_run.fetch_add(work.part.row_count(work.batch), Ordering::Relaxed);
        let is_attention = |node: usize| matches!(&self.graph.nodes()[node].op, Op::Attention(op) if op.layer == 0);
        if work.nodes.clone().any(is_attention) {
            let mut memory = self.memory.hashes.lock().expect("no panic");
            for span in &work.batch.spans {
                if let Some((from, to)) = span.fork.as_ref().and_then(|fork| fork.copy) {
                    for slot in 0..PAGE_ROWS {
                        let copied = memory.get(&(from, slot)).copied();
                        copied.map(|hash| memory.insert((to, slot), hash));
                    }
                }
                for row in span.rows.clone() {
                    let at = work.batch.positions[row] as usize;
                    let before = match at {
                        0 => START,
                        _ => hash_at(&memory, &span.pages, at - 1),
                    };
                    let slot = (span.pages[at / PAGE_ROWS], at % PAGE_ROWS);
                    memory.insert(slot, mix(before, work.batch.ids[row]));
                }
            }
        }
        for &value in work.writes {
            let tensor = self.value(&work, value);
            work.outputs.put(value, tensor);
        }
        Ok(())
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        let lane =
            OraclePreparer { name: self.info.name.clone(), graphs: Arc::clone(&self.graphs) };
        (self.info.kind == DeviceKind::Npu).then(|| Box::new(lane) as Box<dyn Preparer>)
    }
}

#[derive(Debug, Default)]
struct Graphs {
    ready: Vec<GraphKey>,
    budget: usize,
    failing: Option<usize>,
    made: usize,
    runs: usize,
}

struct OraclePreparer {
    name: String,
    graphs: Arc<Mutex<Graphs>>,
}

impl Preparer for OraclePreparer {
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        let mut graphs = self.graphs.lock().expect("no panic");
        let mut prepared = Prepared::default();
        for key in keys {
            if let Some(at) = graphs.ready.iter().position(|ready| ready == key) {
                // Most recently used last.
                let key = graphs.ready.remove(at);
                graphs.ready.push(key);
                continue;
            }
            graphs.made += 1;
            if graphs.failing.is_some_and(|n| graphs.made.is_multiple_of(n)) {
                let reason = "planted: no such graph".to_owned();
                return Err(DeviceError::Failed { device: self.name.clone(), reason });
            }
            let (first, end) = (key.nodes.start, key.nodes.end);
            observer.step_done(Step::Prepared { first, end, rows: key.rows, bytes: 1 });
            graphs.ready.push(key.clone());
            prepared.made.push(key.clone());
        }
        while graphs.ready.len() > graphs.budget {
            let stays = |key: &GraphKey| keys.contains(key) || keep.contains(key);
            let Some(at) = graphs.ready.iter().position(|key| !stays(key)) else { break };
            prepared.evicted.push(graphs.ready.remove(at));
        }
        if graphs.ready.len() > graphs.budget && keep.iter().any(|key| !keys.contains(key)) {
            // The graphs that were evicted for it stay evicted.
            graphs.ready.retain(|key| !prepared.made.contains(key));
            return Err(DeviceError::NoRoom {
                device: self.name.clone(),
                nodes: 0..1,
                rows: 1,
                bytes: 1,
                kept: keep.len() as u64,
                budget: graphs.budget as u64,
            });
        }
        prepared.bytes = graphs.ready.len() as u64;
        Ok(prepared)
    }
}
