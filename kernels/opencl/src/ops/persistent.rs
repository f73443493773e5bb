//! The persistent kernel of a model: one launch computes many ops of a run of few rows, where each would
//! take a launch of its own.

mod check;
mod recorder;
mod text;

use super::built::Built;
use super::heads::HeadDims;
use super::kernels::Kernels;
use super::programs::ROW_ITEMS;
use super::shapes::FewRows;
use super::target::is_persistent_on_any;
use crate::error::OpenClError;
use crate::pack::PANEL;
use crate::session::Persistent;
pub(super) use recorder::Recorder;
use text::{MEMORY, program};
pub(super) use text::{NORM, Parameter};

/// Local memory that its groups need, in bytes.
const LOCAL_MEMORY: u64 = 36 << 10;

impl Kernels {
    /// Whether the device's features suit a persistent kernel, and how many groups it may have.
    fn persistent_groups(&mut self) -> Option<usize> {
        let slices = self.slices()?;
        let info = self.session.info();
        let items = PANEL * slices;
        let groups = match info.may_be_persistent() {
            true => info.units as usize,
            false if is_persistent_on_any() => 1,
            false => return None,
        };
        let slots = items / ROW_ITEMS;
        let of_head = |dims: &HeadDims| slots * (dims.key + 2 * ROW_ITEMS) <= MEMORY;
        let is_enough = info.local_memory >= LOCAL_MEMORY
            && info.group_max >= items
            && slots > 0
            && items.is_multiple_of(ROW_ITEMS)
            && self.spec.head_dims.iter().all(of_head)
            && !self.spec.dtypes.is_empty();
        let dtypes = self.spec.dtypes.clone();
        let in_groups = |dtype| self.shapes(dtype).few == FewRows::Group;
        (is_enough && dtypes.into_iter().all(in_groups)).then_some(groups)
    }

    /// Builds the persistent kernel of the model, for a GPU. Every kernel must have been launched once.
    ///
    /// # Errors
    /// If the driver does not compile it, or there is no memory.
    pub(crate) fn build_persistent(&mut self) -> Result<bool, OpenClError> {
        let (Some(groups), Some(slices)) = (self.persistent_groups(), self.slices()) else {
            return Ok(false);
        };
        let (text, numbers) = program(&self.spec, &self.parameters, slices);
        let program = Built::new(&self.session, &self.cache, text)?;
        let kernel = |name| program.take(name);
        let kernels = [kernel("persistent")?, kernel("address_of")?];
        let size = [groups, PANEL * slices];
        let persistent = Persistent::new(&self.session, kernels, size)?;
        self.session.set_persistent(Some(persistent));
        self.recorder = Some(Recorder::new(program, numbers, groups));
        Ok(true)
    }

    /// Makes launches for few rows ops of the persistent kernel, where there is one, or ends that.
    pub(crate) fn record(&mut self, is_on: bool) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(is_on);
        }
    }

    /// Whether there is a persistent kernel.
    pub(crate) fn has_persistent(&self) -> bool {
        self.recorder.is_some()
    }

    /// Whether launches become ops of the persistent kernel.
    pub(crate) fn is_recording(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::is_on)
    }

    /// Removes the persistent kernel, and waits for its launches.
    pub(crate) fn drop_persistent(&mut self) -> Result<(), OpenClError> {
        // Launches name the recorder's buffers by address.
        let recorder = self.recorder.take();
        self.session.set_persistent(None);
        let finished = self.session.finish();
        drop(recorder);
        finished
    }
}
