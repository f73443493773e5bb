//! Engines as processes of their own: what they print, how long they take, and the most memory
//! that they have resident.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lapwing_traces::{Clock, OsClock};
use tokio::process::Command;

use crate::cli::failure::Failure;

/// How often a process is asked for its memory, at most and at least: the answer only grows, and
/// asking costs little.
const POLL_MIN: Duration = Duration::from_millis(1);
const POLL_MAX: Duration = Duration::from_millis(20);
/// Between the two, it is asked again after this part of the time it has run for, so that little
/// of a short life is missed.
const POLL_PART: u32 = 20;
/// How much of what a process has printed an error repeats, in bytes.
const TAIL_BYTES: usize = 600;

/// A process that has ended well.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) stdout: Vec<u8>,
    /// From before its start until after its end.
    pub(super) wall: Duration,
    /// Most memory that it had resident; none where the system does not tell.
    pub(super) peak_bytes: Option<u64>,
}

/// Why a process gave nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChildError {
    /// It did not start.
    #[error("'{program}' cannot be started: {source}")]
    Start {
        /// Program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It ended with an error.
    #[error("'{program}' failed ({status}){}", said(stderr))]
    Status {
        /// Program.
        program: String,
        /// How it ended.
        status: String,
        /// The end of what it printed there.
        stderr: String,
    },
}

impl From<ChildError> for Failure {
    fn from(error: ChildError) -> Failure {
        Failure::failed(error.to_string())
    }
}

fn said(stderr: &str) -> String {
    match stderr.trim() {
        "" => " without a word".to_owned(),
        text => format!(": {text}"),
    }
}

/// Runs a program to its end. Dropping the future kills it.
pub(super) async fn run(program: &Path, args: &[String]) -> Result<Ended, ChildError> {
    let shown = program.display().to_string();
    let start = |source| ChildError::Start { program: shown.clone(), source };
    let clock = OsClock::start();
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(start)?;
    let pid = child.id();
    let ended = child.wait_with_output();
    tokio::pin!(ended);
    let mut peak_bytes = None;
    let output = loop {
        let pause = Duration::from_nanos(clock.now().0) / POLL_PART;
        tokio::select! {
            biased;
            output = &mut ended => break output.map_err(start)?,
            () = tokio::time::sleep(pause.clamp(POLL_MIN, POLL_MAX)) => {
                peak_bytes = pid.and_then(resident_peak).or(peak_bytes);
            }
        }
    };
    let wall = Duration::from_nanos(clock.now().0);
    if !output.status.success() {
        let (status, stderr) = (output.status.to_string(), tail(&output.stderr));
        return Err(ChildError::Status { program: shown, status, stderr });
    }
    Ok(Ended { stdout: output.stdout, wall, peak_bytes })
}

/// The last lines, within bounds.
fn tail(bytes: &[u8]) -> String {
    let tail = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
    String::from_utf8_lossy(tail).trim().to_owned()
}

/// Most memory that a running process has had resident.
pub(super) fn resident_peak(pid: u32) -> Option<u64> {
    high_water(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

/// `VmHWM` of Linux's `/proc/PID/status`, in bytes.
fn high_water(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_another_unit() {
        let status = "Name:\tx\nVmPeak:\t  999 kB\nVmHWM:\t   1536 kB\nVmRSS:\t  10 kB\n";
        assert_eq!(high_water(status), Some(1536 * 1024));
        for unknown in ["", "VmHWM:\t12 MB\n", "VmHWM:\t-1 kB\n"] {
            assert_eq!(high_water(unknown), None, "{unknown:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_memory_of_a_process_is_unknown_on_linux() {
        let args = ["-c".to_owned(), "sleep 0.2; echo done".to_owned()];
        let ended = run(Path::new("sh"), &args).await.expect("a shell");
        assert_eq!(ended.stdout, b"done\n");
        assert!(ended.peak_bytes > Some(64 * 1024), "{ended:?}");
        assert!(ended.wall >= Duration::from_millis(200), "{ended:?}");
    }
}
