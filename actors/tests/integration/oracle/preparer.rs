//! Prepares the graphs of oracles.

use std::sync::{Arc, Mutex};

use lapwing_kernels::device::{DeviceError, GraphKey, Observer, Prepared, Preparer, Step};

#[derive(Debug, Default)]
pub(super) struct Graphs {
    pub(super) ready: Vec<GraphKey>,
    pub(super) budget: usize,
    pub(super) failing: Option<usize>,
    pub(super) made: usize,
    pub(super) runs: usize,
}

pub(super) struct OraclePreparer {
    pub(super) name: String,
    pub(super) graphs: Arc<Mutex<Graphs>>,
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
