//! An asynchronous device in place of a GPU or an NPU: an in-order queue of any depth, results in its
//! own memory, completions at arbitrary times, and late errors that fail the rest of the queue.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use lapwing_kernels::device::{
    BlockingDevice, Completed, Device, DeviceBuffer, DeviceError, DeviceInfo, MemoryDomain, Notify,
    Observer, Preparer, RunId, StageRun, Stamps, Task, Tensor, TensorSet, Work,
};
use lapwing_kernels::formats::DType;

/// Values in the memory of a late device.
#[derive(Debug)]
struct Buffer {
    domain: MemoryDomain,
    values: Vec<f32>,
    live: Arc<AtomicUsize>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl DeviceBuffer for Buffer {
    fn domain(&self) -> MemoryDomain {
        self.domain
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn dtype(&self) -> DType {
        DType::F32
    }

    fn read(&self, values: &mut [f32]) -> Result<(), DeviceError> {
        values.copy_from_slice(&self.values);
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The thread that executes the queue.
struct Engine<D> {
    device: D,
    domain: MemoryDomain,
    /// Number of existing buffers.
    live: Arc<AtomicUsize>,
}

impl<D: BlockingDevice> Engine<D> {
    fn in_memory(&self, width: usize, values: &[f32]) -> Tensor {
        self.live.fetch_add(1, Ordering::Relaxed);
        let (domain, live) = (self.domain, Arc::clone(&self.live));
        Tensor::in_device(width, Arc::new(Buffer { domain, values: values.to_vec(), live }))
    }

    fn placed(&self, tensor: &Tensor, to: MemoryDomain) -> Tensor {
        let values = values_of(tensor);
        match to {
            MemoryDomain::Host => Tensor::new(tensor.width, values),
            domain => {
                assert_eq!(domain, self.domain, "a device writes its own memory only");
                self.in_memory(tensor.width, &values)
            }
        }
    }

    fn execute(
        &mut self,
        work: Work,
        observer: &mut dyn Observer,
    ) -> Result<TensorSet, DeviceError> {
        let Work { task, part, payload } = work;
        let mut results = TensorSet::default();
        match task {
            Task::Transfer { values, to } => {
                for id in values.iter() {
                    let value = payload.values.get(*id).expect("a value to transfer");
                    assert_ne!(value.domain(), to, "a transfer that moves nothing");
                    results.put(*id, self.placed(value, to));
                }
            }
            Task::Nodes { nodes, prepare, writes, to } => {
                let mut inputs = TensorSet::default();
                for (id, value) in payload.values.iter() {
                    // Values that the stage does not read may be in any memory; the oracle checks those it reads.
                    if value.domain() == to || to == MemoryDomain::Host {
                        inputs.put(id, Tensor::new(value.width, values_of(value)));
                    }
                }
                let mut outputs = TensorSet::default();
                self.device.run(StageRun {
                    nodes,
                    part: &part,
                    prepare,
                    batch: &payload.batch,
                    inputs: &inputs,
                    writes: &writes,
                    outputs: &mut outputs,
                    observer,
                })?;
                for id in writes.iter() {
                    let value = outputs.get(*id).expect("a requested value");
                    results.put(*id, self.placed(value, to));
                }
            }
        }
        Ok(results)
    }
}

fn values_of(tensor: &Tensor) -> Vec<f32> {
    match tensor.device_buffer() {
        None => tensor.host().expect("host memory").to_vec(),
        Some(buffer) => {
            let mut values = vec![0.0; buffer.len()];
            buffer.read(&mut values).expect("a buffer");
            values
        }
    }
}

/// A late device without a thread: the queue advances by a random number of runs at each poll.
pub struct Late<D> {
    info: DeviceInfo,
    engine: Engine<D>,
    queue: VecDeque<(RunId, Work)>,
    completed: VecDeque<Completed>,
    dice: u64,
}

impl<D: BlockingDevice> Late<D> {
    /// `device` with the memory and the depth that `info` states. `live` counts its buffers.
    pub fn new(info: DeviceInfo, device: D, live: &Arc<AtomicUsize>, seed: u64) -> Late<D> {
        let engine = Engine { device, domain: info.memory, live: Arc::clone(live) };
        let (queue, completed) = (VecDeque::new(), VecDeque::new());
        Late { info, engine, queue, completed, dice: seed | 1 }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.dice >> 33).is_multiple_of(n)
    }
}

impl<D: BlockingDevice> Device for Late<D> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn threads(&self) -> usize {
        0
    }

    fn start(&mut self, _notify: Notify) {}

    fn submit(&mut self, run: RunId, work: Work) {
        assert!(self.queue.len() + self.completed.len() < self.info.depth, "beyond the depth");
        self.queue.push_back((run, work));
    }

    fn poll(&mut self, observer: &mut dyn Observer) -> Option<Completed> {
        while !self.queue.is_empty() && self.one_in(2) {
            let (run, work) = self.queue.pop_front()?;
            let result = self.engine.execute(work, observer);
            let failed = result.as_ref().err().cloned();
            self.completed.push_back(Completed { run, result, stamps: None });
            // A failure also fails the runs queued behind it.
            if let Some(error) = failed {
                let behind = self.queue.drain(..).map(|(run, _)| run);
                self.completed.extend(behind.map(|run| {
                    let result = Err(error.clone());
                    Completed { run, result, stamps: None }
                }));
            }
        }
        match self.one_in(2) {
            true => self.completed.pop_front(),
            false => None,
        }
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        self.engine.device.preparer()
    }
}

/// A late device with its own thread, which notifies the worker some time after each run.
pub struct LateThread {
    info: DeviceInfo,
    preparer: Mutex<Option<Box<dyn Preparer>>>,
    submissions: Option<mpsc::Sender<(RunId, Work)>>,
    completions: mpsc::Receiver<Completed>,
    notify: Arc<Mutex<Option<Notify>>>,
    thread: Option<JoinHandle<()>>,
}

impl LateThread {
    /// As [`Late::new`], in real time.
    #[expect(clippy::disallowed_methods, reason = "a device in tests owns a thread")]
    pub fn new(
        info: DeviceInfo,
        device: impl BlockingDevice + 'static,
        live: &Arc<AtomicUsize>,
    ) -> LateThread {
        let preparer = Mutex::new(device.preparer());
        let mut engine = Engine { device, domain: info.memory, live: Arc::clone(live) };
        let (submissions, submitted) = mpsc::channel::<(RunId, Work)>();
        let (sender, completions) = mpsc::channel();
        let notify: Arc<Mutex<Option<Notify>>> = Arc::default();
        let wake = Arc::clone(&notify);
        let thread = std::thread::spawn(move || {
            while let Ok((run, work)) = submitted.recv() {
                // A different delay for each run.
                let begin = Duration::from_micros(run.0 * 37 % 200);
                std::thread::sleep(begin);
                let result = engine.execute(work, &mut ());
                let stamps = Some(Stamps { begin, end: begin });
                if sender.send(Completed { run, result, stamps }).is_err() {
                    return;
                }
                if let Some(notify) = &*wake.lock().expect("no panic") {
                    notify();
                }
            }
        });
        let (submissions, thread) = (Some(submissions), Some(thread));
        LateThread { info, preparer, submissions, completions, notify, thread }
    }
}

impl Device for LateThread {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn threads(&self) -> usize {
        0
    }

    fn start(&mut self, notify: Notify) {
        *self.notify.lock().expect("no panic") = Some(notify);
    }

    fn submit(&mut self, run: RunId, work: Work) {
        let submissions = self.submissions.as_ref().expect("a queue");
        submissions.send((run, work)).expect("a thread");
    }

    fn poll(&mut self, _observer: &mut dyn Observer) -> Option<Completed> {
        self.completions.try_recv().ok()
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        self.preparer.lock().expect("no panic").take()
    }
}

impl Drop for LateThread {
    fn drop(&mut self) {
        self.submissions = None;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}
