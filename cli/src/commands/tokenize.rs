//! `lapwing tokenize`: converts text to ids.

use std::path::{Path, PathBuf};

use lapwing_engine::tokenizer::{Special, Tokenizer};
use lapwing_kernels::weights::WeightFile;
use serde::Serialize;

use crate::cli::ModelArg;
use crate::cli::failure::Failure;
use crate::cli::input::Source;
use crate::cli::output::{print_json, print_plain};
use crate::cli::resolve::model_file;
use crate::cli::session::Session;
use crate::cli::visible::one_line;

const EXAMPLES: &str = "\
Examples:
  lapwing tokenize -m FILE.gguf \"Hello, world!\"
  lapwing tokenize --json - < README.md
  lapwing tokenize --no-bos --no-special \"<|im_start|>\"
  lapwing tokenize --list '[\"one text\", \"another\"]'

The ids are those that `run --raw` uses. Prints one id and its piece per line; ⏎ and ⇥ stand for
line feed and tab, <0xE6> for a byte that is no whole character. Text from stdin includes the line
feed at its end. A file with only a vocabulary is sufficient.

With --list, prints the ids of each text on a line.

With --json: {\"ids\":[…]}, and with --list {\"ids\":[[…],…]}";

/// Options of `tokenize`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The text; `-` reads stdin
    #[arg(conflicts_with = "file")]
    text: Option<String>,

    /// Read the text from FILE; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Leave out the begin and end tokens that the model's file requests
    #[arg(long)]
    no_bos: bool,

    /// Read control tokens written in the text, such as <|im_start|>, as ordinary text
    #[arg(long)]
    no_special: bool,

    /// The text is a JSON array of texts, each of which becomes ids of its own
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    model: ModelArg,
}

#[derive(Serialize)]
struct Report<T> {
    ids: T,
}

/// Prints the ids of a text.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    let text = Source::choose("text", args.text, args.file)?.read().await?;
    let path = model_file(&args.model.model, session).await?;
    let tokenizer = open_tokenizer(&path)?;
    let special = if args.no_special { Special::Plain } else { Special::Parse };
    let ids = |text: &str| {
        tokenizer.check(text).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(tokenizer.encode(text, special, !args.no_bos))
    };
    if args.list {
        let texts: Vec<String> = serde_json::from_str(&text).map_err(|error| {
            Failure::usage(format!("--list needs a JSON array of texts: {error}"))
        })?;
        let ids: Vec<Vec<u32>> =
            texts.iter().map(|text| ids(text)).collect::<Result<_, Failure>>()?;
        return match session.json {
            true => print_json(&Report { ids }),
            false => print_plain(&ids.iter().map(|ids| line_of(ids)).collect::<String>()),
        };
    }
    let ids = ids(&text)?;
    if session.json {
        return print_json(&Report { ids });
    }
    let mut lines = String::new();
    for id in ids {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        let piece = one_line(&piece_of(&bytes));
        lines.push_str(&format!("{id:>7}  '{piece}'\n"));
    }
    print_plain(&lines)
}

/// The ids on one line.
fn line_of(ids: &[u32]) -> String {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    format!("{}\n", ids.join(" "))
}

/// The text of a token. Bytes that are no whole characters are written as sentence-piece vocabularies write them: `<0xE6>`.
fn piece_of(bytes: &[u8]) -> String {
    let mut piece = String::new();
    for chunk in bytes.utf8_chunks() {
        piece.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| piece.push_str(&format!("<0x{byte:02X}>")));
    }
    piece
}

fn open_tokenizer(path: &Path) -> Result<Tokenizer, Failure> {
    let file = WeightFile::open(path).map_err(|error| Failure::failed(error.to_string()))?;
    Tokenizer::from_metadata(file.metadata())
        .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_characters_are_told_apart() {
        let rows: [(&[u8], &str); 4] = [
            ("鳥 a".as_bytes(), "鳥 a"),
            (&[0xE9], "<0xE9>"),
            (&[b' ', 0xE9, 0xB3], " <0xE9><0xB3>"),
            (&[0xA5, b'!'], "<0xA5>!"),
        ];
        for (bytes, piece) in rows {
            assert_eq!(piece_of(bytes), piece);
        }
    }
}
