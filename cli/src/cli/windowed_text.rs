//! Arguments of commands that read a text in windows.

use std::path::PathBuf;

use super::at_least_one;
use super::failure::Failure;
use super::input::Source;

/// A text, and the size of its windows.
#[derive(Debug, clap::Args)]
pub(crate) struct WindowedTextArgs {
    /// File of the text, in UTF-8; `-` is stdin
    #[arg(value_name = "TEXTFILE", required_unless_present = "file")]
    text: Option<PathBuf>,

    /// The same as an option
    #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,

    /// Tokens of a window
    #[arg(short, long, value_name = "TOKENS", default_value_t = 512, value_parser = at_least_one)]
    pub(crate) ctx: usize,
}

impl WindowedTextArgs {
    /// Reads the text.
    pub(crate) async fn read(self) -> Result<String, Failure> {
        Source::choose("text", None, self.text.or(self.file))?.read().await
    }
}
