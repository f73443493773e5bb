//! One device that holds several models.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::error::DeviceError;
use super::graphs::{GraphKey, Prepared, Preparer};
use super::info::DeviceInfo;
use super::observer::Observer;
use super::work::{Completed, Device, Notify, RunId, Work};

/// A device for several models: one device per model, by model number, all of which compute on the same
/// processor. Runs complete in order of submission, whichever model they are for.
#[derive(Debug)]
pub struct PerModel<D> {
    devices: Vec<D>,
    /// Runs that have not completed, in order of submission.
    submitted: VecDeque<Submitted>,
}

#[derive(Debug)]
enum Submitted {
    /// To the device of this model.
    To(usize),
    /// There is no such model.
    Refused(RunId, DeviceError),
}

impl<D: Device> PerModel<D> {
    /// A device per model. `first` is that of model 0, whose description is that of the whole.
    pub fn new(first: D, others: impl IntoIterator<Item = D>) -> PerModel<D> {
        let devices = std::iter::once(first).chain(others).collect();
        PerModel { devices, submitted: VecDeque::new() }
    }
}

impl<D: Device> Device for PerModel<D> {
    fn info(&self) -> &DeviceInfo {
        self.devices[0].info()
    }

    fn threads(&self) -> usize {
        self.devices[0].threads()
    }

    fn start(&mut self, notify: Notify) {
        self.devices.iter_mut().for_each(|device| device.start(Notify::clone(&notify)));
    }

    fn submit(&mut self, run: RunId, work: Work) {
        let model = work.model().0;
        let submitted = match self.devices.get_mut(model) {
            Some(device) => {
                device.submit(run, work);
                Submitted::To(model)
            }
            None => {
                let (device, what) = (self.info().name.clone(), format!("model {model}"));
                Submitted::Refused(run, DeviceError::Unsupported { device, what })
            }
        };
        self.submitted.push_back(submitted);
    }

    fn poll(&mut self, observer: &mut dyn Observer) -> Option<Completed> {
        let completed = match self.submitted.front()? {
            Submitted::To(model) => self.devices[*model].poll(observer)?,
            Submitted::Refused(run, error) => {
                Completed { run: *run, result: Err(error.clone()), stamps: None }
            }
        };
        self.submitted.pop_front();
        Some(completed)
    }

    fn completion_probe(&self) -> Option<Notify> {
        let probes: Vec<_> = self.devices.iter().filter_map(Device::completion_probe).collect();
        let is_any = !probes.is_empty();
        is_any.then(|| Arc::new(move || probes.iter().for_each(|probe| probe())) as Notify)
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        let preparers: Vec<_> = self.devices.iter().map(Device::preparer).collect();
        let device = self.info().name.clone();
        preparers
            .iter()
            .any(Option::is_some)
            .then(|| Box::new(PreparerPerModel { device, preparers }) as Box<dyn Preparer>)
    }
}

/// Prepares each graph with its model's preparer.
struct PreparerPerModel {
    device: String,
    preparers: Vec<Option<Box<dyn Preparer>>>,
}

impl Preparer for PreparerPerModel {
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        let mut all = Prepared::default();
        for (model, preparer) in self.preparers.iter_mut().enumerate() {
            let of_model = |keys: &[GraphKey]| -> Vec<GraphKey> {
                keys.iter().filter(|key| key.model.0 == model).cloned().collect()
            };
            let wanted = of_model(keys);
            if wanted.is_empty() {
                continue;
            }
            let Some(preparer) = preparer else {
                let what = format!("prepared graphs of model {model}");
                return Err(DeviceError::Unsupported { device: self.device.clone(), what });
            };
            let Prepared { made, read, evicted, bytes } =
                preparer.prepare(&wanted, &of_model(keep), observer)?;
            all.made.extend(made);
            all.read += read;
            all.evicted.extend(evicted);
            all.bytes += bytes;
        }
        Ok(all)
    }

    fn keeps_graphs(&self) -> bool {
        self.preparers.iter().flatten().any(|preparer| preparer.keeps_graphs())
    }

    fn predict(&self, key: &GraphKey) -> Option<Duration> {
        self.preparers.get(key.model.0)?.as_ref()?.predict(key)
    }

    fn is_kept(&self, key: &GraphKey) -> bool {
        let preparer = self.preparers.get(key.model.0).and_then(Option::as_ref);
        preparer.is_some_and(|preparer| preparer.is_kept(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{
        Batch, DeviceKind, MemoryDomain, ModelId, Payload, Prepare, Task, TensorSet,
    };
    use crate::part::Part;

    /// Completes a run when it is polled for the `polls`th time.
    struct Slow {
        info: DeviceInfo,
        polls: usize,
        runs: VecDeque<(RunId, usize)>,
    }

    impl Device for Slow {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn threads(&self) -> usize {
            0
        }

        fn start(&mut self, _notify: Notify) {}

        fn submit(&mut self, run: RunId, _work: Work) {
            self.runs.push_back((run, self.polls));
        }

        fn poll(&mut self, _observer: &mut dyn Observer) -> Option<Completed> {
            let (run, left) = self.runs.front_mut()?;
            *left -= 1;
            let (run, left) = (*run, *left);
            (left == 0).then(|| {
                self.runs.pop_front();
                Completed { run, result: Ok(TensorSet::default()), stamps: None }
            })
        }
    }

    fn work(model: usize) -> Work {
        let batch = Batch { model: ModelId(model), ..Batch::default() };
        let payload = Arc::new(Payload { batch, values: TensorSet::default() });
        let (prepare, writes) = (Prepare::Ahead, Arc::from([]));
        let to = MemoryDomain::Host;
        let task = Task::Nodes { nodes: 0..1, prepare, writes, to };
        Work { task, part: Part::WHOLE, payload }
    }

    /// Model 1 is fast, and the runs of a model that there is not fail at once.
    #[test]
    fn runs_of_all_models_complete_in_order_of_submission() {
        let slow = |polls| Slow {
            info: DeviceInfo::new("gpu", DeviceKind::Gpu),
            polls,
            runs: VecDeque::new(),
        };
        let mut device = PerModel::new(slow(3), [slow(1)]);
        let models = [0, 1, 2, 1, 0, 2];
        for (run, model) in models.into_iter().enumerate() {
            device.submit(RunId(run as u64), work(model));
        }
        let mut found = Vec::new();
        for _ in 0..20 {
            let completed = device.poll(&mut ());
            found.extend(completed.map(|completed| (completed.run.0, completed.result.is_ok())));
        }
        let wanted = models.into_iter().enumerate().map(|(run, model)| (run as u64, model < 2));
        assert_eq!(found, wanted.collect::<Vec<_>>());
    }
}
