//! KV pages and states on a device: those of the host in place, or copies of them in the device's memory.

mod states;

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::commands::Commands;
use super::error::OpenClError;
use super::memory::shared_by;
use super::session::{Buffer, Lane, Session, SharedBuffer};
use lapwing_model::device::{Batch, BatchSpan, DeviceError};
use lapwing_model::kv::{KvAccess, KvCopyId, KvMirror, KvStore, PageId, StateId};

/// Pages of all layers and places of all states, one buffer for each layer and each state that the device has worked with.
#[derive(Debug)]
struct Pages {
    device: String,
    session: Arc<Session>,
    layers: Vec<OnceLock<Buffer>>,
    /// Bytes of a page in each layer.
    page_bytes: Vec<usize>,
    states: Vec<OnceLock<Buffer>>,
    /// Bytes of each state.
    state_bytes: Vec<usize>,
}

impl KvMirror for Pages {
    fn read_page(&self, layer: usize, page: PageId, to: &mut [u8]) -> Result<(), DeviceError> {
        let Some(buffer) = self.layers[layer].get() else { return Ok(()) };
        let at = page as usize * self.page_bytes[layer];
        let read = self.session.read(Lane::Transfer, buffer, at, to);
        read.map_err(|error| error.of_run(&self.device))
    }

    fn read_state(&self, state: usize, place: StateId, to: &mut [u8]) -> Result<(), DeviceError> {
        let Some(buffer) = self.states[state].get() else { return Ok(()) };
        let at = place as usize * self.state_bytes[state];
        let read = self.session.read(Lane::Transfer, buffer, at, to);
        read.map_err(|error| error.of_run(&self.device))
    }
}

/// The KV cache of a device.
#[derive(Debug)]
pub(super) struct DeviceKv {
    store: Arc<KvStore>,
    pages: Arc<Pages>,
    /// The host's pages of each layer, where the device uses them in place.
    shared: Vec<Option<Arc<SharedBuffer>>>,
    /// As `shared`, of each state.
    shared_states: Vec<Option<Arc<SharedBuffer>>>,
    copy: Option<KvCopyId>,
    /// Serialises the creation of buffers.
    creating: Mutex<()>,
}

impl DeviceKv {
    /// Attaches the memory of `session` to `store`. Nothing is allocated yet.
    pub(super) fn new(device: &str, session: &Arc<Session>, store: Arc<KvStore>) -> DeviceKv {
        let (layout, layers) = (store.layout(), 0..store.layout().layers.len());
        let pages = Arc::new(Pages {
            device: device.to_owned(),
            session: Arc::clone(session),
            layers: layers.clone().map(|_| OnceLock::new()).collect(),
            page_bytes: layers.clone().map(|layer| layout.layer(layer).page_bytes()).collect(),
            states: layout.states.iter().map(|_| OnceLock::new()).collect(),
            state_bytes: layout.states.iter().map(|state| state.bytes()).collect(),
        });
        let in_place = |layer| store.memory_of(layer, |memory| shared_by(memory, session));
        let shared: Vec<_> = layers.map(in_place).collect();
        let in_place = |state| store.memory_of_state(state, |memory| shared_by(memory, session));
        let shared_states: Vec<_> = (0..layout.states.len()).map(in_place).collect();
        let is_mirror = shared.iter().chain(&shared_states).any(Option::is_none);
        let copy =
            if is_mirror { store.attach(Arc::clone(&pages) as Arc<dyn KvMirror>) } else { None };
        DeviceKv { store, pages, shared, shared_states, copy, creating: Mutex::default() }
    }

    /// The cache that it copies.
    pub(super) fn store(&self) -> &KvStore {
        &self.store
    }

    /// The buffer of a layer.
    ///
    /// # Errors
    /// [`OpenClError::Memory`] when it does not fit into the device.
    pub(super) fn layer(&self, layer: usize) -> Result<&Buffer, OpenClError> {
        if let Some(shared) = &self.shared[layer] {
            return Ok(shared.buffer());
        }
        let bytes = self.pages.page_bytes[layer] * self.store.pages();
        self.created(&self.pages.layers[layer], bytes, "keys and values of a layer")
    }

    /// The buffer of a cell, which is allocated when it is first needed.
    fn created<'a>(
        &self,
        cell: &'a OnceLock<Buffer>,
        bytes: usize,
        what: &str,
    ) -> Result<&'a Buffer, OpenClError> {
        if let Some(buffer) = cell.get() {
            return Ok(buffer);
        }
        let _one = self.creating.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = self.pages.session.buffer(bytes, what)?;
        Ok(cell.get_or_init(|| buffer))
    }

    /// Adds the pages to the queue that the device lacks for rows of a layer, which it writes if `writes`. Where it uses the
    /// host's pages in place, the host gets those that only other devices hold.
    ///
    /// # Errors
    /// [`DeviceError`] of this device, or of another one that holds a page.
    pub(super) fn bring(
        &self,
        layer: usize,
        writes: bool,
        span: &BatchSpan,
        commands: &mut Commands,
    ) -> Result<(), DeviceError> {
        let Pages { device, page_bytes, .. } = &*self.pages;
        let buffer = self.layer(layer).map_err(|error| error.of_run(device))?;
        let end = span.end();
        let written = match writes {
            true => span.written(self.store.layout().page_rows),
            false => end..end,
        };
        let access = KvAccess { pages: &span.pages, written };
        if self.shared[layer].is_some() {
            commands.use_pages(writes);
            return self.store.bring_to_shared(layer, &access);
        }
        let Some(copy) = self.copy else { return Ok(()) };
        self.store.bring_to_device(layer, copy, &access, |page, bytes| {
            let at = page as usize * page_bytes[layer];
            commands.upload(buffer, at, bytes.into()).map_err(|error| error.of_run(device))
        })
    }

    /// Takes the pages and places of states that a run of a lost device writes in place out of use: it may still write to them.
    pub(super) fn withhold(&self, batch: &Batch) {
        let page_rows = self.store.layout().page_rows;
        let has_states = !self.store.layout().states.is_empty();
        for span in &batch.spans {
            if has_states {
                let places: Vec<StateId> = span.states.written().collect();
                self.store.state_pool().withhold(&places);
            }
            let rows = span.written(page_rows);
            let pages = rows.start / page_rows..rows.end.div_ceil(page_rows);
            self.store.pool().withhold(&span.pages[pages]);
        }
    }

    /// Adds the writing of a batch's keys and values in a layer to the queue: of rows that may be written at once by
    /// `write`, each time after the copy of the page that it needs.
    pub(super) fn write(
        &self,
        layer: usize,
        batch: &Batch,
        mut write: impl FnMut(Range<usize>) -> Result<(), OpenClError>,
    ) -> Result<(), OpenClError> {
        for (copy, rows) in kv_writes(batch) {
            copy.map_or(Ok(()), |(from, to)| self.copy_page(layer, from, to))?;
            write(rows)?;
        }
        Ok(())
    }

    /// Adds a copy of all rows of a page in a layer to the queue.
    fn copy_page(&self, layer: usize, from: PageId, to: PageId) -> Result<(), OpenClError> {
        let Pages { session, page_bytes, .. } = &*self.pages;
        let bytes = page_bytes[layer];
        let at = |page: PageId| page as usize * bytes;
        session.copy_within(self.layer(layer)?, at(from)..at(from) + bytes, at(to))
    }
}

/// Consecutive rows whose keys and values may be written at once, each with the page to copy before.
fn kv_writes(batch: &Batch) -> impl Iterator<Item = (Option<(PageId, PageId)>, Range<usize>)> {
    let copy = |span: &BatchSpan| span.fork.as_ref().and_then(|fork| fork.copy);
    let begins = move |span: &&BatchSpan| span.rows.start == 0 || copy(span).is_some();
    let ends = batch.spans.iter().filter(begins).skip(1).map(|span| span.rows.start);
    let parts = batch.spans.iter().filter(begins).zip(ends.chain([batch.rows()]));
    parts.map(move |(span, end)| (copy(span), span.rows.start..end))
}
