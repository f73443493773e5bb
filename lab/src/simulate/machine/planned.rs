//! What strategies predict with, where other numbers drive the devices.

use std::fmt;
use std::sync::Arc;

use lapwing_engine::profile::Fitted;

use super::Machine;

/// What strategies predict with.
#[derive(Clone)]
pub(in crate::simulate) enum Planned {
    /// The numbers of a machine.
    Machine(Arc<Machine>),
    /// The measured times of a profile, fitted for the scenario's model.
    Profile(Arc<Fitted>),
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Planned::Machine(machine) => f.debug_tuple("Machine").field(machine).finish(),
            Planned::Profile(_) => f.debug_tuple("Profile").finish_non_exhaustive(),
        }
    }
}
