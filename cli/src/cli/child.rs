//! Engines in processes of their own: their output, their time, and their maximum resident memory.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lapwing_traces::{Clock, OsClock};
use tokio::process::Command;

use super::failure::Failure;

/// Limits of the interval at which the memory of a process is read. The maximum only grows, and
/// reading it is cheap.
const POLL_MIN: Duration = Duration::from_millis(1);
const POLL_MAX: Duration = Duration::from_millis(20);
/// Within the limits, the interval is this fraction of the time that the process has run for, so
/// that little of a short run is missed.
const POLL_PART: u32 = 20;
/// Maximum bytes of a process's output that an error repeats.
const TAIL_BYTES: usize = 600;

/// A process that ended successfully.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) stdout: Vec<u8>,
    /// Time from before its start until after its end.
    pub(crate) wall: Duration,
    /// Maximum resident memory; `None` if the system does not report it.
    pub(crate) peak_bytes: Option<u64>,
}

/// Why a process has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    /// It could not be started.
    #[error("cannot start '{program}': {source}")]
    Start {
        /// Program.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// It failed.
    #[error("'{program}' failed ({status}){}", stderr_text(stderr))]
    Status {
        /// Program.
        program: String,
        /// Its exit status.
        status: String,
        /// The end of its stderr.
        stderr: String,
    },
}

impl From<ChildError> for Failure {
    fn from(error: ChildError) -> Failure {
        Failure::failed(error.to_string())
    }
}

fn stderr_text(stderr: &str) -> String {
    match stderr.trim() {
        "" => " without a message".to_owned(),
        text => format!(": {text}"),
    }
}

/// Runs a program to its end. Dropping the future kills it.
pub(crate) async fn run(program: &Path, args: &[String]) -> Result<Ended, ChildError> {
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

/// The last lines, up to a limit.
fn tail(bytes: &[u8]) -> String {
    let tail = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
    String::from_utf8_lossy(tail).trim().to_owned()
}

/// Maximum resident memory of a running process.
pub(crate) fn resident_peak(pid: u32) -> Option<u64> {
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
    fn memory_is_converted_to_bytes() {
        let status = "Name:\tx\nVmPeak:\t  999 kB\nVmHWM:\t   1536 kB\nVmRSS:\t  10 kB\n";
        assert_eq!(high_water(status), Some(1536 * 1024));
        for unknown in ["", "VmHWM:\t12 MB\n", "VmHWM:\t-1 kB\n"] {
            assert_eq!(high_water(unknown), None, "{unknown:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_memory_of_a_process_is_known_on_linux() {
        let args = ["-c".to_owned(), "sleep 0.2; echo done".to_owned()];
        let ended = run(Path::new("sh"), &args).await.expect("a shell");
        assert_eq!(ended.stdout, b"done\n");
        assert!(ended.peak_bytes > Some(64 * 1024), "{ended:?}");
        assert!(ended.wall >= Duration::from_millis(200), "{ended:?}");
    }
}
