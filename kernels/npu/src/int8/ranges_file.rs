//! Measured ranges on disk: a file with a checksum for each model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::ranges::{ActivationRange, ActivationRanges, BINS};
pub(super) use lapwing_model::kept_file::{self, Kept, Magic};
use lapwing_model::weights::WeightFile;

const MAGIC: &Magic = b"LPWRNG02";
const EXTENSION: &str = "ranges";

/// Larger files are not read.
const FILE_MAX: u64 = 1 << 30;

/// Why ranges cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangesFileError {
    /// There is no file for this model.
    #[error(
        "the ranges of this model's activations have not been measured (no file {}); measure them with \
         `lapwing ranges -m FILE.gguf TEXTFILE` and the same model options, or set EngineBuilder::ranges",
        path.display()
    )]
    Absent {
        /// Where the file would be.
        path: PathBuf,
    },
    /// There is a file that cannot be used.
    #[error(
        "the measured ranges in {} cannot be used: {why}; measure them again with `lapwing ranges`",
        path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The model's file cannot be identified.
    #[error("the model's file cannot be read to identify it; check its permissions")]
    Model,
    /// The file was not written.
    #[error("the measured ranges could not be written to {}; check its folder and free space", path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
    },
}

impl ActivationRanges {
    /// Reads the ranges of a model from a folder. `variant` says what the model's file does not, such as the masks
    /// of attention.
    ///
    /// # Errors
    /// [`RangesFileError`] if there is none or it is damaged.
    pub fn load(
        folder: &Path,
        file: &WeightFile,
        variant: &str,
    ) -> Result<ActivationRanges, RangesFileError> {
        let (path, key) = place(folder, file, variant)?;
        let content = match kept_file::read(&path, MAGIC, &key, FILE_MAX) {
            Kept::Content(content) => content,
            Kept::Absent => return Err(RangesFileError::Absent { path }),
            Kept::Unusable(why) => return Err(RangesFileError::Unusable { path, why }),
        };
        let why = "it holds no ranges";
        decode(&content).ok_or(RangesFileError::Unusable { path, why })
    }

    /// Writes them to a folder, which is created, and returns the file's path.
    ///
    /// # Errors
    /// [`RangesFileError`] if it cannot be written.
    pub fn save(
        &self,
        folder: &Path,
        file: &WeightFile,
        variant: &str,
    ) -> Result<PathBuf, RangesFileError> {
        let (path, key) = place(folder, file, variant)?;
        kept_file::write(&path, MAGIC, &key, &encode(self));
        match ActivationRanges::load(folder, file, variant) {
            Ok(_) => Ok(path),
            Err(_) => Err(RangesFileError::NotWritten { path }),
        }
    }
}

/// Path and key of a model's file.
fn place(
    folder: &Path,
    file: &WeightFile,
    variant: &str,
) -> Result<(PathBuf, String), RangesFileError> {
    let identity = file.identity().ok_or(RangesFileError::Model)?;
    let key = format!("{identity}\0{variant}");
    Ok((kept_file::path_of(folder, "activations", &key, EXTENSION), key))
}

fn encode(ranges: &ActivationRanges) -> Vec<u8> {
    let mut bytes = ranges.rows().to_le_bytes().to_vec();
    bytes.extend((ranges.products().len() as u32).to_le_bytes());
    for (name, range) in ranges.products() {
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend((range.channels().len() as u32).to_le_bytes());
        bytes.extend(range.channels().iter().flat_map(|x| x.to_le_bytes()));
        bytes.extend(range.largest_output().to_le_bytes());
        let used = range.bins().iter().enumerate().filter(|(_, count)| **count > 0);
        bytes.extend((used.clone().count() as u32).to_le_bytes());
        for (bin, count) in used {
            bytes.extend((bin as u32).to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
    }
    bytes
}

/// `None` if the bytes are something else. Sizes are bounded by the bytes that are there.
fn decode(mut bytes: &[u8]) -> Option<ActivationRanges> {
    let from = &mut bytes;
    let rows = u64::from_le_bytes(take(from)?);
    let mut products = BTreeMap::new();
    for _ in 0..number(from)? {
        let len = number(from)?;
        let (name, rest) = from.split_at_checked(len)?;
        *from = rest;
        let name = std::str::from_utf8(name).ok()?.to_owned();
        let len = number(from)?.checked_mul(4)?;
        let (channels, rest) = from.split_at_checked(len)?;
        *from = rest;
        let channels: Vec<f32> =
            channels.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
        let output = f32::from_le_bytes(take(from)?);
        let mut bins = vec![0; BINS];
        for _ in 0..number(from)? {
            let bin = number(from)?;
            *bins.get_mut(bin)? = u64::from_le_bytes(take(from)?);
        }
        let is_valid = channels.iter().chain([&output]).all(|x| x.is_finite() && *x >= 0.0);
        let range = ActivationRange::from_parts(channels, bins, output);
        is_valid.then(|| products.insert(name, range))?;
    }
    from.is_empty().then(|| ActivationRanges::new(products, rows))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn number(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(take(bytes)?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_survive_their_file_form_and_nothing_else_is_taken_for_them() {
        let mut range = ActivationRange::new(3);
        assert!(range.add(&[0.5, -7.0, 0.0, 1e9, 3.0, -2e-9]) && range.add_output([7.5]));
        let products = [("a".to_owned(), range.clone()), ("b".to_owned(), range)];
        let ranges = ActivationRanges::new(products.into_iter().collect(), 2);
        let bytes = encode(&ranges);
        assert_eq!(decode(&bytes), Some(ranges));
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]), None, "{len} bytes");
        }
        assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
    }
}
