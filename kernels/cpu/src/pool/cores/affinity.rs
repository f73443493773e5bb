//! The affinity of threads, through the operating system.

use super::{CoreSet, CoresError};
use std::marker::PhantomData;

/// A pinned thread; dropping this gives the thread back the affinity that it had before. Stays on
/// its thread.
#[derive(Debug)]
#[must_use = "the thread is pinned until this is dropped"]
pub struct PinnedThread {
    before: CoreSet,
    thread: PhantomData<*const ()>,
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        // It was in force before, so the system can refuse it only if the cores are gone since.
        let _ = set(&self.before);
    }
}

impl CoreSet {
    /// Pins the calling thread until the result is dropped.
    ///
    /// # Errors
    /// [`CoresError::Unsupported`], or [`CoresError::System`].
    pub fn pin_this_thread(&self) -> Result<PinnedThread, CoresError> {
        let before = of_this_thread()?;
        set(self)?;
        Ok(PinnedThread { before, thread: PhantomData })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use super::{CoreSet, CoresError};
    use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

    fn get(thread: Option<Pid>) -> Result<CoreSet, CoresError> {
        let refused = |error: rustix::io::Errno| CoresError::System {
            cores: "of this machine".to_owned(),
            source: error.into(),
        };
        let set = sched_getaffinity(thread).map_err(refused)?;
        CoreSet::new((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)))
    }

    /// That of the main thread: other threads may be pinned themselves.
    pub(in super::super) fn of_process() -> Result<CoreSet, CoresError> {
        let main = i32::try_from(std::process::id()).ok().and_then(Pid::from_raw);
        get(main)
    }

    pub(super) fn of_this_thread() -> Result<CoreSet, CoresError> {
        get(None)
    }

    pub(super) fn set(cores: &CoreSet) -> Result<(), CoresError> {
        let mut set = CpuSet::new();
        cores.cores.iter().for_each(|core| set.set(*core));
        sched_setaffinity(None, &set)
            .map_err(|error| CoresError::System { cores: cores.to_string(), source: error.into() })
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use super::{CoreSet, CoresError};

    pub(in super::super) fn of_process() -> Result<CoreSet, CoresError> {
        Err(CoresError::Unsupported)
    }

    pub(super) fn of_this_thread() -> Result<CoreSet, CoresError> {
        Err(CoresError::Unsupported)
    }

    pub(super) fn set(_cores: &CoreSet) -> Result<(), CoresError> {
        Err(CoresError::Unsupported)
    }
}

pub(super) use system::of_process;
use system::{of_this_thread, set};
