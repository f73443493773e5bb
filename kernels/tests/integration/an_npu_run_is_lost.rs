//! Graphs of a back end with completions of its own run while the device's thread does other things.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapwing_kernels::device::{
    Batch, BlockingDevice, Completed, Device, DeviceError, MemoryDomain, Notify, Observer, Payload,
    RunId, Runs, Task as DeviceTask, TensorSet, Work,
};
use lapwing_kernels::npu::{
    GraphSpec, NpuBackend, NpuDevice, NpuQueue, PreparedGraph, Started, Systolic,
};

use crate::npu::{Report, Task, Tiny, properties_of_inner};

/// A back end whose started graphs end when the test allows it.
struct Delayed {
    inner: Systolic,
    /// Number of graphs that may end.
    allowed: Arc<AtomicUsize>,
    /// The started graph, counted from 1, that fails; 0 for none.
    fails: usize,
}

struct DelayedGraph {
    inner: Box<dyn PreparedGraph>,
    allowed: Arc<AtomicUsize>,
    fails: usize,
    started: usize,
}

impl NpuBackend for Delayed {
    properties_of_inner!();

    fn prepare(&mut self, spec: &GraphSpec) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        let (inner, allowed) = (self.inner.prepare(spec)?, Arc::clone(&self.allowed));
        Ok(Box::new(DelayedGraph { inner, allowed, fails: self.fails, started: 0 }))
    }
}

impl PreparedGraph for DelayedGraph {
    fn input(&mut self, port: usize) -> &mut [f32] {
        self.inner.input(port)
    }

    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError> {
        self.inner.run(observer)
    }

    fn start(&mut self, notify: &Notify, _: &mut dyn Observer) -> Result<Started, DeviceError> {
        self.started += 1;
        notify();
        Ok(Started::Running)
    }

    fn finish(&mut self, observer: &mut dyn Observer) -> Option<Result<(), DeviceError>> {
        let allow = |left: usize| left.checked_sub(1);
        self.allowed.fetch_update(Ordering::AcqRel, Ordering::Acquire, allow).ok()?;
        if self.started == self.fails {
            let reason = "as planned".to_owned();
            return Some(Err(DeviceError::Failed { device: "npu".to_owned(), reason }));
        }
        Some(self.inner.run(observer))
    }

    fn output(&self, port: usize) -> &[f32] {
        self.inner.output(port)
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

fn work(tiny: &Tiny, task: &Task) -> Work {
    let mut batch = Batch::default();
    batch.push(&vec![0; task.rows], 0, Vec::new(), task.selected.clone());
    let nodes = DeviceTask::Nodes {
        nodes: task.nodes.clone(),
        prepare: task.prepare,
        writes: tiny.graph.writes(task.nodes.clone()).into(),
        to: MemoryDomain::default(),
    };
    let payload = Arc::new(Payload { batch, values: tiny.inputs(task) });
    Work { task: nodes, part: task.part.clone(), payload }
}

/// A queue over a back end with the graphs of the tasks prepared.
pub(crate) fn queue(device: NpuDevice, tasks: &[&Task]) -> NpuQueue {
    let mut preparer = BlockingDevice::preparer(&device).expect("a preparer");
    for task in tasks {
        preparer.prepare(&task.keys(), &[], &mut ()).expect("graphs");
    }
    NpuQueue::new(device.info().clone(), device)
}

/// Runs a task on a queue and waits for it.
pub(crate) fn run(
    tiny: &Tiny,
    queue: &mut NpuQueue,
    task: &Task,
    report: &mut Report,
) -> Result<TensorSet, DeviceError> {
    Runs::start(queue).run(queue, work(tiny, task), report)
}

/// Submits a task and lets it begin.
#[cfg(feature = "openvino")]
pub(crate) fn begin(tiny: &Tiny, queue: &mut NpuQueue, task: &Task) {
    queue.start(Arc::new(|| ()));
    queue.submit(RunId(0), work(tiny, task));
    assert!(queue.poll(&mut ()).is_none(), "it ended on the calling thread");
}

fn delayed(tiny: &Tiny, fails: usize) -> (NpuDevice, Arc<AtomicUsize>) {
    let allowed = Arc::new(AtomicUsize::new(0));
    let backend = Delayed { inner: tiny.systolic(), allowed: Arc::clone(&allowed), fails };
    (tiny.npu_over(Box::new(backend), 1 << 30), allowed)
}

#[test]
fn a_queue_computes_the_bits_and_reports_the_steps_of_a_blocking_device() {
    let tiny = Tiny::open("llama");
    for graphs in [&[64][..], &[32, 1], &[32, 32]] {
        let task = Task::new(tiny.gated(), 33, graphs);
        let mut blocking = tiny.npu(1 << 30);
        BlockingDevice::preparer(&blocking)
            .expect("a preparer")
            .prepare(&task.keys(), &[], &mut ())
            .expect("graphs");
        let mut wanted = Report::default();
        let want = tiny.run(&mut blocking, &task, &mut wanted).expect("values");
        let (delayed, allowed) = delayed(&tiny, 0);
        for (device, what) in [(tiny.npu(1 << 30), "on the caller's thread"), (delayed, "delayed")]
        {
            allowed.store(graphs.len(), Ordering::Release);
            let mut queue = queue(device, &[&task]);
            let mut report = Report::default();
            let got = run(&tiny, &mut queue, &task, &mut report).expect(what);
            tiny.assert_same(&task, &got, &want, what);
            assert_eq!(report, wanted, "{what}, {graphs:?}");
        }
    }
}

#[test]
fn a_run_completes_once_after_its_last_graph_however_often_it_is_polled() {
    let tiny = Tiny::open("llama");
    let task = Task::new(tiny.gated(), 33, &[32, 1]);
    let (device, allowed) = delayed(&tiny, 0);
    let mut queue = queue(device, &[&task]);
    queue.start(Arc::new(|| ()));
    assert!(queue.poll(&mut ()).is_none(), "nothing was submitted");
    for run in [RunId(3), RunId(4)] {
        queue.submit(run, work(&tiny, &task));
        for graph in 0..2 {
            for _ in 0..3 {
                assert!(queue.poll(&mut ()).is_none(), "graph {graph} has not ended");
            }
            allowed.store(1, Ordering::Release);
        }
        let completed = queue.poll(&mut ()).expect("the run has ended");
        assert!(completed.run == run && completed.result.is_ok());
        assert!(queue.poll(&mut ()).is_none(), "it has ended once");
    }
}

#[test]
fn a_graph_that_fails_ends_its_run_only() {
    let tiny = Tiny::open("llama");
    let task = Task::new(tiny.gated(), 33, &[32, 1]);
    // The first run fails in its first graph.
    let (device, allowed) = delayed(&tiny, 1);
    let mut queue = queue(device, &[&task]);
    allowed.store(8, Ordering::Release);
    let error = run(&tiny, &mut queue, &task, &mut Report::default()).expect_err("an error");
    assert!(
        matches!(&error, DeviceError::Failed { reason, .. } if reason == "as planned"),
        "{error}"
    );
    // Of the second run the second graph, which starts for the first time.
    let error = run(&tiny, &mut queue, &task, &mut Report::default()).expect_err("an error");
    assert!(matches!(&error, DeviceError::Failed { .. }), "{error}");
    let values = run(&tiny, &mut queue, &task, &mut Report::default()).expect("values");
    assert_eq!(values.len(), tiny.graph.writes(task.nodes.clone()).len());
}

#[test]
fn a_missing_graph_and_a_transfer_are_errors_of_their_run() {
    let tiny = Tiny::open("llama");
    let task = Task::new(tiny.gated(), 33, &[32, 1]);
    let mut queue = queue(delayed(&tiny, 0).0, &[]);
    let error = run(&tiny, &mut queue, &task, &mut Report::default()).expect_err("no graph");
    assert!(matches!(error, DeviceError::NotPrepared { .. }), "{error}");
    let to = MemoryDomain::default();
    let transfer = DeviceTask::Transfer { values: [].into(), to };
    queue.submit(RunId(9), Work { task: transfer, ..work(&tiny, &task) });
    let Some(Completed { run, result: Err(error), .. }) = queue.poll(&mut ()) else {
        panic!("no error")
    };
    assert!(run == RunId(9) && matches!(error, DeviceError::Unsupported { .. }), "{error}");
}
