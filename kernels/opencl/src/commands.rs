//! The commands of one run, with the host memory that they read and write.
#![expect(unsafe_code, reason = "host memory is read and written until the run has ended")]

use std::ops::Range;
use std::sync::Arc;

use super::error::OpenClError;
use super::session::{Buffer, Event, EventState, Lane, Session};
use lapwing_model::device::{Notify, Payload, Slot, Stamps};
use lapwing_model::graph::ValueId;

/// Host memory that commands of a run use. It stays in place until they have ended.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<Box<[u8]>>,
    payload: Option<Arc<Payload>>,
    reads: Vec<Read>,
    /// Slots that the commands use in place.
    slots: Vec<Slot>,
    /// Whether they use memory of the host in place.
    in_place: bool,
    /// Whether they write pages of keys and values or states in place.
    writes_pages: bool,
    /// Not 0 if a barrier of a persistent kernel timed out; `None` if none was launched.
    timed_out: Option<Box<[u8; 4]>>,
}

/// A value in host memory.
#[derive(Debug)]
pub(super) struct HostValue {
    pub(super) id: ValueId,
    /// Values of a row.
    pub(super) width: usize,
    pub(super) slot: Slot,
}

#[derive(Debug)]
enum Read {
    Value(HostValue),
    Bytes(Box<[u8]>),
    /// The first bytes of a slot.
    Slot(Slot, usize),
}

/// Results of a run in host memory.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) values: Vec<HostValue>,
    /// Other bytes, in the order of their commands.
    pub(super) bytes: Vec<Box<[u8]>>,
}

/// A run whose commands are being added to the queue.
#[derive(Debug)]
pub(super) struct Commands {
    session: Arc<Session>,
    /// Marks the end of the commands before the run, where the device has a clock.
    begin: Option<Event>,
    held: Held,
    ended: bool,
}

/// A run whose commands are in the queue. Dropping it waits for them.
#[derive(Debug)]
pub(super) struct Pending {
    session: Arc<Session>,
    begin: Option<Event>,
    end: Option<Arc<Event>>,
    held: Held,
    passed: bool,
}

impl Commands {
    /// Begins a run.
    pub(super) fn begin(session: &Arc<Session>) -> Commands {
        let session = Arc::clone(session);
        let has_clock = session.info().timer_ns > 0;
        let begin = if has_clock { session.marker().ok() } else { None };
        Commands { session, begin, held: Held::default(), ended: false }
    }

    /// Copies `data` to the device.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(super) fn upload(
        &mut self,
        to: &Buffer,
        at: usize,
        data: Box<[u8]>,
    ) -> Result<(), OpenClError> {
        self.held.bytes.push(data);
        let data = &self.held.bytes[self.held.bytes.len() - 1];
        // SAFETY: `held` keeps the box until the queue has passed the command.
        unsafe { self.session.write_later(Lane::Compute, to, at, data) }
    }

    /// Copies elements of a value of the payload, which is in host memory, to the start of `to`.
    ///
    /// # Panics
    /// If the value is not in host memory, or too short.
    pub(super) fn upload_value(
        &mut self,
        to: &Buffer,
        payload: &Arc<Payload>,
        id: ValueId,
        elements: Range<usize>,
    ) -> Result<(), OpenClError> {
        let payload = self.held.payload.get_or_insert_with(|| Arc::clone(payload));
        let values = payload.values.get(id).and_then(|tensor| tensor.host());
        let values = values.expect("a value in host memory");
        let data = bytemuck::cast_slice(&values[elements]);
        // SAFETY: `held` shares the payload, so that nobody can change it, until the queue has
        // passed the command.
        unsafe { self.session.write_later(Lane::Compute, to, 0, data) }
    }

    /// Keeps a slot that the commands read in place.
    pub(super) fn hold(&mut self, slot: Slot) {
        self.held.in_place = true;
        self.held.slots.push(slot);
    }

    /// Keeps the payload, of which the commands read a value in place.
    pub(super) fn hold_payload(&mut self, payload: &Arc<Payload>) {
        self.held.in_place = true;
        self.held.payload.get_or_insert_with(|| Arc::clone(payload));
    }

    /// Notes that the commands read pages of keys and values or states in place, and write some if `writes`.
    pub(super) fn use_pages(&mut self, writes: bool) {
        self.held.in_place = true;
        self.held.writes_pages |= writes;
    }

    /// Makes a value whose slot the commands write in place a result of the run.
    pub(super) fn result(&mut self, value: HostValue) {
        self.held.in_place = true;
        self.held.reads.push(Read::Value(value));
    }

    /// Makes the first `len` bytes of a slot that the commands write in place a result of the run.
    pub(super) fn result_bytes(&mut self, slot: Slot, len: usize) {
        self.held.in_place = true;
        self.held.reads.push(Read::Slot(slot, len));
    }

    /// Copies the start of `from` into the slot of a value, which becomes a result of the run.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(super) fn download(&mut self, from: &Buffer, value: HostValue) -> Result<(), OpenClError> {
        self.held.reads.push(Read::Value(value));
        let Some(Read::Value(value)) = self.held.reads.last_mut() else { return Ok(()) };
        let bytes = bytemuck::cast_slice_mut(&mut value.slot[..]);
        // SAFETY: `held` keeps the slot, unread, until the queue has passed the command.
        unsafe { self.session.read_later(Lane::Compute, from, 0, bytes) }
    }

    /// Copies the first `len` bytes of `from` to the host.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(super) fn download_bytes(&mut self, from: &Buffer, len: usize) -> Result<(), OpenClError> {
        self.held.reads.push(Read::Bytes(vec![0; len].into()));
        let Some(Read::Bytes(bytes)) = self.held.reads.last_mut() else { return Ok(()) };
        // SAFETY: as above.
        unsafe { self.session.read_later(Lane::Compute, from, 0, bytes) }
    }

    /// Copies to the host whether a barrier of a persistent kernel timed out.
    fn read_timed_out(&mut self) -> Result<(), OpenClError> {
        let timed_out = self.held.timed_out.insert(Box::default());
        // SAFETY: `held` keeps the box, unread, until the queue has passed the command.
        let is_used = unsafe { self.session.read_timed_out(timed_out) };
        if !matches!(is_used, Ok(true)) {
            self.held.timed_out = None;
        }
        is_used.map(|_| ())
    }

    /// Ends the run: the device begins with its commands, and `notify` is called when they have
    /// ended, on any thread, possibly at once; with some drivers, never.
    pub(super) fn end(mut self, notify: Option<Notify>) -> (Pending, Result<(), OpenClError>) {
        let timed_out = self.read_timed_out();
        let marker = self.session.marker();
        let (end, mut result) = match marker {
            Ok(end) => (Some(Arc::new(end)), timed_out),
            Err(error) => (None, Err(error)),
        };
        if let (Some(end), Some(notify)) = (&end, notify) {
            // Without a callback the device is polled.
            _ = end.on_end(notify);
        }
        result = result.and(self.session.flush());
        let pending = Pending {
            session: Arc::clone(&self.session),
            begin: self.begin.take(),
            end,
            held: std::mem::take(&mut self.held),
            passed: false,
        };
        self.ended = true;
        (pending, result)
    }
}

impl Drop for Commands {
    /// Waits for commands that were added and not ended.
    fn drop(&mut self) {
        if !self.ended && self.session.finish().is_err() {
            // The device may still write to it.
            std::mem::forget(std::mem::take(&mut self.held));
        }
    }
}

impl Pending {
    /// The end of the commands, if an event marks it.
    pub(super) fn end(&self) -> Option<Arc<Event>> {
        self.end.clone()
    }

    /// Whether the commands write pages of keys and values or states in place.
    pub(super) fn writes_pages(&self) -> bool {
        self.held.writes_pages
    }

    /// The state of the commands.
    pub(super) fn state(&mut self) -> EventState {
        let state = match &self.end {
            Some(end) => match end.state() {
                EventState::Complete if self.held.in_place && !self.passed => match end.wait() {
                    Ok(()) => EventState::Complete,
                    Err(code) => EventState::Failed(code),
                },
                state => state,
            },
            // Nothing marks the end, so all commands are waited for.
            None => match self.session.finish() {
                Ok(()) => EventState::Complete,
                Err(_) => EventState::Failed(-1),
            },
        };
        self.passed = state == EventState::Complete;
        state
    }

    /// Whether a barrier of a persistent kernel timed out, once the state is complete. The results of the
    /// run are invalid then.
    pub(super) fn is_timed_out(&self) -> bool {
        self.passed && self.held.timed_out.as_ref().is_some_and(|timed_out| **timed_out != [0; 4])
    }

    /// When the device began and ended, by its clock, since the run was submitted.
    pub(super) fn stamps(&self) -> Option<Stamps> {
        let (begin, end) = (self.begin.as_ref()?, self.end.as_ref()?);
        let submitted = begin.queued_ns()?;
        let since = |ns: u64| std::time::Duration::from_nanos(ns.saturating_sub(submitted));
        let (begin, end) = (since(begin.end_ns()?), since(end.end_ns()?));
        (end >= begin).then_some(Stamps { begin, end })
    }

    /// The results, once the state is complete.
    pub(super) fn results(mut self) -> Results {
        let mut results = Results::default();
        if self.passed {
            for read in std::mem::take(&mut self.held.reads) {
                match read {
                    Read::Value(value) => results.values.push(value),
                    Read::Bytes(bytes) => results.bytes.push(bytes),
                    Read::Slot(slot, len) => {
                        let bytes = &bytemuck::cast_slice::<f32, u8>(&slot)[..len];
                        results.bytes.push(bytes.into());
                    }
                }
            }
        }
        results
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.passed && self.session.finish().is_err() {
            // The device may still write to it.
            std::mem::forget(std::mem::take(&mut self.held));
        }
    }
}
