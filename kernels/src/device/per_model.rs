//! One device that holds several models.

use super::blocking::{BlockingDevice, StageRun};
use super::error::DeviceError;
use super::graphs::{GraphKey, Prepared, Preparer};
use super::observer::Observer;

/// A blocking device for several models: one device per model, by model number, all of which compute on
/// the same processor.
#[derive(Debug)]
pub struct PerModel<D> {
    devices: Vec<D>,
}

impl<D: BlockingDevice> PerModel<D> {
    /// A device per model. `first` is that of model 0.
    pub fn new(first: D, others: impl IntoIterator<Item = D>) -> PerModel<D> {
        PerModel { devices: std::iter::once(first).chain(others).collect() }
    }
}

impl<D: BlockingDevice> BlockingDevice for PerModel<D> {
    fn name(&self) -> &str {
        self.devices[0].name()
    }

    fn threads(&self) -> usize {
        self.devices[0].threads()
    }

    fn run(&mut self, run: StageRun<'_>) -> Result<(), DeviceError> {
        let model = run.batch.model.0;
        if model >= self.devices.len() {
            let what = format!("model {model}");
            return Err(DeviceError::Unsupported { device: self.name().to_owned(), what });
        }
        self.devices[model].run(run)
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        let preparers: Vec<_> = self.devices.iter().map(BlockingDevice::preparer).collect();
        let device = self.name().to_owned();
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
            let Prepared { made, evicted, bytes } =
                preparer.prepare(&wanted, &of_model(keep), observer)?;
            all.made.extend(made);
            all.evicted.extend(evicted);
            all.bytes += bytes;
        }
        Ok(all)
    }

    fn keeps_graphs(&self) -> bool {
        self.preparers.iter().flatten().any(|preparer| preparer.keeps_graphs())
    }

    fn is_kept(&self, key: &GraphKey) -> bool {
        let preparer = self.preparers.get(key.model.0).and_then(Option::as_ref);
        preparer.is_some_and(|preparer| preparer.is_kept(key))
    }
}
