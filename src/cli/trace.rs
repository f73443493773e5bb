//! `--trace`: a run is recorded and written to a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lapwing::traces::{OsClock, Recorder, RecorderConfig, Recording, Scope, whole_file};

use super::failure::Failure;
use super::session::Session;

/// Where a recording goes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TraceArg {
    /// Record where the time goes, into FILE; `lapwing timeline FILE` shows it
    #[arg(long, value_name = "FILE.lwt")]
    pub(crate) trace: Option<PathBuf>,
}

impl TraceArg {
    /// Checks that the file can be written, so that no run is recorded in vain.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(path) = &self.trace else { return Ok(()) };
        whole_file::check(path).map_err(|error| {
            Failure::file("write the recording to", path, &error)
                .hint("name a file in a folder that is there and may be written to")
        })
    }

    /// Writes the recording, if that is wanted.
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

/// A recorder that records everything from now on.
pub(crate) fn recorder() -> Recorder {
    let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
    recorder.set_scope(Scope::All);
    recorder
}

fn save(path: &Path, recording: &Recording, session: &Session) -> Result<(), Failure> {
    recording.save(path).map_err(|error| Failure::failed(error.to_string()))?;
    let dropped = match recording.dropped {
        0 => String::new(),
        dropped => format!(" ({dropped} more found no room)"),
    };
    session.note(&format!(
        "recorded {} events{dropped}; see them with: lapwing timeline {}",
        recording.events.len(),
        path.display()
    ));
    Ok(())
}
