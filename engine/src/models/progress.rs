//! Progress events of a fetch.

use std::path::PathBuf;

/// An event of a fetch, in the order in which the steps happen.
///
/// `Started` and `Unpacking` each open a phase; the `Advanced` events that follow count bytes of
/// that phase and never add up to more than its `bytes_total`. A cached model emits `Done` only.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchEvent {
    /// Another process or task is fetching this model; this fetch waits for it.
    Waiting {
        /// The model's cache name.
        name: String,
    },
    /// The model's licence or terms, to be shown to the user.
    Notice {
        /// Text to show, one or more lines.
        text: String,
    },
    /// The transfer begins.
    Started {
        /// The model's cache name.
        name: String,
        /// Total bytes to transfer, if known; a resumed transfer includes what it already has.
        bytes_total: Option<u64>,
    },
    /// The open phase has progressed.
    Advanced {
        /// Bytes since the last event of this phase.
        bytes: u64,
    },
    /// The transfer is complete and the model is being unpacked.
    Unpacking {
        /// Bytes of the unpacked model, if known.
        bytes_total: Option<u64>,
    },
    /// The parts of the model have been joined into one file.
    Joined,
    /// The whole file is being read again to compute its SHA-256.
    Verifying,
    /// The source states no SHA-256; at most the size could be compared.
    Unverified {
        /// Why there is no hash to compare with.
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
    /// A gauge at zero; its reports never exceed `total`.
    pub(super) fn new(total: Option<u64>) -> Self {
        Self { reported: 0, total }
    }

    /// Reports `bytes` as the total done; a smaller number than before is ignored.
    pub(super) fn reach(&mut self, bytes: u64, progress: &mut dyn Progress) {
        let bytes = self.total.map_or(bytes, |total| bytes.min(total));
        if bytes > self.reported {
            let gained = bytes - self.reported;
            self.reported = bytes;
            progress.on_event(FetchEvent::Advanced { bytes: gained });
        }
    }
}
