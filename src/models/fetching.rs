//! Fetches a model from its source into the cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cache::{ModelCache, Slot, remove_dir, remove_file};
use super::error::FetchError;
use super::lock::FetchLock;
use super::name::ModelName;
use super::progress::{FetchEvent, Progress};
use super::record::Record;
use super::source::{Claim, Site, Source};
use super::{blocking, digest, files};

/// Age at which leftovers of an interrupted fetch are removed by the fetch of another model.
const LEFTOVER_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Fetches a model into the cache and returns the path of its GGUF file; at once if it is cached.
///
/// Needs a tokio runtime with time and I/O enabled, of either flavour, and never blocks it. The
/// future may be dropped at any time.
///
/// # Errors
/// Any [`FetchError`]. After an error, no new file has the model's name.
pub async fn fetch(
    cache: &ModelCache,
    name: &ModelName,
    progress: &mut dyn Progress,
) -> Result<PathBuf, FetchError> {
    let name = name.resolve(cache).await?;
    let name_in_cache = name.to_string();
    if let Some(notice) = name.entry().and_then(|entry| entry.notice)
        && cache.path_of(&name_in_cache).is_none()
    {
        progress.on_event(FetchEvent::Notice { text: notice.to_owned() });
    }
    // A name that was resolved has a source.
    let source = name.source().ok_or_else(|| FetchError::NoHubFile {
        repository: name_in_cache.clone(),
        has: Vec::new(),
    })?;
    fetch_from(cache, &name_in_cache, &*source, progress).await
}

/// As [`fetch`], until `stopped` is true; `None` if it was stopped.
pub(crate) async fn fetch_until(
    cache: &ModelCache,
    name: &ModelName,
    progress: &mut dyn Progress,
    stopped: impl Fn() -> bool,
) -> Option<Result<PathBuf, FetchError>> {
    let mut fetched = std::pin::pin!(fetch(cache, name, progress));
    while !stopped() {
        if let Ok(result) = tokio::time::timeout(blocking::POLL, fetched.as_mut()).await {
            return Some(result);
        }
    }
    None
}

/// As [`fetch`], from any source; the model is cached as `name`.
///
/// # Errors
/// As [`fetch`].
pub async fn fetch_from(
    cache: &ModelCache,
    name: &str,
    source: &dyn Source,
    progress: &mut dyn Progress,
) -> Result<PathBuf, FetchError> {
    let slot = cache.slot(name)?;
    let expected = source.claim();
    if let Some(path) = complete(cache, name, &expected) {
        progress.on_event(FetchEvent::Done { path: path.clone() });
        return Ok(path);
    }
    fs::create_dir_all(cache.dir())
        .map_err(FetchError::io("create the cache folder", cache.dir()))?;
    let lock = FetchLock::take(slot.lock.clone(), name, progress).await?;
    if let Some(path) = complete(cache, name, &expected) {
        progress.on_event(FetchEvent::Done { path: path.clone() });
        return Ok(path);
    }
    let leftovers = cache.clone();
    blocking::run(move |_| leftovers.clean(LEFTOVER_AGE)).await?;

    let site = Site::new(name, slot.partial.clone(), lock);
    let path = transfer_again_if_damaged(&site, &slot, source, progress).await?;
    progress.on_event(FetchEvent::Done { path: path.clone() });
    Ok(path)
}

/// Fetches the model. Wrong content is removed; if leftovers of an earlier attempt may be the
/// cause, it is fetched once more from the start.
async fn transfer_again_if_damaged(
    site: &Site,
    slot: &Slot,
    source: &dyn Source,
    progress: &mut dyn Progress,
) -> Result<PathBuf, FetchError> {
    let mut leftovers = site.dir().exists();
    loop {
        files::create_dir(site.dir()).map_err(FetchError::io("create", site.dir()))?;
        match transfer_and_publish(site, slot, source, progress).await {
            Err(error) if error.is_bad_content() => {
                let site = site.clone();
                blocking::run(move |_| remove_dir(site.dir())).await?;
                if !std::mem::take(&mut leftovers) {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}

/// The cached file, if it is complete and matches what the source states.
fn complete(cache: &ModelCache, name: &str, expected: &Claim) -> Option<PathBuf> {
    let model = cache.model(name)?;
    let same = expected.sha256.as_ref().is_none_or(|hash| *hash == model.sha256)
        && expected.bytes.is_none_or(|bytes| bytes == model.bytes);
    same.then_some(model.path)
}

/// Transfers into the site, verifies, and publishes the file.
async fn transfer_and_publish(
    site: &Site,
    slot: &Slot,
    source: &dyn Source,
    progress: &mut dyn Progress,
) -> Result<PathBuf, FetchError> {
    let claim = source.deliver(site, progress).await?;
    match &claim.sha256 {
        Some(_) => progress.on_event(FetchEvent::Verifying),
        None => progress.on_event(FetchEvent::Unverified {
            reason: format!("{} states no SHA-256", source.describe()),
        }),
    }
    let description = source.describe();
    let (site, slot) = (site.clone(), slot.clone());
    blocking::run(move |state| {
        let file = site.file();
        sync(&file)?;
        let (bytes, sha256) = digest::of_file(&file, state)?;
        compare(site.name(), &claim, bytes, &sha256)?;
        let record = Record {
            name: site.name().to_owned(),
            source: description,
            bytes,
            sha256,
            verified: claim.sha256.is_some(),
        };
        publish(&site, &slot, &record)?;
        Ok(slot.model)
    })
    .await
}

fn compare(name: &str, claim: &Claim, bytes: u64, sha256: &str) -> Result<(), FetchError> {
    if let Some(expected) = claim.bytes
        && expected != bytes
    {
        return Err(FetchError::SizeMismatch { name: name.to_owned(), expected, actual: bytes });
    }
    match &claim.sha256 {
        Some(expected) if expected != sha256 => Err(FetchError::HashMismatch {
            name: name.to_owned(),
            expected: expected.clone(),
            actual: sha256.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Moves record and model to their final names. A crash between any two steps leaves either no
/// complete model or the new one: an old file is removed first, and a record without its file is
/// ignored.
fn publish(site: &Site, slot: &Slot, record: &Record) -> Result<(), FetchError> {
    remove_file(&slot.model)?;
    record.write(&slot.record)?;
    fs::rename(site.file(), &slot.model).map_err(FetchError::io("rename", site.file()))?;
    if let Some(folder) = slot.model.parent() {
        sync_folder(folder)?;
    }
    remove_dir(site.dir())
}

fn sync(path: &Path) -> Result<(), FetchError> {
    File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.sync_all())
        .map_err(FetchError::io("flush", path))
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> Result<(), FetchError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(FetchError::io("flush", path))
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> Result<(), FetchError> {
    Ok(())
}

#[cfg(test)]
mod tests;
