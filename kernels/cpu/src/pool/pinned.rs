//! A pool whose threads are pinned to cores.

use super::cores::{CoreSet, CoresError, PinnedThread};
use super::thread_pool::{Pool, THREADS_MAX};

impl Pool {
    /// As [`Pool::new`], with threads pinned to `cores`: each thread to a core of its own if there
    /// are as many threads as cores, otherwise each to all of them. The caller is pinned only while
    /// it holds the guard of [`Pool::pin_caller`].
    ///
    /// # Errors
    /// [`CoresError::Absent`] if this process may not use all of the cores, and other
    /// [`CoresError`]s if threads cannot be pinned.
    pub fn on_cores(threads: usize, cores: &CoreSet) -> Result<Pool, CoresError> {
        cores.check()?;
        Ok(Pool::start(threads.clamp(1, THREADS_MAX), Some(cores.clone())))
    }

    /// Pins the calling thread as the pool's first thread, until the guard is dropped; without
    /// effect if the pool is not pinned.
    ///
    /// # Errors
    /// [`CoresError::System`].
    pub fn pin_caller(&self) -> Result<Option<PinnedThread>, CoresError> {
        let own = self.pinned.as_ref().map(|(cores, threads)| cores.of_thread(0, *threads));
        own.map(|own| own.pin_this_thread()).transpose()
    }

    /// The cores that the threads are pinned to, if they are.
    pub fn cores(&self) -> Option<&CoreSet> {
        self.pinned.as_ref().map(|(cores, _)| cores)
    }
}
