//! Input texts of a command: an argument, a file, or stdin.

use std::io::{BufRead, BufReader, IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::oneshot;

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
        text(&name, bytes)
    }
}

fn text(name: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::failed(format!("{name} is not UTF-8 text: invalid byte at {at}"))
    })
}

/// What comes through stdin beside a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piped {
    /// This text.
    Text(String),
    /// Nothing: it is a terminal, or empty.
    Nothing,
    /// It is open, but nothing came while it was waited for.
    Silent,
}

impl Piped {
    /// Reads stdin, unless it is a terminal, if it begins or ends within `patience`. A program that starts
    /// this one may leave its own end open and never write to it.
    pub(crate) async fn read(patience: Duration) -> Result<Piped, Failure> {
        match stdin().is_terminal() {
            true => Ok(Piped::Nothing),
            false => Piped::of(BufReader::new(stdin()), patience).await,
        }
    }

    async fn of(
        mut input: impl BufRead + Send + 'static,
        patience: Duration,
    ) -> Result<Piped, Failure> {
        let (begun, begins) = oneshot::channel();
        let reading = tokio::task::spawn_blocking(move || {
            let first = input.fill_buf().map(|first| first.is_empty());
            // The other side has lost its patience, or waits for the rest.
            let _ = begun.send(());
            let mut bytes = Vec::new();
            match first? {
                true => Ok(bytes),
                false => input.read_to_end(&mut bytes).map(|_| bytes),
            }
        });
        if tokio::time::timeout(patience, begins).await.is_err() {
            return Ok(Piped::Silent);
        }
        let bytes = reading.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let bytes =
            bytes.map_err(|error| Failure::failed(format!("cannot read stdin: {error}")))?;
        let text = text("stdin", bytes)?;
        Ok(match text.trim().is_empty() {
            true => Piped::Nothing,
            false => Piped::Text(text),
        })
    }
}

/// A prompt from a file, without the line feed at its end.
pub(crate) fn without_last_line_feed(text: &str) -> &str {
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Long enough for any machine.
    const LONG: Duration = Duration::from_secs(600);

    async fn piped(bytes: &[u8]) -> Result<Piped, Failure> {
        Piped::of(std::io::Cursor::new(bytes.to_vec()), LONG).await
    }

    #[tokio::test]
    async fn text_of_a_pipe_is_taken_whole_and_an_empty_one_is_nothing() {
        assert_eq!(piped(b"").await.expect("read"), Piped::Nothing);
        assert_eq!(piped(b" \n").await.expect("read"), Piped::Nothing);
        assert!(piped(b"caf\xe9").await.is_err());
        let long = "text ".repeat(100_000);
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let sent = long.clone();
        let writing = tokio::task::spawn_blocking(move || writer.write_all(sent.as_bytes()));
        assert_eq!(Piped::of(BufReader::new(reader), LONG).await.expect("read"), Piped::Text(long));
        writing.await.expect("joined").expect("written");
    }

    #[tokio::test]
    async fn an_open_pipe_that_stays_empty_is_given_up() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let read = Piped::of(BufReader::new(reader), Duration::from_millis(1)).await;
        assert_eq!(read.expect("read"), Piped::Silent);
        // Ends the read, which the runtime waits for.
        drop(writer);
    }
}
