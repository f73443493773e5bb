//! Two ways of seeing the end of a run: the state of its event, and a number that a kernel after it writes to memory that
//! the host reads in place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::discovery::{OpenClInfo, SharedKind};
use crate::error::OpenClError;
use crate::session::{Copier, EventState, Marker, Session, SharedBuffer};
use crate::shared::SharedMemory;

/// Values that the run copies.
const VALUES: usize = 1 << 18;

/// Runs of one kernel on memory that the host uses in place.
#[derive(Debug)]
pub struct FlagTrial {
    session: Arc<Session>,
    copier: Copier,
    marker: Marker,
    from: SharedBuffer,
    to: SharedBuffer,
    /// A line of its own.
    flag: SharedBuffer,
    epoch: u32,
}

impl FlagTrial {
    /// Compiles the kernels. `Ok(Err)` says why a device has no such memory.
    ///
    /// # Errors
    /// If the device cannot be used.
    pub fn new(device: &OpenClInfo) -> Result<Result<FlagTrial, String>, OpenClError> {
        let memory = match SharedMemory::open(device)? {
            Ok(memory) => memory,
            Err(why) => return Ok(Err(why)),
        };
        let session = Arc::clone(&memory.session);
        let kind: SharedKind = memory.kind();
        let buffer = |values| SharedBuffer::allocate(&session, kind, values);
        let (Some(from), Some(to), Some(flag)) = (buffer(VALUES), buffer(VALUES), buffer(1)) else {
            return Ok(Err("the device has no memory".to_owned()));
        };
        flag.word().store(0, Ordering::Release);
        let (copier, marker) = (Copier::new(&session)?, Marker::new(&session)?);
        Ok(Ok(FlagTrial { session, copier, marker, from, to, flag, epoch: 0 }))
    }

    /// Runs the kernel, and reads the state of its event until it has ended.
    ///
    /// # Errors
    /// If the device fails.
    pub fn by_event(&mut self) -> Result<(), OpenClError> {
        self.copier.add(&self.session, &self.from, &self.to)?;
        let end = self.session.marker()?;
        self.session.flush()?;
        while end.state() == EventState::Pending {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Runs the kernel and one that writes a number after it, and reads that number until it is there. Then it reads the
    /// state of the event, which is the truth.
    ///
    /// # Errors
    /// If the device fails.
    pub fn by_flag(&mut self) -> Result<(), OpenClError> {
        self.epoch = self.epoch.wrapping_add(1);
        self.copier.add(&self.session, &self.from, &self.to)?;
        self.marker.add(&self.session, &self.flag, self.epoch)?;
        let end = self.session.marker()?;
        self.session.flush()?;
        while self.flag.word().load(Ordering::Acquire) != self.epoch {
            std::hint::spin_loop();
        }
        while end.state() == EventState::Pending {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Reads the state of an event that has ended `reads` times.
    ///
    /// # Errors
    /// If the device fails.
    pub fn read_state(&mut self, reads: usize) -> Result<(), OpenClError> {
        let end = self.session.marker()?;
        self.session.finish()?;
        (0..reads).for_each(|_| _ = std::hint::black_box(end.state()));
        Ok(())
    }

    /// Reads the number `reads` times.
    pub fn read_flag(&self, reads: usize) {
        (0..reads).for_each(|_| _ = std::hint::black_box(self.flag.word().load(Ordering::Acquire)));
    }
}
