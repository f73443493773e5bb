//! The folder of fetched models.
//!
//! A model NAME is `NAME.gguf`, described by `NAME.json`; one in parts is the folder `NAME.parts/`.
//! `NAME.partial/` is an unfinished fetch, `NAME.lock` the file that a fetch locks.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::FetchError;
use super::lock::FetchLock;
use super::record::{Record, RecordedFile};
use super::{blocking, digest};

/// Longest file name made from a model's name, in bytes.
const STEM_MAX: usize = 200;

/// A folder of fetched models.
#[derive(Debug, Clone)]
pub struct ModelCache {
    dir: PathBuf,
}

/// A complete model in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedModel {
    /// The name it was fetched under.
    pub name: String,
    /// The GGUF file, or the first of its parts.
    pub path: PathBuf,
    /// Number of its files; more than one if it is in parts.
    pub files: usize,
    /// Size of all files in bytes.
    pub bytes: u64,
    /// SHA-256 computed when it was fetched, lower-case hex. Of a model in parts, the SHA-256 of the text
    /// with that of each part, in order, on a line of its own.
    pub sha256: String,
    /// Whether the hash was compared with one that the source states.
    pub verified: bool,
    /// Its source.
    pub source: String,
}

impl ModelCache {
    /// The cache in `dir`, or else in the first of `$LAPWING_CACHE`, `$XDG_CACHE_HOME/lapwing` and
    /// `~/.cache/lapwing` that is set. The folder need not exist yet.
    ///
    /// # Errors
    /// [`FetchError::NoCacheFolder`] when none of them is set.
    pub fn open(dir: Option<PathBuf>) -> Result<Self, FetchError> {
        let environment =
            |key| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self::choose([
            dir,
            environment("LAPWING_CACHE"),
            environment("XDG_CACHE_HOME")
                .filter(|path| path.is_absolute())
                .map(|path| path.join("lapwing")),
            std::env::home_dir()
                .filter(|path| path.is_absolute())
                .map(|path| path.join(".cache").join("lapwing")),
        ])
    }

    fn choose(candidates: [Option<PathBuf>; 4]) -> Result<Self, FetchError> {
        let dir = candidates.into_iter().flatten().next().ok_or(FetchError::NoCacheFolder)?;
        Ok(Self { dir })
    }

    /// The cache's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All complete models, by name. Files without a matching record are left out.
    ///
    /// # Errors
    /// [`FetchError::Io`] when the folder exists and cannot be read.
    pub fn list(&self) -> Result<Vec<CachedModel>, FetchError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FetchError::io("read the folder", &self.dir)(error)),
        };
        let mut models = Vec::new();
        for entry in entries {
            let path = entry.map_err(FetchError::io("read the folder", &self.dir))?.path();
            if path.extension().is_some_and(|extension| extension == "json")
                && let Some(record) = Record::read(&path)
                && let Some(model) = self.model(&record.name)
                && self.slot(&record.name).is_ok_and(|slot| slot.record == path)
            {
                models.push(model);
            }
        }
        models.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(models)
    }

    /// The complete model of this name, with a record and files of the recorded sizes.
    pub fn model(&self, name: &str) -> Option<CachedModel> {
        let (record, files) = self.recorded(name)?;
        let is_whole = |file: &RecordedFile| {
            let found = fs::metadata(&file.path).ok().filter(fs::Metadata::is_file);
            found.is_some_and(|found| found.len() == file.bytes)
        };
        files.iter().all(is_whole).then_some(())?;
        Some(CachedModel {
            files: files.len(),
            path: files.into_iter().next()?.path,
            name: record.name,
            bytes: record.bytes,
            sha256: record.sha256,
            verified: record.verified,
            source: record.source,
        })
    }

    /// The record of a name, and the files that it names.
    fn recorded(&self, name: &str) -> Option<(Record, Vec<RecordedFile>)> {
        let slot = self.slot(name).ok()?;
        let record = Record::read(&slot.record).filter(|record| record.name == name)?;
        let files = record.files(&slot)?;
        Some((record, files))
    }

    /// The file of a complete model, or the first of its parts.
    pub fn path_of(&self, name: &str) -> Option<PathBuf> {
        self.model(name).map(|model| model.path)
    }

    /// Removes a model with all its parts, and the leftovers of an interrupted fetch of it.
    ///
    /// # Errors
    /// [`FetchError::NotCached`] if there is no such model, [`FetchError::Busy`] while it is being
    /// fetched, [`FetchError::Io`].
    pub fn remove(&self, name: &str) -> Result<(), FetchError> {
        let slot = self.slot(name)?;
        let absent = || FetchError::NotCached { name: name.to_owned(), dir: self.dir.clone() };
        let Slot { model, record, partial, parts, .. } = &slot;
        if ![model, record, partial, parts].iter().any(|path| path.exists()) {
            return Err(absent());
        }
        let _lock = FetchLock::try_take(&slot.lock)?
            .ok_or_else(|| FetchError::Busy { name: name.to_owned() })?;
        remove_file(&slot.model)?;
        remove_file(&slot.record)?;
        remove_dir(&slot.parts)?;
        remove_dir(&slot.partial)
    }

    /// Computes the SHA-256 of each file of a cached model again and compares it with the record.
    ///
    /// # Errors
    /// [`FetchError::NotCached`], [`FetchError::HashMismatch`], [`FetchError::Io`].
    pub async fn verify(&self, name: &str) -> Result<CachedModel, FetchError> {
        let (Some(model), Some((_, files))) = (self.model(name), self.recorded(name)) else {
            return Err(FetchError::NotCached { name: name.to_owned(), dir: self.dir.clone() });
        };
        for RecordedFile { path, sha256: expected, .. } in files {
            let part = path.file_name().filter(|_| model.files > 1);
            let part = part.map(|part| format!(" ({})", part.display())).unwrap_or_default();
            let (_, actual) = blocking::run(move |state| digest::of_file(&path, state)).await?;
            if actual != expected {
                let name = format!("{}{part}", model.name);
                return Err(FetchError::HashMismatch { name, expected, actual });
            }
        }
        Ok(model)
    }

    /// Removes leftovers of interrupted fetches that are older than `age`. Running fetches are never
    /// disturbed. Returns the number of leftovers removed.
    ///
    /// # Errors
    /// [`FetchError::Io`].
    pub fn clean(&self, age: Duration) -> Result<usize, FetchError> {
        let Ok(entries) = fs::read_dir(&self.dir) else { return Ok(0) };
        let mut removed = 0;
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "partial") || !path.is_dir() {
                continue;
            }
            let untouched =
                newest(&path).is_some_and(|time| time.elapsed().is_ok_and(|since| since >= age));
            if untouched && let Some(_lock) = FetchLock::try_take(&path.with_extension("lock"))? {
                remove_dir(&path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The files of one model.
    pub(super) fn slot(&self, name: &str) -> Result<Slot, FetchError> {
        let stem = stem(name)?;
        let file = |extension: &str| self.dir.join(format!("{stem}.{extension}"));
        Ok(Slot {
            model: file("gguf"),
            record: file("json"),
            lock: file("lock"),
            partial: file("partial"),
            parts: file("parts"),
        })
    }
}

/// The files of one model in the cache.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    /// The model itself.
    pub(super) model: PathBuf,
    /// Its record.
    pub(super) record: PathBuf,
    /// Locked while any of the others is written.
    pub(super) lock: PathBuf,
    /// Folder of an unfinished fetch.
    pub(super) partial: PathBuf,
    /// Folder of a model in parts.
    pub(super) parts: PathBuf,
}

/// File name of a model without extension. Different names give different file names: `/` becomes
/// `+`, `:` becomes `=`, and any character other than a letter, digit, `-`, `_`, `@` or inner `.`
/// becomes `%XX`.
fn stem(name: &str) -> Result<String, FetchError> {
    let bad = |reason| FetchError::BadName { name: name.to_owned(), reason };
    let mut stem = String::with_capacity(name.len());
    for byte in name.strip_suffix(".gguf").unwrap_or(name).bytes() {
        match byte {
            b'/' => stem.push('+'),
            b':' => stem.push('='),
            b'.' if stem.is_empty() => stem.push_str("%2E"),
            b'-' | b'_' | b'@' | b'.' => stem.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => stem.push(char::from(byte)),
            _ => stem.push_str(&format!("%{byte:02X}")),
        }
    }
    match stem.len() {
        0 => Err(bad("it is empty")),
        length if length > STEM_MAX => Err(bad("it is too long")),
        _ => Ok(stem),
    }
}

/// The time of the last write to a folder or anything in it.
fn newest(dir: &Path) -> Option<std::time::SystemTime> {
    let own = fs::metadata(dir).ok()?.modified().ok();
    let inner = fs::read_dir(dir).ok()?.flatten().filter_map(|entry| {
        match entry.file_type().ok()?.is_dir() {
            true => newest(&entry.path()),
            false => entry.metadata().ok()?.modified().ok(),
        }
    });
    inner.chain(own).max()
}

/// Removes a file, if it exists.
pub(super) fn remove_file(path: &Path) -> Result<(), FetchError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(FetchError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Removes a folder and everything in it, if it exists.
pub(super) fn remove_dir(path: &Path) -> Result<(), FetchError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(FetchError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
