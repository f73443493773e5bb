//! `lapwing export-hf`: writes the tokenizer, chat template and sizes of a model for `transformers` and engines with its interfaces.

use std::path::PathBuf;

use indicatif::HumanBytes;
use lapwing_engine::error::HfError;
use lapwing_engine::hugging_face::{Existing, HfFolder};
use lapwing_kernels::weights::WeightFile;
use serde::Serialize;

use crate::cli::ModelArg;
use crate::cli::failure::Failure;
use crate::cli::files::parent;
use crate::cli::output::{print, print_json};
use crate::cli::resolve::model_file;
use crate::cli::session::Session;

const EXAMPLES: &str = "\
Examples:
  lapwing export-hf -m FILE.gguf folder
  lapwing export-hf -m smollm2-135m-instruct folder --force
  python -c \"from transformers import *; print(AutoTokenizer.from_pretrained('folder')('Hello'))\"

Writes tokenizer.json, tokenizer_config.json (with the chat template and the special tokens),
special_tokens_map.json, config.json and generation_config.json, which transformers, tokenizers and
the frontend of NVIDIA Dynamo read. Only the header of FILE is read, and a file with only a
vocabulary is sufficient. A text has the same ids there as in `lapwing tokenize`; what the format
cannot say is an error, and nothing is written then. docs/templates.md says what else differs.

DIR is created if it does not exist. Other files in it stay; the five files are replaced only
with --force.

With --json:
  {\"folder\":\"…\",\"files\":[{\"name\":\"…\",\"bytes\":N}],\"template_fault\":\"…\"|null,
   \"overlap\":\"…\"|null}
  template_fault: why the folder has no chat template, or Lapwing cannot use it.
  overlap: control tokens that are read in another way where they overlap.";

/// Options of `export-hf`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder to write
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Replace the files if they exist
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    model: ModelArg,
}

#[derive(Serialize)]
struct Report {
    folder: PathBuf,
    files: Vec<FileReport>,
    template_fault: Option<String>,
    overlap: Option<String>,
}

#[derive(Serialize)]
struct FileReport {
    name: &'static str,
    bytes: usize,
}

/// Writes the folder.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    parent(&args.folder)?;
    let path = model_file(&args.model.model, session).await?;
    let file = WeightFile::open(&path).map_err(|error| Failure::failed(error.to_string()))?;
    let of_model = |error: HfError| Failure::failed(format!("{}: {error}", path.display()));
    let exported = HfFolder::new(file.metadata()).map_err(of_model)?;
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    exported.write(&args.folder, existing).map_err(|error| match error {
        HfError::Exists { path } => Failure::failed(format!("{} exists", path.display()))
            .hint("--force replaces it; or give another folder"),
        HfError::Write { path, source } => Failure::file("write", &path, &source),
        error => Failure::failed(error.to_string()),
    })?;
    let sizes = exported.files().iter().map(|file| (file.name, file.bytes.len()));
    let files: Vec<FileReport> =
        sizes.map(|size| FileReport { name: size.0, bytes: size.1 }).collect();
    let template_fault = exported.template_fault().map(str::to_owned);
    let overlap = exported.overlap().map(ToString::to_string);
    if session.json {
        return print_json(&Report { folder: args.folder, files, template_fault, overlap });
    }
    template_fault.iter().chain(&overlap).for_each(|note| session.note(note));
    let lines = files.iter().map(|file| {
        let path = args.folder.join(file.name);
        format!("{}: {}\n", path.display(), HumanBytes(file.bytes as u64))
    });
    print(&lines.collect::<String>())
}
