//! The folder that `transformers` and engines with its interfaces need beside a model: its tokenizer, its chat template and
//! its sizes, from the header of a weight file.
//!
//! ```no_run
//! use lapwing::hugging_face::{Existing, HfFolder};
//! use lapwing::weights::WeightFile;
//!
//! let file = WeightFile::open("model.gguf".as_ref())?;
//! HfFolder::new(file.metadata())?.write("folder".as_ref(), Existing::Keep)?;
//! # Ok::<(), lapwing::Error>(())
//! ```

mod architectures;
mod config;
mod error;
mod tokenizer_config;

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::Path;

use lapwing_kernels::weights::Metadata;
use lapwing_traces::whole_file;
use serde_json::Value;

pub use error::HfError;

use crate::tokenizer::{Overlap, Tokenizer, Vocabulary};

/// The files of such a folder: `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json`, `config.json` and
/// `generation_config.json`.
///
/// `tokenizer.json` gives a text the ids that [`Tokenizer::encode`] gives it with
/// [`Special::Parse`](crate::tokenizer::Special::Parse).
#[derive(Clone, Debug)]
pub struct HfFolder {
    files: Vec<HfFile>,
    template_fault: Option<String>,
    overlap: Option<Overlap>,
}

/// A file of the folder.
#[derive(Clone, Debug)]
pub struct HfFile {
    /// Its name.
    pub name: &'static str,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// What is done if a file of the folder exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Nothing is written.
    Keep,
    /// It is replaced. Other files of the folder stay in either case.
    Replace,
}

/// Writes the folder of a weight file, as [`HfFolder`] does.
///
/// # Errors
/// As [`HfFolder::new`] and [`HfFolder::write`].
pub fn export_hf(
    metadata: &Metadata,
    folder: &Path,
    existing: Existing,
) -> Result<HfFolder, HfError> {
    let exported = HfFolder::new(metadata)?;
    exported.write(folder, existing)?;
    Ok(exported)
}

impl HfFolder {
    /// The folder that a weight file describes. Reads its header only.
    ///
    /// # Errors
    /// If the file has no vocabulary, or one that is not supported; [`HfError::Inexpressible`] if the library cannot give the
    /// same ids.
    pub fn new(metadata: &Metadata) -> Result<HfFolder, HfError> {
        let vocabulary = Vocabulary::from_metadata(metadata)?;
        let tokenizer = Tokenizer::new(vocabulary.clone())?;
        let template = tokenizer_config::Template::of(metadata, &tokenizer)?;
        let specials = tokenizer_config::specials(metadata, &tokenizer)?;
        let json = tokenizer.to_json(&vocabulary)?;
        let of_tokenizer =
            tokenizer_config::tokenizer_config(metadata, &tokenizer, &specials, &template)?;
        let file =
            |name, value: &Value| HfFile { name, bytes: format!("{value:#}\n").into_bytes() };
        let files = vec![
            HfFile { name: "tokenizer.json", bytes: json.bytes },
            file("tokenizer_config.json", &of_tokenizer),
            file("special_tokens_map.json", &tokenizer_config::declared(&specials)),
            file("config.json", &config::config(metadata, &tokenizer)?),
            file("generation_config.json", &config::generation_config(metadata, &tokenizer)?),
        ];
        Ok(HfFolder { files, template_fault: template.fault, overlap: json.overlap })
    }

    /// The files.
    pub fn files(&self) -> &[HfFile] {
        &self.files
    }

    /// Why prompts of conversations need a template from elsewhere, if the folder has none; or why Lapwing cannot use it.
    pub fn template_fault(&self) -> Option<&str> {
        self.template_fault.as_deref()
    }

    /// Control tokens that are read in another way in texts where they overlap. Only texts with broken control tokens have such.
    pub fn overlap(&self) -> Option<&Overlap> {
        self.overlap.as_ref()
    }

    /// Writes the files into `folder`, which is created if it does not exist; its parent must exist. Each file is complete or
    /// not there at all.
    ///
    /// # Errors
    /// [`HfError::Exists`] if a file exists and `existing` keeps it, and those of the operating system.
    pub fn write(&self, folder: &Path, existing: Existing) -> Result<(), HfError> {
        let of_path = |path: &Path| {
            let path = path.to_owned();
            move |source| HfError::Write { path, source }
        };
        match fs::create_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            made => made.map_err(of_path(folder))?,
        }
        for file in &self.files {
            let path = folder.join(file.name);
            if existing == Existing::Keep && path.symlink_metadata().is_ok() {
                return Err(HfError::Exists { path });
            }
            whole_file::check(&path).map_err(of_path(&path))?;
        }
        self.files.iter().try_for_each(|file| {
            let path = folder.join(file.name);
            whole_file::write(&path, &file.bytes).map_err(of_path(&path))
        })
    }
}
