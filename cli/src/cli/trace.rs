//! `--trace`: records a run and writes it to a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lapwing_engine::traces::{OsClock, Recorder, RecorderConfig, Recording, Scope, whole_file};
use lapwing_traces::text::counted;

use super::failure::Failure;
use super::session::Session;

/// File of the recording.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TraceArg {
    /// Record a timeline into FILE; `lapwing timeline FILE` shows it
    #[arg(long, value_name = "FILE.lwt")]
    pub(crate) trace: Option<PathBuf>,
}

impl TraceArg {
    /// Checks, before running, that the file can be written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(path) = &self.trace else { return Ok(()) };
        whole_file::check(path).map_err(|error| {
            Failure::file("write the recording to", path, &error)
                .hint("give a file in an existing, writable folder")
        })
    }

    /// Saves the recording, if requested.
    pub(crate) fn save(
        &self,
        recording: impl FnOnce() -> Recording,
        session: &Session,
    ) -> Result<(), Failure> {
        match &self.trace {
            Some(path) => save(path, &recording(), session),
            None => Ok(()),
        }
    }
}

/// A recorder that records everything.
pub(crate) fn recorder() -> Recorder {
    let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
    recorder.set_scope(Scope::All);
    recorder
}

fn save(path: &Path, recording: &Recording, session: &Session) -> Result<(), Failure> {
    recording.save(path).map_err(|error| Failure::failed(error.to_string()))?;
    let dropped = match recording.dropped {
        0 => String::new(),
        dropped => format!(" ({dropped} more were dropped)"),
    };
    session.note(&format!(
        "recorded {}{dropped}; show them with: lapwing timeline {}",
        counted(recording.events.len(), "event"),
        path.display()
    ));
    Ok(())
}
