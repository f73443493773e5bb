//! Fetches a named model before an engine opens it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lapwing_actors::drive::blocking::run_apart;

use crate::error::Error;
use crate::models::{FetchError, FetchEvent, ModelCache, ModelName, fetch_until};

/// Stops a fetch when the future that waits for it is dropped.
#[derive(Debug)]
pub(super) struct StopOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Fetches a model into the default cache on a thread and a runtime of their own, so that the
/// caller may be on any thread.
pub(super) fn fetch_apart(name: &str, stop: &Arc<AtomicBool>) -> Result<PathBuf, Error> {
    let name: ModelName = name.parse()?;
    let cache = ModelCache::open(None)?;
    if let Some(path) = cache.path_of(&name.to_string()) {
        return Ok(path);
    }
    let stop = Arc::clone(stop);
    let fetched = run_apart("fetch", move || -> Result<PathBuf, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::thread)?;
        let stopped = || stop.load(Ordering::Relaxed);
        let mut silent = |_: FetchEvent| {};
        let path = runtime.block_on(fetch_until(&cache, &name, &mut silent, stopped));
        path.unwrap_or(Err(FetchError::WorkerDied { detail: "it was stopped".to_owned() }))
            .map_err(Error::from)
    });
    fetched.map_err(Error::thread)?
}
