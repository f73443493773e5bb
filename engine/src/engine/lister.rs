//! Drivers that are tried in a process of their own before an engine opens them.

use super::EngineBuilder;
use crate::config::{Chosen, Settings};
use crate::devices::InPlace;
use crate::drivers::Lister;
use crate::error::Error;

impl EngineBuilder {
    /// Has each driver that the devices need listed by another process first, so that one that aborts or hangs is an error
    /// that names it ([`DriverFault`](crate::drivers::DriverFault)). By default drivers are opened at once, and one that aborts
    /// ends the calling process. The `lapwing` program does this; it takes as long as loading the drivers once more.
    pub fn lister(mut self, lister: Lister) -> EngineBuilder {
        self.settings.lister = Some(lister);
        self
    }
}

impl Settings {
    /// Opens the memory that the devices use in place, and with it their drivers, which the lister tries before.
    ///
    /// # Errors
    /// When a driver fails, or a device is not there.
    pub(super) fn open_in_place(&self, chosen: &Chosen) -> Result<InPlace, Error> {
        let devices = || chosen.devices.iter().map(|(spec, _)| spec);
        self.lister.as_ref().map_or(Ok(()), |lister| lister.check(devices()))?;
        InPlace::open(devices())
    }
}
