//! A device that computes no values: only its modelled time and its reports matter.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use lapwing_kernels::device::{
    BlockingDevice, DeviceError, GraphKey, Observer, Prepare, Prepared, Preparer, StageRun, Step,
    Tensor,
};
use lapwing_kernels::graph::Graph;

/// Writes zeros of the right shape at once, and reports the steps of a device of its kind.
pub struct Blank {
    name: String,
    graph: Arc<Graph>,
    fails: bool,
    /// Whether it has static graphs, each of which is prepared once.
    prepares: bool,
    made: Made,
}

/// Prepared graphs, shared by a device and its preparer.
type Made = Arc<Mutex<HashSet<GraphKey>>>;

impl Blank {
    /// A device for `graph`, with static graphs if it `prepares`.
    pub fn new(name: &str, graph: &Arc<Graph>, prepares: bool) -> Blank {
        let (name, graph, made) = (name.to_owned(), Arc::clone(graph), Made::default());
        Blank { name, graph, fails: false, prepares, made }
    }

    /// Fails every run.
    #[allow(dead_code, reason = "one of two test programs that share this file needs it")]
    pub fn failing(self, fails: bool) -> Blank {
        Blank { fails, ..self }
    }
}

impl BlockingDevice for Blank {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, work: StageRun<'_>) -> Result<(), DeviceError> {
        if self.fails {
            let (device, reason) = (self.name.clone(), "it was told to".to_owned());
            return Err(DeviceError::Failed { device, reason });
        }
        if work.prepare == Prepare::OnTheSpot {
            let (features, order) = (work.part.features, work.part.order);
            for &rows in &work.part.graphs {
                let key = GraphKey {
                    model: work.batch.model,
                    nodes: work.nodes.clone(),
                    features,
                    rows,
                    order,
                };
                if self.made.lock().expect("no panic").insert(key) {
                    let Range { start: first, end } = work.nodes;
                    work.observer.step_done(Step::Prepared { first, end, rows, bytes: 0 });
                }
            }
        }
        // Like a device with static graphs: loads with padding, stores without.
        let mut next = 0;
        let rows = work
            .part
            .rows_of(self.graph.value(self.graph.nodes()[work.nodes.start].output), work.batch);
        let mut values = 0;
        for size in work.part.graphs.iter().filter(|_| !rows.is_empty()) {
            let real = (rows.len() - next).min(*size);
            next += real;
            if real == 0 {
                break;
            }
            for id in self.graph.live_in(work.nodes.clone()) {
                values += (real + size) * self.graph.value(id).width;
            }
            for id in work.writes {
                values += 2 * real * work.part.features.of_width(self.graph.value(*id).width).len();
            }
        }
        if values > 0 {
            work.observer.step_done(Step::Converted { bytes: 4 * values as u64 });
        }
        for id in work.writes {
            let value = self.graph.value(*id);
            let width = work.part.features.of_width(value.width).len();
            let rows = work.part.rows_of(value, work.batch).len();
            work.outputs.put(*id, Tensor::new(width, vec![0.0; rows * width]));
        }
        Ok(())
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        self.prepares.then(|| Box::new(Maker(Arc::clone(&self.made))) as Box<dyn Preparer>)
    }
}

/// Prepares graphs at once; only their modelled time counts.
struct Maker(Made);

impl Preparer for Maker {
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        _keep: &[GraphKey],
        _observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        let mut made = self.0.lock().expect("no panic");
        let new = keys.iter().filter(|key| made.insert((*key).clone())).cloned().collect();
        Ok(Prepared { made: new, ..Prepared::default() })
    }
}
