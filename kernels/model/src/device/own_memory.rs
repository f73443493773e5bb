//! An emulated processor with a memory of its own.

use std::any::Any;
use std::sync::Arc;

use super::blocking::{BlockingDevice, StageRun};
use super::error::DeviceError;
use super::graphs::Preparer;
use super::info::{DeviceInfo, MemoryDomain};
use super::observer::Observer;
use super::work::{Completed, Device, Notify, RunId, Task, Work};
use crate::formats::DType;
use crate::graph::{Graph, ValueId};
use crate::tensor::{DeviceBuffer, SlotPool, Tensor, TensorSet, TopLogit};

/// A [`BlockingDevice`] whose results are in a memory of its own, as of a processor behind a link: values cross by transfers, and a
/// stage that reads a value of another memory fails. It holds one run, and computes it in [`poll`](Device::poll). Its memory is
/// emulated in that of the host, where keys and values are, too.
#[derive(Debug)]
pub struct OwnMemory<D> {
    info: DeviceInfo,
    device: D,
    graph: Arc<Graph>,
    slots: SlotPool,
    submitted: Option<(RunId, Work)>,
}

/// A value in the memory of an emulated processor.
#[derive(Debug)]
struct Kept {
    domain: MemoryDomain,
    tensor: Tensor,
}

impl DeviceBuffer for Kept {
    fn domain(&self) -> MemoryDomain {
        self.domain
    }

    fn len(&self) -> usize {
        self.tensor.host().map_or(0, <[f32]>::len)
    }

    fn dtype(&self) -> DType {
        DType::F32
    }

    fn read(&self, values: &mut [f32]) -> Result<(), DeviceError> {
        self.tensor.host().into_iter().for_each(|own| values.copy_from_slice(own));
        Ok(())
    }

    fn top(&self) -> Option<&[Option<TopLogit>]> {
        self.tensor.top()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<D: BlockingDevice> OwnMemory<D> {
    /// `device` in the memory that `info` states, for the model of this graph. Values take slots of `slots`.
    pub fn new(
        mut info: DeviceInfo,
        device: D,
        graph: Arc<Graph>,
        slots: SlotPool,
    ) -> OwnMemory<D> {
        info.depth = 1;
        OwnMemory { info, device, graph, slots, submitted: None }
    }

    fn run(&mut self, work: &Work, observer: &mut dyn Observer) -> Result<TensorSet, DeviceError> {
        let mut results = TensorSet::default();
        match &work.task {
            Task::Transfer { values, to } => {
                for id in values.iter() {
                    let copy = self.copy(work, *id)?;
                    results.put(*id, self.placed(copy, *to));
                }
            }
            Task::Nodes { nodes, prepare, writes, to } => {
                let mut inputs = TensorSet::default();
                for id in self.graph.live_in(nodes.clone()) {
                    match work.payload.values.get(id) {
                        Some(value) if value.domain() != *to => {
                            return Err(DeviceError::OtherMemory { value: id.0 });
                        }
                        _ => inputs.put(id, self.copy(work, id)?),
                    }
                }
                let mut outputs = TensorSet::default();
                self.device.run(StageRun {
                    nodes: nodes.clone(),
                    part: &work.part,
                    prepare: *prepare,
                    batch: &work.payload.batch,
                    inputs: &inputs,
                    writes,
                    outputs: &mut outputs,
                    observer,
                })?;
                for id in writes.iter() {
                    let value = outputs.take(*id).ok_or_else(|| self.missing(*id))?;
                    results.put(*id, self.placed(value, *to));
                }
            }
        }
        Ok(results)
    }

    /// A copy of a value, in host memory.
    fn copy(&self, work: &Work, id: ValueId) -> Result<Tensor, DeviceError> {
        let value = work.payload.values.get(id).ok_or_else(|| self.missing(id))?;
        value.copied(&self.slots)
    }

    fn placed(&self, tensor: Tensor, to: MemoryDomain) -> Tensor {
        match to {
            MemoryDomain::Host => tensor,
            domain => Tensor::in_device(tensor.width, Arc::new(Kept { domain, tensor })),
        }
    }

    fn missing(&self, id: ValueId) -> DeviceError {
        DeviceError::MissingValue { value: id.0, role: self.graph.nodes()[id.0].role }
    }
}

impl<D: BlockingDevice> Device for OwnMemory<D> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn threads(&self) -> usize {
        self.device.threads()
    }

    /// Without effect: a run completes inside `poll`.
    fn start(&mut self, _notify: Notify) {}

    fn submit(&mut self, run: RunId, work: Work) {
        debug_assert!(self.submitted.is_none(), "more runs than the depth allows");
        self.submitted = Some((run, work));
    }

    fn poll(&mut self, observer: &mut dyn Observer) -> Option<Completed> {
        let (run, work) = self.submitted.take()?;
        let result = self.run(&work, observer);
        Some(Completed { run, result, stamps: None })
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        self.device.preparer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Batch, DeviceKind, Payload, Prepare};
    use crate::graph::{NewNode, WeightSpec};
    use crate::op::Op;
    use crate::part::Part;

    const OWN: MemoryDomain = MemoryDomain::Device(3);

    /// Writes twice what it reads.
    struct Twice;

    impl BlockingDevice for Twice {
        fn name(&self) -> &str {
            "twice"
        }

        fn run(&mut self, run: StageRun<'_>) -> Result<(), DeviceError> {
            let x = run.inputs.get(ValueId(0)).and_then(Tensor::host).expect("host memory");
            let y: Vec<f32> = x.iter().map(|x| 2.0 * x).collect();
            run.outputs.put(ValueId(1), Tensor::new(2, y));
            Ok(())
        }
    }

    fn device() -> OwnMemory<Twice> {
        let mut graph = Graph::default();
        let spec = WeightSpec { name: "w".to_owned(), rows: 4, cols: 2, dtype: DType::F32 };
        let table = graph.add_weight(spec);
        let mut push = |op, inputs: &[ValueId]| {
            graph.push(NewNode { op, inputs, width: 2, layer: None, role: "test" })
        };
        let x = push(Op::Embed { table, scale: 1.0 }, &[]);
        push(Op::Scale { factor: 2.0 }, &[x]);
        let info = DeviceInfo::new("twice", DeviceKind::Gpu).with_queue(OWN, 4);
        OwnMemory::new(info, Twice, Arc::new(graph), SlotPool::default())
    }

    fn run(
        device: &mut OwnMemory<Twice>,
        task: Task,
        values: TensorSet,
    ) -> Result<TensorSet, DeviceError> {
        let payload = Arc::new(Payload { batch: Batch::default(), values });
        device.submit(RunId(0), Work { task, part: Part::WHOLE, payload });
        let completed = device.poll(&mut ()).expect("a completion");
        assert!(device.poll(&mut ()).is_none());
        completed.result
    }

    fn one(id: ValueId, tensor: Tensor) -> TensorSet {
        let mut set = TensorSet::default();
        set.put(id, tensor);
        set
    }

    #[test]
    fn values_cross_by_transfers_only() {
        let (mut device, x, y) = (device(), ValueId(0), ValueId(1));
        let nodes =
            |to| Task::Nodes { nodes: 1..2, prepare: Prepare::Ahead, writes: Arc::from([y]), to };
        let transfer = |id, to| Task::Transfer { values: Arc::from([id]), to };
        let host = || one(x, Tensor::new(2, vec![1.0, 2.0, 3.0, 4.0]));
        let error = run(&mut device, nodes(OWN), host()).expect_err("in host memory");
        assert_eq!(error, DeviceError::OtherMemory { value: 0 });
        let own = run(&mut device, transfer(x, OWN), host()).expect("a copy");
        assert_eq!(own.get(x).map(Tensor::domain), Some(OWN));
        let made = run(&mut device, nodes(OWN), own).expect("a result");
        assert_eq!(made.get(y).map(|y| (y.domain(), y.rows())), Some((OWN, 2)));
        let back = run(&mut device, transfer(y, MemoryDomain::Host), made).expect("a copy");
        assert_eq!(back.get(y).and_then(Tensor::host), Some(&[2.0, 4.0, 6.0, 8.0][..]));
        drop(back);
        // A stage that is divided between devices reads and writes host memory.
        let divided = run(&mut device, nodes(MemoryDomain::Host), host()).expect("a result");
        assert_eq!(divided.get(y).map(Tensor::domain), Some(MemoryDomain::Host));
        let error = run(&mut device, nodes(OWN), TensorSet::default()).expect_err("no value");
        assert!(matches!(error, DeviceError::MissingValue { value: 0, .. }), "{error}");
        assert_eq!(device.slots.stats().in_use, 0);
    }
}
