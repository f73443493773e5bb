//! Binds models to a device.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use super::{OpenClDevice, device_info};
use crate::error::OpenClError;
use crate::model::{Model, OpenClBindError, OpenClDeviceParts};
use crate::session::Session;
use crate::watch::Watch;
use lapwing_model::graph::Graph;
use lapwing_model::kv::KvStore;
use lapwing_model::signals;
use lapwing_model::weights::WeightFile;

impl OpenClDevice {
    /// Binds a model to a device.
    ///
    /// # Errors
    /// [`OpenClBindError`] when the device cannot be used, a program does not build, or `file` is not
    /// the one that the graph was built from.
    pub fn new(
        parts: OpenClDeviceParts,
        file: &WeightFile,
    ) -> Result<OpenClDevice, OpenClBindError> {
        let session = match &parts.shared {
            Some(shared) => shared.session.beside(),
            None => Session::open(&parts.device)?,
        };
        OpenClDevice::in_session(parts, session, file)
    }

    /// Binds another model to the same device, with the same name. Its runs go into the same queue.
    ///
    /// # Errors
    /// As [`new`](OpenClDevice::new).
    pub fn with_model(
        &self,
        graph: Arc<Graph>,
        kv: Arc<KvStore>,
        programs: Option<PathBuf>,
        file: &WeightFile,
    ) -> Result<OpenClDevice, OpenClBindError> {
        let Model { name, domain, session, memory, shared, persistent, .. } = &self.model;
        let parts = OpenClDeviceParts {
            name: name.clone(),
            device: session.info().clone(),
            domain: *domain,
            graph,
            kv,
            slots: memory.slots.clone(),
            shared: shared.clone(),
            persistent: *persistent,
            programs,
        };
        OpenClDevice::in_session(parts, session.beside(), file)
    }

    fn in_session(
        parts: OpenClDeviceParts,
        session: Arc<Session>,
        file: &WeightFile,
    ) -> Result<OpenClDevice, OpenClBindError> {
        let info = device_info(&parts.name, parts.domain);
        let watch = Watch::start().map_err(|error| OpenClError::Unusable {
            device: parts.device.name.clone(),
            reason: format!("the system refuses a thread ({error})"),
        })?;
        // Its kernels are launched for the first time.
        let model = signals::keep(|| Model::new(parts, session, file))?;
        Ok(OpenClDevice {
            info,
            model,
            watch,
            notify: None,
            runs: VecDeque::new(),
            lost: None,
            has_completed: false,
            #[cfg(test)]
            fault: None,
        })
    }
}
