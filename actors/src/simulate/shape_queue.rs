//! A queue before a device that computes no values.

use std::collections::VecDeque;

use lapwing_kernels::device::{
    BlockingDevice, Completed, Device, DeviceInfo, Notify, Observer, Preparer, RunId, StageRun,
    TensorSet, Work,
};

/// A device that computes no values, as an in-order queue of the depth and in the memory that its description states. Every
/// run completes when it is polled. A transfer has no values to copy; it takes the time of the device's model.
#[derive(Debug)]
pub struct ShapeQueue<D> {
    info: DeviceInfo,
    device: D,
    queue: VecDeque<(RunId, Work)>,
}

impl<D: BlockingDevice> ShapeQueue<D> {
    /// `device`, described by `info`.
    pub fn new(info: DeviceInfo, device: D) -> ShapeQueue<D> {
        ShapeQueue { info, device, queue: VecDeque::new() }
    }
}

impl<D: BlockingDevice> Device for ShapeQueue<D> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn threads(&self) -> usize {
        self.device.threads()
    }

    /// Without effect: virtual time decides when it is polled.
    fn start(&mut self, _notify: Notify) {}

    fn submit(&mut self, run: RunId, work: Work) {
        debug_assert!(self.queue.len() < self.info.depth, "more runs than the depth allows");
        self.queue.push_back((run, work));
    }

    fn poll(&mut self, observer: &mut dyn Observer) -> Option<Completed> {
        let (run, work) = self.queue.pop_front()?;
        let mut outputs = TensorSet::default();
        let stage = StageRun::of(&work, &mut outputs, observer);
        let result = stage.map_or(Ok(()), |stage| self.device.run(stage));
        Some(Completed { run, result: result.map(|()| outputs), stamps: None })
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        self.device.preparer()
    }
}
