//! States on a device.

use super::{DeviceKv, Pages};
use crate::commands::Commands;
use crate::error::OpenClError;
use crate::session::Buffer;
use lapwing_model::device::{DeviceError, SpanStates};

impl DeviceKv {
    /// The buffer of a state at all places.
    ///
    /// # Errors
    /// [`OpenClError::Memory`] when it does not fit into the device.
    pub(crate) fn state(&self, state: usize) -> Result<&Buffer, OpenClError> {
        if let Some(shared) = &self.shared_states[state] {
            return Ok(shared.buffer());
        }
        let bytes = self.pages.state_bytes[state] * self.store.state_pool().capacity();
        // A convolution over one row has a state without values.
        let bytes = bytes.max(size_of::<f32>());
        self.created(&self.pages.states[state], bytes, "states of a layer")
    }

    /// Adds the state before a span to the queue that the device lacks. Where it uses the host's states in place, the host gets the
    /// one that only another device holds.
    ///
    /// # Errors
    /// [`DeviceError`] of this device, or of another one that holds the state.
    pub(crate) fn bring_states(
        &self,
        state: usize,
        states: &SpanStates,
        commands: &mut Commands,
    ) -> Result<(), DeviceError> {
        let Pages { device, state_bytes, .. } = &*self.pages;
        let buffer = self.state(state).map_err(|error| error.of_run(device))?;
        if self.shared_states[state].is_some() {
            commands.use_pages(true);
            return self.store.bring_states_to_shared(state, states);
        }
        let Some(copy) = self.copy else { return Ok(()) };
        self.store.bring_states_to_device(state, copy, states, |place, bytes| {
            let at = place as usize * state_bytes[state];
            commands.upload(buffer, at, bytes.into()).map_err(|error| error.of_run(device))
        })
    }
}
