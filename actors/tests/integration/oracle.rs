//! Devices that know the expected value of every tensor, and hash the whole sequence as it is stored in
//! its KV pages. A row that is missing, stale, doubled, out of order or in the wrong place is either
//! detected when it is read, or changes every later token.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lapwing_kernels::device::{
    Batch, BlockingDevice, DeviceError, DeviceInfo, DeviceKind, GraphKey, ModelId, Prepare,
    Preparer, StageRun, Step, Tensor,
};
use lapwing_kernels::graph::{Graph, RowSet, ValueId};
use lapwing_kernels::kv::{DuplicatePage, PageId};
use lapwing_kernels::op::Op;

mod preparer;
mod states;
mod values;

use preparer::{Graphs, OraclePreparer};
use states::States;
pub use values::{
    Form, PAGE_ROWS, SIZES, STOP, VOCAB, WIDTH, foretell, graph_of, hidden, layout, next_token,
};
use values::{START, expected, given, mix, passed};

/// Behaviour of a device at its n-th stage.
pub type Fault = Arc<dyn Fn(usize) -> Option<DeviceError> + Send + Sync>;

/// The keys and values of all oracles of an engine: for each slot of a page, the hash of the tokens up
/// to the one in that slot. Each hash continues that of the previous slot, so rows that are computed
/// out of order stay wrong.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    hashes: Arc<Mutex<HashMap<(PageId, usize), u64>>>,
    states: States,
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
            } else if Some(value) == self.graph.passed_on() {
                let row = place(work.batch, spec.rows, at);
                data.extend_from_slice(&passed(self.hash(work.batch, row))[features.clone()]);
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
        let hash = self.hash(batch, row);
        let is_wrong = self.wrong.is_some_and(|of| (hash >> 20).is_multiple_of(of));
        let token = |hash: u64| (hash % VOCAB as u64) as u32;
        let doubts = self.wrong.is_some() && (hash >> 40).is_multiple_of(2);
        let other = hash + u64::from(doubts && !is_wrong);
        (token(hash + u64::from(is_wrong)), token(other))
    }

    /// The hash of the tokens up to a row, as the KV pages have it; another one if the state is not that of the row, or the row before
    /// has another text than that whose hidden states the row is given.
    fn hash(&self, batch: &Batch, row: usize) -> u64 {
        let span = batch.spans.iter().find(|s| s.rows.contains(&row)).expect("an owner");
        let memory = self.memory.hashes.lock().expect("no panic");
        let at = batch.positions[row] as usize;
        let mut hash = hash_at(&memory, &span.pages, at);
        if self.graph.has_state() && self.memory.states.made(&span.pages, at) != Some(hash) {
            hash += 1;
        }
        let before = || hash_at(&memory, &span.pages, at - 1);
        if self.is_given() && at > 0 && before() != given(row_given(batch, row)) {
            hash += 1;
        }
        hash
    }

    /// Whether its rows are given hidden states.
    fn is_given(&self) -> bool {
        self.graph.given_width() > 0
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

/// What a row is given.
fn row_given(batch: &Batch, row: usize) -> &[f32] {
    assert_eq!(batch.given.len(), batch.rows() * WIDTH, "each row is given something");
    &batch.given[row * WIDTH..][..WIDTH]
}

/// The batch's row of a value's row.
fn place(batch: &Batch, set: RowSet, at: usize) -> usize {
    batch.kept_rows(RowSet::All, set).map_or(at, |kept| kept[at])
}

/// A row's token and position.
fn row_of(batch: &Batch, set: RowSet, at: usize) -> (u32, u32) {
    let row = place(batch, set, at);
    (batch.ids[row], batch.positions[row])
}

fn rows(batch: &Batch, set: RowSet) -> usize {
    match set {
        RowSet::All => batch.rows(),
        RowSet::Passed => batch.passed_rows(),
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
                        _ if self.is_given() => given(row_given(work.batch, row)),
                        0 => START,
                        _ => hash_at(&memory, &span.pages, at - 1),
                    };
                    let slot = (span.pages[at / PAGE_ROWS], at % PAGE_ROWS);
                    memory.insert(slot, mix(before, work.batch.ids[row]));
                }
            }
        }
        let has_state = |node: usize| self.graph.nodes()[node].op.state() == Some(0);
        if work.nodes.clone().any(has_state) {
            self.memory.states.run(work.batch);
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
