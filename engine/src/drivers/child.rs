//! The process that lists drivers.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use super::{DriverFault, DriverKind};

/// Longest part of a driver's last line that is shown, in characters.
const SAID_MAX: usize = 200;

/// Runs `program list-drivers` with changed variables, for at most so many seconds. What drivers write on stdout is
/// dropped: the answer is in a file.
pub(super) fn list(
    program: &Path,
    seconds: u32,
    kind: &DriverKind,
    variables: Vec<(&str, Option<OsString>)>,
) -> Result<serde_json::Value, DriverFault> {
    let failed = |error: io::Error| not_started(kind, &error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let (answer, said) = (folder.path().join("answer"), folder.path().join("stderr"));
    let mut command = Command::new(program);
    command.arg("list-drivers").arg(kind.name()).arg(seconds.to_string()).arg(&answer);
    if let DriverKind::OpenVinoDevice(name) = kind {
        command.arg(name);
    }
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let stderr = std::fs::File::create(&said).map_err(failed)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let status = command.status().map_err(failed)?;
    let text = std::fs::read(&answer).unwrap_or_default();
    match serde_json::from_slice(&text) {
        Ok(answer) if status.success() => Ok(answer),
        _ => {
            let said = std::fs::read(&said).unwrap_or_default();
            Err(fault(kind, what(status, seconds), last_line(&said)))
        }
    }
}

/// No process can be started.
pub(super) fn not_started(kind: &DriverKind, error: &io::Error) -> DriverFault {
    fault(kind, format!("was not loaded, since no process can be started ({error}),"), None)
}

fn fault(kind: &DriverKind, what: String, said: Option<String>) -> DriverFault {
    DriverFault { kind: kind.name(), driver: kind.library(), what, said, is_of_file: false }
}

/// How a process ended, in words.
#[cfg_attr(not(unix), expect(unused_variables, reason = "there is no limit"))]
fn what(status: ExitStatus, seconds: u32) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        // As in "signal: 6 (SIGABRT) (core dumped)".
        let text = status.to_string();
        let name = text.split(['(', ')']).nth(1).unwrap_or_default();
        return match name {
            "SIGALRM" => format!("gave no answer within {seconds} s"),
            "" => format!("ended its process with signal {signal}"),
            name => format!("ended its process with {name}"),
        };
    }
    match status.code() {
        Some(code) if code != 0 => format!("ended its process with exit code {code}"),
        _ => "ended its process".to_owned(),
    }
}

/// The last line of a text that says something.
fn last_line(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().filter(|letter| !letter.is_control()).take(SAID_MAX).collect())
}
