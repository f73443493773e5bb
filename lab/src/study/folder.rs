//! The folder of a study's results.

use std::fs;
use std::path::{Path, PathBuf};

use lapwing_traces::whole_file;

use super::error::StudyError;
use super::journal::JOURNAL;
use super::manifest::Input;

/// What to do with the folder of an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// There must be none.
    New,
    /// Go on with the interrupted run in it.
    Resume,
    /// Remove it, and begin again.
    Restart,
}

/// Files and folders of a study, beside tables and plots.
pub(super) const STUDY: &str = "study.toml";
pub(super) const MANIFEST: &str = "study.json";
pub(super) const PAGE: &str = "index.html";
pub(super) const PRESETS: &str = "presets";
pub(super) const INPUTS: &str = "inputs";

/// The folder of a study.
#[derive(Debug)]
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    fn error(&self, doing: &'static str, source: std::io::Error) -> StudyError {
        StudyError::Io { doing, path: self.0.clone(), source }
    }

    /// Prepares the folder, with the files that say what is run. Returns whether it has an earlier run to go on with.
    pub(super) fn prepare(&self, begin: Begin, inputs: &[Input]) -> Result<bool, StudyError> {
        let exists = self.0.exists() && !self.is_empty()?;
        match begin {
            Begin::Resume => {
                self.check_same(inputs)?;
                return Ok(true);
            }
            Begin::New if exists => return Err(self.exists()),
            Begin::Restart if exists => self.remove()?,
            _ => {}
        }
        fs::create_dir_all(&self.0).map_err(|source| self.error("create", source))?;
        inputs.iter().try_for_each(|input| self.write(&input.name, &input.bytes))?;
        Ok(false)
    }

    fn is_empty(&self) -> Result<bool, StudyError> {
        let mut entries = fs::read_dir(&self.0).map_err(|source| self.error("read", source))?;
        Ok(entries.next().is_none())
    }

    fn exists(&self) -> StudyError {
        let reason = match (self.0.join(JOURNAL).is_file(), self.0.join(MANIFEST).is_file()) {
            (true, _) => {
                "it has an interrupted run: --resume goes on with it, --restart begins again"
            }
            (_, true) => {
                "it has the results of a study: --restart replaces them, --out FOLDER writes elsewhere"
            }
            _ => "it has other files: choose another folder with --out FOLDER",
        };
        StudyError::Exists { path: self.0.clone(), reason: reason.to_owned() }
    }

    /// Checks that an interrupted run in the folder is of the same study, files and version.
    fn check_same(&self, inputs: &[Input]) -> Result<(), StudyError> {
        let fail = |reason: String| StudyError::NotResumable { path: self.0.clone(), reason };
        if !self.0.join(JOURNAL).is_file() {
            let reason = match self.0.join(MANIFEST).is_file() {
                true => "the run has ended; --restart runs it again",
                false => "run it without --resume",
            };
            return Err(fail(reason.to_owned()));
        }
        for Input { name, bytes } in inputs {
            if fs::read(self.0.join(name)).ok().as_ref() != Some(bytes) {
                return Err(fail(format!("{name} has changed since; --restart begins again")));
            }
        }
        Ok(())
    }

    /// Removes a study's results, and nothing else.
    fn remove(&self) -> Result<(), StudyError> {
        let entries = fs::read_dir(&self.0).map_err(|source| self.error("read", source))?;
        let names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let is_known = |name: &&String| {
            let known = [STUDY, MANIFEST, PAGE, PRESETS, INPUTS, JOURNAL];
            known.contains(&name.as_str()) || name.ends_with(".csv") || name.ends_with(".svg")
        };
        let other = names.iter().find(|name| !is_known(name));
        let missing = (!names.iter().any(|name| name == MANIFEST)).then_some("no study.json");
        if let Some(other) = other.map(String::as_str).or(missing) {
            let reason = format!(
                "it is not the folder of a study ({other}): choose another one with --out FOLDER"
            );
            return Err(StudyError::Exists { path: self.0.clone(), reason });
        }
        fs::remove_dir_all(&self.0).map_err(|source| self.error("remove", source))
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StudyError> {
        let path = self.0.join(name);
        let wrong = |source| StudyError::Io { doing: "write", path: path.clone(), source };
        let parent = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(parent).map_err(wrong)?;
        whole_file::write(&path, bytes).map_err(wrong)
    }

    /// Removes the journal of a run that has ended.
    pub(super) fn close(&self) -> Result<(), StudyError> {
        fs::remove_file(self.0.join(JOURNAL)).map_err(|source| self.error("write", source))
    }
}
