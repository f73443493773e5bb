//! Fetches a model from its source into the cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cache::{ModelCache, Slot, remove_dir, remove_file};
use super::error::FetchError;
use super::lock::FetchLock;
use super::name::HubFile;
use super::name::ModelName;
use super::progress::{FetchEvent, Progress};
use super::record::{PartRecord, Record};
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
    if cache.path_of(&name_in_cache).is_none() {
        if let Some(path) = name.shared() {
            progress.on_event(FetchEvent::Done { path: path.clone() });
            return Ok(path);
        }
        if let Some(notice) = name.entry().and_then(|entry| entry.notice) {
            progress.on_event(FetchEvent::Notice { text: notice.to_owned() });
        }
    }
    let sources = name.sources();
    let sources: Vec<&dyn Source> = sources.iter().map(|source| &**source).collect();
    fetch_parts(cache, &name_in_cache, &sources, progress).await
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

/// As [`fetch`], from any source of a whole model, which is cached as `name`.
///
/// # Errors
/// As [`fetch`].
pub async fn fetch_from(
    cache: &ModelCache,
    name: &str,
    source: &dyn Source,
    progress: &mut dyn Progress,
) -> Result<PathBuf, FetchError> {
    fetch_parts(cache, name, &[source], progress).await
}

/// As [`fetch_from`], from the sources of all parts in order. The model is in the cache when all are.
pub(super) async fn fetch_parts(
    cache: &ModelCache,
    name: &str,
    sources: &[&dyn Source],
    progress: &mut dyn Progress,
) -> Result<PathBuf, FetchError> {
    let slot = cache.slot(name)?;
    let expected = match sources {
        [source] => source.claim(),
        _ => Claim::default(),
    };
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
    let mut delivered = Vec::new();
    for (number, source) in (1..).zip(sources) {
        let site = match sources.len() {
            1 => site.clone(),
            _ => {
                files::create_dir(site.dir()).map_err(FetchError::io("create", site.dir()))?;
                site.part(number, source.describe())
            }
        };
        delivered.push(transfer_again_if_damaged(site, *source, progress).await?);
    }
    let path = blocking::run(move |_| publish(&site, &slot, &delivered)).await?;
    progress.on_event(FetchEvent::Done { path: path.clone() });
    Ok(path)
}

/// A file that has been transferred and compared with what its source states.
struct Delivered {
    site: Site,
    source: String,
    bytes: u64,
    sha256: String,
    verified: bool,
}

/// Fetches the model, or a part of it. Wrong content is removed; if leftovers of an earlier attempt may be the
/// cause, it is fetched once more from the start.
async fn transfer_again_if_damaged(
    site: Site,
    source: &dyn Source,
    progress: &mut dyn Progress,
) -> Result<Delivered, FetchError> {
    let mut leftovers = site.dir().exists();
    loop {
        files::create_dir(site.dir()).map_err(FetchError::io("create", site.dir()))?;
        match transfer(&site, source, progress).await {
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

/// Transfers into the site, and verifies.
async fn transfer(
    site: &Site,
    source: &dyn Source,
    progress: &mut dyn Progress,
) -> Result<Delivered, FetchError> {
    let claim = source.deliver(site, progress).await?;
    match &claim.sha256 {
        Some(_) => progress.on_event(FetchEvent::Verifying),
        None => progress.on_event(FetchEvent::Unverified {
            reason: format!("{} states no SHA-256", source.describe()),
        }),
    }
    let (site, source) = (site.clone(), source.describe());
    blocking::run(move |state| {
        let file = site.file();
        sync(&file)?;
        let (bytes, sha256) = digest::of_file(&file, state)?;
        compare(site.name(), &claim, bytes, &sha256)?;
        Ok(Delivered { site, source, bytes, sha256, verified: claim.sha256.is_some() })
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

/// Moves record and files to their final names, and returns the path of the first file. A crash between
/// any two steps leaves either no complete model or the new one: an old file is removed first, and a record
/// without all its files is ignored.
fn publish(site: &Site, slot: &Slot, delivered: &[Delivered]) -> Result<PathBuf, FetchError> {
    remove_file(&slot.model)?;
    remove_dir(&slot.parts)?;
    let record = record(site.name(), delivered);
    record.write(&slot.record)?;
    if !record.parts.is_empty() {
        files::create_dir(&slot.parts).map_err(FetchError::io("create", &slot.parts))?;
    }
    let targets = match &record.parts[..] {
        [] => vec![slot.model.clone()],
        parts => parts.iter().map(|part| slot.parts.join(&part.file)).collect(),
    };
    for (file, target) in delivered.iter().map(|delivered| delivered.site.file()).zip(&targets) {
        fs::rename(&file, target).map_err(FetchError::io("rename", &file))?;
        target.parent().map_or(Ok(()), sync_folder)?;
    }
    slot.model.parent().map_or(Ok(()), sync_folder)?;
    remove_dir(site.dir())?;
    Ok(targets.into_iter().next().unwrap_or_else(|| slot.model.clone()))
}

/// The record of a model that consists of these files.
fn record(name: &str, delivered: &[Delivered]) -> Record {
    let file_name = |source: &str| {
        let file = source.parse().map(|file: HubFile| file.file_name().to_owned());
        file.unwrap_or_else(|_| source.to_owned())
    };
    let of_file = |delivered: &Delivered| PartRecord {
        file: file_name(&delivered.source),
        bytes: delivered.bytes,
        sha256: delivered.sha256.clone(),
    };
    let (source, sha256, parts) = match delivered {
        [whole] => (whole.source.clone(), whole.sha256.clone(), Vec::new()),
        all => {
            let hashes = all.iter().map(|part| &*part.sha256);
            (name.to_owned(), digest::of_hashes(hashes), all.iter().map(of_file).collect())
        }
    };
    Record {
        name: name.to_owned(),
        source,
        bytes: delivered.iter().map(|file| file.bytes).sum(),
        sha256,
        verified: delivered.iter().all(|file| file.verified),
        parts,
    }
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
