//! Input texts of a command: an argument, a file, or stdin.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::failure::Failure;

/// Source of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The argument itself.
    Argument(String),
    /// All of stdin.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl Source {
    /// An argument or a file name; `-` means stdin in both. `what` names the text in the error if
    /// there is neither.
    pub(crate) fn choose(
        what: &str,
        argument: Option<String>,
        file: Option<PathBuf>,
    ) -> Result<Source, Failure> {
        match (argument, file) {
            (_, Some(file)) => Ok(Source::file(file)),
            (Some(text), None) if text == "-" => Ok(Source::Stdin),
            (Some(text), None) => Ok(Source::Argument(text)),
            (None, None) => Err(Failure::usage(format!(
                "no {what}: give it as an argument, as -f FILE, or as - to read stdin"
            ))),
        }
    }

    /// A file name; `-` means stdin.
    pub(crate) fn file(path: PathBuf) -> Source {
        if path == Path::new("-") { Source::Stdin } else { Source::File(path) }
    }

    /// Reads the whole text.
    pub(crate) async fn read(self) -> Result<String, Failure> {
        let (name, bytes) = match self {
            Source::Argument(text) => return Ok(text),
            Source::File(path) => {
                let bytes =
                    std::fs::read(&path).map_err(|error| Failure::file("read", &path, &error))?;
                (path.display().to_string(), bytes)
            }
            Source::Stdin => {
                let read = tokio::task::spawn_blocking(|| {
                    let mut bytes = Vec::new();
                    std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
                });
                let bytes = read
                    .await
                    .unwrap_or_else(|error| Err(std::io::Error::other(error)))
                    .map_err(|error| Failure::failed(format!("cannot read stdin: {error}")))?;
                ("stdin".to_owned(), bytes)
            }
        };
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::failed(format!("{name} is not UTF-8 text: invalid byte at {at}"))
        })
    }
}

/// A prompt from a file, without the line feed at its end.
pub(crate) fn without_last_line_feed(text: &str) -> &str {
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text)
}
