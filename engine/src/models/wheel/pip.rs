//! Finds and runs pip.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Output, Stdio};

use tokio::process::Command;

use crate::models::error::FetchError;

/// The ways of calling pip, in the order in which they are tried.
const CANDIDATES: [&[&str]; 4] =
    [&["python3", "-m", "pip"], &["pip3"], &["pip"], &["python", "-m", "pip"]];

/// Runs a program that ends with this process, even if this process is killed: a shell of a process
/// group of its own runs it, and a second one waits until the pipe on stdin closes, which the system
/// does at this process's end, and then kills the group. The program itself does not inherit the
/// pipe.
#[cfg(unix)]
const GUARD: &str = r#"
exec 3<&0
(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 &
"$@" </dev/null 3<&-
status=$?
kill $! 2>/dev/null
exit $status
"#;

/// Maximum bytes of pip's stderr in an error.
const TAIL_BYTES: usize = 2000;

/// A way of calling pip.
#[derive(Debug, Clone)]
pub struct Pip {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Pip {
    /// A given program, with the arguments that make it act as pip.
    pub fn new(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
        }
    }

    /// Sets an environment variable for pip only.
    pub fn with_env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((key.into(), value.into()));
        self
    }

    /// The first of `python3 -m pip`, `pip3`, `pip` and `python -m pip` that works.
    ///
    /// # Errors
    /// [`FetchError::PipMissing`] when none does.
    pub async fn find() -> Result<Self, FetchError> {
        Self::first_working(CANDIDATES.map(|words| Self::new(words[0], &words[1..]))).await
    }

    pub(super) async fn first_working(
        candidates: impl IntoIterator<Item = Self>,
    ) -> Result<Self, FetchError> {
        let mut tried = Vec::new();
        for pip in candidates {
            match pip.command().arg("--version").output().await {
                Ok(output) if output.status.success() => return Ok(pip),
                Ok(output) => tried.push(format!("{}: {}", pip.shown(), last_line(&output.stderr))),
                Err(error) => tried.push(format!("{}: {error}", pip.shown())),
            }
        }
        Err(FetchError::PipMissing { tried })
    }

    /// Downloads exactly this wheel into `folder`; temporary files are in `scratch`. Nothing of the
    /// package is run or installed. Dropping the future kills pip; on Unix, so does the end of this
    /// process, whatever its cause.
    pub(super) async fn download(
        &self,
        requirement: &str,
        folder: &Path,
        scratch: &Path,
    ) -> Result<(), FetchError> {
        let mut command = self.guarded();
        command
            .args(["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input"])
            .args([
                "--disable-pip-version-check",
                "--ignore-requires-python",
                "--progress-bar=off",
                "--quiet",
            ])
            .arg("--dest")
            .arg(folder)
            .arg(requirement)
            .envs(["TMPDIR", "TEMP", "TMP"].map(|key| (key, scratch)));
        let output = output(command).await.map_err(|error| FetchError::PipMissing {
            tried: vec![format!("{}: {error}", self.shown())],
        })?;
        if output.status.success() {
            return Ok(());
        }
        Err(FetchError::PipFailed {
            package: requirement.to_owned(),
            status: output.status.to_string(),
            stderr_tail: tail(&output.stderr),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        self.set_up(&mut command);
        command
    }

    /// As [`command`](Pip::command), but ended with this process; stdin is a pipe that must stay open.
    fn guarded(&self) -> Command {
        #[cfg(unix)]
        {
            let mut command = Command::new("sh");
            // The argument after the script is the shell's `$0`.
            command.args(["-c", GUARD, "sh"]).arg(&self.program).args(&self.arguments);
            command.process_group(0).stdin(Stdio::piped());
            self.set_up(&mut command);
            command
        }
        #[cfg(not(unix))]
        self.command()
    }

    fn set_up(&self, command: &mut Command) {
        command
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
    }

    pub(super) fn shown(&self) -> String {
        std::iter::once(&self.program)
            .chain(&self.arguments)
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Runs a command to its end, with its stdin open until then.
async fn output(mut command: Command) -> std::io::Result<Output> {
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    let output = child.wait_with_output().await;
    drop(stdin);
    output
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().lines().last().unwrap_or("failed without a message").to_owned()
}

fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]).into_owned()
}
