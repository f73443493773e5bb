//! Twins of live devices: they compute nothing, and report all that the live ones report.

use std::sync::{Arc, Mutex, PoisonError};

use lapwing_kernels::device::{
    Device, DeviceError, DeviceInfo, DeviceKind, GraphKey, Observer, Prepare, Prepared, Preparer,
    Step, Work,
};
use lapwing_kernels::graph::Graph;

use crate::simulate::logits::put_logits;
use lapwing_plan::shape::{convert_bytes, rows_of};

mod kept;

use kept::{Asker, Kept};

/// A live device's twin: it hands on nothing but logits of a single token. An NPU's twin has
/// graphs to prepare, within its budget, keeps them from run to run, and converts what goes into
/// them and comes out, as the live device does; what of that takes time, its model says.
#[derive(Debug)]
pub struct Twin {
    info: DeviceInfo,
    graph: Arc<Graph>,
    kept: Arc<Mutex<Kept>>,
}

impl Twin {
    /// The twin of a device that has prepared nothing.
    pub fn new(info: &DeviceInfo, graph: &Arc<Graph>) -> Twin {
        let kept = Arc::new(Mutex::new(Kept::new(info, graph)));
        Twin { info: info.clone(), graph: Arc::clone(graph), kept }
    }

    /// What an NPU does beside computing: it has the graphs of the part, loads the rows of each
    /// and reads its results.
    fn run_graphs(&mut self, work: &mut Work<'_>) -> Result<(), DeviceError> {
        let Work { nodes, part, batch, .. } = work;
        let rows = rows_of(&self.graph, nodes.start, part, batch);
        let (mut keys, mut covered) = (Vec::new(), 0);
        for &size in &part.graphs {
            if covered < rows {
                let (nodes, features, order) = (nodes.clone(), part.features, part.order);
                keys.push(GraphKey { nodes, features, rows: size, order });
                covered += size;
            }
        }
        if covered < rows {
            let what = format!("{rows} rows with graphs of {:?}", part.graphs);
            return Err(DeviceError::Unsupported { device: self.info.name.clone(), what });
        }
        let Some(first) = keys.first().map(|key| key.rows) else { return Ok(()) };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match work.prepare {
            Prepare::OnTheSpot => {
                kept.ensure(&keys, Asker::Device, work.observer)?;
            }
            Prepare::Ahead => keys.iter().try_for_each(|key| kept.get(key))?,
        }
        let inputs = self.graph.live_in(work.nodes.clone()).into_iter();
        let inputs: usize = inputs.map(|value| self.graph.value(value).width).sum();
        let loaded = ((rows.min(first) + first) * inputs * size_of::<f32>()) as u64;
        let all = convert_bytes(&self.graph, work.nodes.clone(), work.part, work.batch);
        // The first graph is loaded; what follows is reported when all have run.
        for bytes in [loaded, all.saturating_sub(loaded)] {
            work.observer.step_done(Step::Converted { bytes });
        }
        Ok(())
    }
}

impl Device for Twin {
    fn name(&self) -> &str {
        &self.info.name
    }

    fn run(&mut self, mut work: Work<'_>) -> Result<(), DeviceError> {
        if self.info.kind == DeviceKind::Npu {
            self.run_graphs(&mut work)?;
        }
        put_logits(&self.graph, &mut work);
        Ok(())
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        let lane = || Box::new(Lane(Arc::clone(&self.kept))) as Box<dyn Preparer>;
        (self.info.kind == DeviceKind::Npu).then(lane)
    }
}

/// Prepares ahead for a twin.
struct Lane(Arc<Mutex<Kept>>);

impl Preparer for Lane {
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.ensure(keys, Asker::Preparer(keep), observer)
    }
}
