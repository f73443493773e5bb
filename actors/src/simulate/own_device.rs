//! Devices of the caller's own beside the modelled ones.

use std::fmt;
use std::sync::Arc;

use lapwing_kernels::device::DeviceInfo;
use lapwing_plan::soc::Workload;
use lapwing_plan::time::TimeModel;

use super::error::SocRunError;

/// Makes the time model of a device for a workload, or says why there is none.
type Law = dyn Fn(&Workload) -> Result<Arc<dyn TimeModel>, String> + Send + Sync;

/// A device of the caller's own in a simulated run: what it is, and the law of its times. The law drives the device, and
/// strategies plan with it.
///
/// A clone is the same device. Two devices are equal only if one is a clone of the other.
#[derive(Clone)]
pub struct OwnDevice {
    info: DeviceInfo,
    law: Arc<Law>,
    watts: Option<f64>,
}

impl OwnDevice {
    /// A device with this description (name, kind, ops, graph sizes, memory, depth), whose times are those of the
    /// model that `law` makes for a workload. Its power is unknown.
    pub fn new<T: TimeModel + 'static>(
        info: DeviceInfo,
        law: impl Fn(&Workload) -> T + Send + Sync + 'static,
    ) -> OwnDevice {
        let law = move |workload: &Workload| -> Result<Arc<dyn TimeModel>, String> {
            Ok(Arc::new(law(workload)))
        };
        OwnDevice { info, law: Arc::new(law), watts: None }
    }

    /// As [`new`](OwnDevice::new), with a law that does not hold for every workload. A run of another one fails with the
    /// law's error.
    pub fn with_law<E: fmt::Display>(
        info: DeviceInfo,
        law: impl Fn(&Workload) -> Result<Arc<dyn TimeModel>, E> + Send + Sync + 'static,
    ) -> OwnDevice {
        let law = move |workload: &Workload| law(workload).map_err(|error| error.to_string());
        OwnDevice { info, law: Arc::new(law), watts: None }
    }

    /// With its power while it computes, in W. The energy of a run with a device of unknown power is unknown.
    #[must_use]
    pub fn with_power(mut self, watts: f64) -> OwnDevice {
        self.watts = Some(watts);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Its description.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Its power while it computes, in W, if it is known.
    pub fn power(&self) -> Option<f64> {
        self.watts
    }

    /// Its time model for a workload.
    ///
    /// # Errors
    /// [`SocRunError::Law`] if its law does not hold for the workload.
    pub fn times(&self, workload: &Workload) -> Result<Arc<dyn TimeModel>, SocRunError> {
        let device = || self.name().to_owned();
        (self.law)(workload).map_err(|reason| SocRunError::Law { device: device(), reason })
    }

    /// Text that tells it from other devices; clones have the same. It is unique while one of them is alive.
    pub fn identity(&self) -> String {
        let DeviceInfo { name, kind, .. } = &self.info;
        let watts = self.watts.map_or_else(String::new, |watts| format!(" {:x}", watts.to_bits()));
        format!("{name}:{}@{:p}{watts}", kind.name(), Arc::as_ptr(&self.law))
    }
}

impl PartialEq for OwnDevice {
    fn eq(&self, other: &OwnDevice) -> bool {
        self.identity() == other.identity()
    }
}

impl fmt::Debug for OwnDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnDevice")
            .field("info", &self.info)
            .field("watts", &self.watts)
            .finish_non_exhaustive()
    }
}
