//! The text of the prompt: arguments, a file, and what comes through stdin.

use std::path::PathBuf;
use std::time::Duration;

use super::asked::Asked;
use crate::cli::failure::Failure;
use crate::cli::input::{Piped, Source, without_last_line_feed};
use crate::cli::session::Session;

/// Time in which stdin must begin, beside a prompt.
const PATIENCE: Duration = Duration::from_secs(3);

/// The prompt, and the text of stdin after it.
pub(super) async fn text(
    asked: Asked,
    file: Option<PathBuf>,
    session: &Session,
) -> Result<String, Failure> {
    let from_file = match file {
        Some(file) if asked.prompt.is_some() || asked.stdin => {
            return Err(Failure::usage(format!(
                "the prompt is an argument and also that of --file {}: give one of them",
                file.display()
            )));
        }
        Some(file) => Some(Source::file(file)),
        None => None,
    };
    if let Some(Source::Stdin) = from_file {
        return Ok(cut(Source::Stdin.read().await?));
    }
    let given = match from_file {
        Some(source) => Some(cut(source.read().await?)),
        None => asked.prompt,
    };
    let piped = match (&given, asked.stdin) {
        (_, true) => Some(cut(Source::Stdin.read().await?)),
        (Some(_), false) => match Piped::read(PATIENCE).await? {
            Piped::Text(text) => Some(cut(text)),
            Piped::Nothing => None,
            Piped::Silent => {
                session.note(&format!(
                    "note: nothing came through stdin within {} s, so the prompt is used alone; `-` at the end \
                     waits for it, < /dev/null leaves it out",
                    PATIENCE.as_secs()
                ));
                None
            }
        },
        // Nothing else can be the prompt.
        (None, false) => match Piped::read(Duration::MAX).await? {
            Piped::Text(text) => Some(cut(text)),
            Piped::Nothing | Piped::Silent => None,
        },
    };
    match (given, piped) {
        (Some(given), Some(piped)) => Ok(format!("{given}\n\n{piped}")),
        (Some(text), None) | (None, Some(text)) => Ok(text),
        (None, None) => {
            Err(Failure::usage("no prompt: give it as an argument, as -f FILE, or through stdin"))
        }
    }
}

fn cut(text: String) -> String {
    without_last_line_feed(&text).to_owned()
}
