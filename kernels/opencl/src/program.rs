//! Compiled programs, kept on disk.
//!
//! A file holds everything that the binary depends on, so it is used only where all of that is
//! equal, and a checksum, because some drivers crash on a damaged binary. While a driver loads a
//! binary, a marker file lies beside it: if the process dies in the driver, the next one finds the
//! marker and compiles from source.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::OpenClError;
use super::session::{Program, Session};
pub(crate) use lapwing_model::kept_file::{self, Kept, Magic};

const MAGIC: &Magic = b"LPWCL001";

/// Files that are larger are not read: no program compiles to that much.
const FILE_MAX: u64 = 256 << 20;

/// A program to build: its name, its source and the compiler's options.
#[derive(Clone, Debug)]
pub(super) struct Source<'a> {
    /// Name in errors and of the file.
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) options: &'a str,
}

/// Where a program came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Compiled from source.
    Source,
    /// Loaded from the folder.
    Cache,
    /// Compiled from source, because the file in the folder could not be used.
    Refused(&'static str),
}

/// The folder of compiled programs. Without one, each start compiles.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramCache {
    folder: Option<PathBuf>,
}

impl ProgramCache {
    pub(super) fn new(folder: Option<PathBuf>) -> ProgramCache {
        ProgramCache { folder }
    }

    /// Builds a program, from the folder if it has an equal one.
    ///
    /// # Errors
    /// [`OpenClError::Build`] if the driver rejects the source. A folder that cannot be read is no
    /// error.
    pub(super) fn build(
        &self,
        session: &Session,
        source: &Source<'_>,
    ) -> Result<(Program, Origin), OpenClError> {
        let key = key(session, source);
        let path = self.folder.as_ref().map(|folder| file_of(folder, source.name, &key));
        let mut origin = Origin::Source;
        if let Some(path) = &path {
            match load(session, path, &key, source) {
                Loaded::Program(program) => return Ok((program, Origin::Cache)),
                Loaded::Absent => {}
                Loaded::Unusable(reason) => {
                    _ = fs::remove_file(path);
                    origin = Origin::Refused(reason);
                }
            }
        }
        let program = session.program_of_source(source.text, source.name, source.options)?;
        Ok((program, origin))
    }

    /// Writes the binary of a built program to the folder. Some drivers compile a kernel when it is
    /// first launched, so this is called after that. A failure is no error: the next start compiles.
    pub(super) fn save(&self, session: &Session, source: &Source<'_>, program: &Program) {
        let Some(folder) = &self.folder else { return };
        let Some(binary) = session.binary(program) else { return };
        let key = key(session, source);
        kept_file::write(&file_of(folder, source.name, &key), MAGIC, &key, &binary);
    }

    /// What was measured of a program, from the folder; `None` if there is none, or it is damaged.
    pub(super) fn measured(&self, session: &Session, source: &Source<'_>) -> Option<String> {
        let key = key(session, source);
        let path = measured_of(self.folder.as_ref()?, source.name, &key);
        match kept_file::read(&path, MAGIC, &key, FILE_MAX) {
            Kept::Content(text) => String::from_utf8(text).ok(),
            Kept::Absent | Kept::Unusable(_) => None,
        }
    }

    /// Writes what was measured of a program to the folder. A failure is no error: the next start
    /// measures.
    pub(super) fn save_measured(&self, session: &Session, source: &Source<'_>, text: &str) {
        let Some(folder) = &self.folder else { return };
        let key = key(session, source);
        kept_file::write(&measured_of(folder, source.name, &key), MAGIC, &key, text.as_bytes());
    }
}

/// Everything on which a binary depends.
fn key(session: &Session, source: &Source<'_>) -> String {
    let info = session.info();
    let facts = [
        &info.platform,
        &info.vendor,
        &info.name,
        &info.driver,
        &info.version,
        &info.c_version,
        source.options,
        source.text,
    ];
    facts.join("\0")
}

fn file_of(folder: &Path, name: &str, key: &str) -> PathBuf {
    kept_file::path_of(folder, name, key, "clbin")
}

fn measured_of(folder: &Path, name: &str, key: &str) -> PathBuf {
    file_of(folder, name, key).with_extension("cltune")
}

enum Loaded {
    Program(Program),
    Absent,
    Unusable(&'static str),
}

fn load(session: &Session, path: &Path, key: &str, source: &Source<'_>) -> Loaded {
    let marker = path.with_extension("loading");
    if marker.exists() {
        _ = fs::remove_file(&marker);
        return Loaded::Unusable("the driver did not survive it");
    }
    let binary = match kept_file::read(path, MAGIC, key, FILE_MAX) {
        Kept::Content(binary) => binary,
        Kept::Absent => return Loaded::Absent,
        Kept::Unusable(why) => return Loaded::Unusable(why),
    };
    if fs::write(&marker, []).is_err() {
        return Loaded::Unusable("its folder cannot be written");
    }
    let program = session.program_of_binary(&binary, source.name, source.options);
    _ = fs::remove_file(&marker);
    match program {
        Ok(program) => Loaded::Program(program),
        Err(_) => Loaded::Unusable("the driver refuses it"),
    }
}
