//! A cost model of the caller's own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, GraphKey};
use lapwing_kernels::graph::Graph;
use lapwing_plan::DeviceId;
use lapwing_plan::cost::{CostModel, Modelled};
use lapwing_plan::time::{Crossing, Job};

/// What a cost model of the caller's own is made for: the models and devices of an engine.
#[derive(Clone)]
#[non_exhaustive]
pub struct CostSubject {
    /// The ops of each model, by the number that a job's batch has: the model, then the draft model if there is one.
    pub graphs: Vec<Arc<Graph>>,
    /// The devices, by [`DeviceId`].
    pub devices: Vec<DeviceInfo>,
    /// What the engine would plan with: the rates that devices are throttled to, and those of short measurements.
    pub models: Modelled,
}

impl fmt::Debug for CostSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CostSubject").field("devices", &self.devices).finish_non_exhaustive()
    }
}

type Make = dyn Fn(&CostSubject) -> Arc<dyn CostModel> + Send + Sync;

/// Makes a cost model of the caller's own.
#[derive(Clone)]
pub(crate) struct OwnCost(Arc<Make>);

impl fmt::Debug for OwnCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnCost")
    }
}

impl OwnCost {
    /// By that function.
    pub(super) fn new<C: CostModel + 'static>(
        make: impl Fn(&CostSubject) -> C + Send + Sync + 'static,
    ) -> OwnCost {
        OwnCost(Arc::new(move |subject: &CostSubject| -> Arc<dyn CostModel> {
            Arc::new(make(subject))
        }))
    }

    /// The cost model for these models and devices. Its source says that it is the caller's own.
    pub(super) fn make(&self, subject: &CostSubject) -> Arc<dyn CostModel> {
        Arc::new(Named(self.0(subject)))
    }
}

/// A cost model whose source says that it is the caller's own.
struct Named(Arc<dyn CostModel>);

impl CostModel for Named {
    fn source(&self) -> String {
        format!("the program's own cost model ({})", self.0.source())
    }

    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration {
        self.0.job_time(device, job)
    }

    fn sync_time(&self, crossing: Crossing) -> Duration {
        self.0.sync_time(crossing)
    }

    fn copy_time(&self, bytes: u64) -> Duration {
        self.0.copy_time(bytes)
    }

    fn transfer_time(&self, device: DeviceId, bytes: u64) -> Duration {
        self.0.transfer_time(device, bytes)
    }

    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration {
        self.0.prepare_time(device, key)
    }
}
