//! Packed weights while they are read.

use super::Weights;
use crate::context::Cpu;
use crate::pack::cache;
use crate::packed::mapped::Mapped;
use crate::packed::{LostWeights, PackedFault};
use std::sync::RwLockReadGuard;

/// Work between two looks at the file, in bytes of weights times rows that they are multiplied with: it takes seconds at most, also where the
/// weights must come from a slow disk first, which is a small part of the time for which the system holds back a program that is
/// about to change the file. A look takes less than 1 µs.
const WORK: usize = 64 << 20;

/// The right to read a model's packed weights. If their file is mapped, another program that is about to change it waits meanwhile,
/// for 45 s at most, so hold them for the time of a few ops.
#[derive(Debug)]
#[must_use]
pub struct Held<'a> {
    ctx: &'a Cpu,
    /// The mapped file, if there is one.
    mapped: Option<&'a Mapped>,
    guard: Option<RwLockReadGuard<'a, ()>>,
    /// Work since the last look at the file.
    work: usize,
}

impl Weights {
    /// The mapped file that has the packed matrices, or those that another model's weights share, if one has.
    pub(crate) fn mapped(&self) -> Option<&Mapped> {
        self.mapped.as_ref()?.memory().mapped()
    }

    /// The right to read the packed matrices: code that reads them must have it. If another program waits to change their file, they are first copied
    /// into memory of this process, on `ctx`. A thread may not have it twice.
    ///
    /// # Errors
    /// [`LostWeights`] when the file has been changed, or there is no memory for a copy.
    pub fn hold<'a>(&'a self, ctx: &'a Cpu) -> Result<Held<'a>, LostWeights> {
        let mut held = Held { ctx, mapped: self.mapped(), guard: None, work: 0 };
        held.renew()?;
        Ok(held)
    }
}

impl Held<'_> {
    /// Looks at the file again.
    ///
    /// # Errors
    /// As [`Weights::hold`]; the weights are then no longer held.
    pub(crate) fn renew(&mut self) -> Result<(), LostWeights> {
        self.work = 0;
        let Some(mapped) = self.mapped else { return Ok(()) };
        self.guard = None;
        let guard = mapped.hold(|mapped| match mapped.beyond() {
            Some(beyond) => Err(PackedFault::Beyond(beyond)),
            None => cache::read(self.ctx, mapped.file(), mapped.data()),
        })?;
        self.guard = Some(guard);
        Ok(())
    }

    /// Looks at the file again, if there was enough work since: bytes of weights times rows.
    ///
    /// # Errors
    /// As [`renew`](Held::renew).
    pub(crate) fn after(&mut self, work: usize) -> Result<(), LostWeights> {
        self.work = self.work.saturating_add(work);
        if self.work < WORK { Ok(()) } else { self.renew() }
    }
}
