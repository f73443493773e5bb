//! Tensor data, read from the file on demand.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::data_file::ReadFault;
use super::tensor::{Shape, TensorInfo};
use super::{Inner, WeightFile};
use crate::formats::DType;

/// Why data of a tensor cannot be read, though its file could be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot read tensor '{tensor}' of {}: {fault}", path.display())]
pub struct TensorReadError {
    /// Tensor name.
    pub tensor: String,
    /// File that contains the tensor.
    pub path: PathBuf,
    /// What is wrong.
    pub fault: Arc<ReadFault>,
}

/// A weight file is not the same as when it was opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}: {fault}", path.display())]
pub struct ChangedError {
    /// File.
    pub path: PathBuf,
    /// What is wrong.
    pub fault: ReadFault,
}

/// A tensor of an open file. It keeps the file open.
#[derive(Clone)]
pub struct WeightTensor {
    pub(super) file: Arc<Inner>,
    pub(super) index: usize,
    /// The part of the data that is read; `None` for all.
    pub(super) slices: Option<Slices>,
}

/// A part of a tensor's data: of the `total` bytes from `start` on, the first `len` bytes, at least 1, of each
/// `step` bytes, `times` times in a row. `total` is a whole number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// First byte.
    pub start: usize,
    /// Bytes from there to the end of the last step.
    pub total: usize,
    /// Bytes of each step that belong to the part.
    pub len: usize,
    /// Bytes of a step.
    pub step: usize,
    /// How often the bytes of each step are there.
    pub times: usize,
}

impl Slices {
    /// All bytes of a range.
    pub(crate) fn range(range: Range<usize>) -> Slices {
        let total = range.len();
        Slices { start: range.start, total, len: total, step: total, times: 1 }
    }

    /// The first `len` bytes of each `step` bytes of a range.
    pub(crate) fn stepped(range: Range<usize>, len: usize, step: usize) -> Slices {
        Slices { len, step, ..Slices::range(range) }
    }

    /// Each `len` bytes of a range `times` times in a row.
    pub(crate) fn repeated(range: Range<usize>, len: usize, times: usize) -> Slices {
        Slices { times, ..Slices::stepped(range, len, len) }
    }

    /// Bytes of the part.
    fn bytes(self) -> usize {
        self.total / self.step * self.len * self.times
    }
}

impl WeightTensor {
    /// Name, shape, format and size of the whole tensor.
    pub fn info(&self) -> &TensorInfo {
        &self.file.tensors[self.index]
    }

    /// Storage format.
    pub fn dtype(&self) -> DType {
        self.info().dtype
    }

    /// Dimensions.
    pub fn shape(&self) -> Shape {
        self.info().shape
    }

    /// The same tensor, of which only these slices are read.
    pub(crate) fn sliced(self, slices: Slices) -> WeightTensor {
        WeightTensor { slices: Some(slices), ..self }
    }

    /// The part that is read, if not all.
    pub fn slices(&self) -> Option<Slices> {
        self.slices
    }

    /// Bytes that are read of it.
    pub fn bytes(&self) -> usize {
        self.slices.map_or(self.info().bytes, Slices::bytes)
    }

    /// Reads the data: rows of blocks of [`WeightTensor::dtype`].
    ///
    /// # Errors
    /// [`TensorReadError`] when the file has become shorter, or the system cannot read it.
    pub fn read(&self) -> Result<Vec<u8>, TensorReadError> {
        let mut bytes = vec![0; self.bytes()];
        self.read_range(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Fills `to` with the data from byte `start` of the tensor on.
    ///
    /// # Errors
    /// As [`read`](WeightTensor::read).
    ///
    /// # Panics
    /// When the range ends after the tensor.
    pub fn read_range(&self, start: usize, to: &mut [u8]) -> Result<(), TensorReadError> {
        let info = self.info();
        let fits = start.checked_add(to.len()).is_some_and(|end| end <= self.bytes());
        assert!(fits, "{} bytes from {start} of {info:?}", to.len());
        let Some(Slices { start: first, len, step, times, .. }) = self.slices else {
            return self.read_at(start, to);
        };
        let mut done = 0;
        while done < to.len() {
            let (step_at, within) = ((start + done) / len, (start + done) % len);
            let end = to.len().min(done + len - within);
            match within == 0 && step_at % times > 0 && done >= len && end - done == len {
                true => to.copy_within(done - len..done, done),
                false => {
                    self.read_at(first + step_at / times * step + within, &mut to[done..end])?
                }
            }
            done = end;
        }
        Ok(())
    }

    /// Fills `to` from byte `start` of the whole tensor on.
    fn read_at(&self, start: usize, to: &mut [u8]) -> Result<(), TensorReadError> {
        let info = self.info();
        let file = &self.file.files[info.part()];
        file.read((info.range().start + start) as u64, to).map_err(|fault| self.failed(fault))
    }

    /// Checks that the file is still the one that was opened.
    pub fn check_unchanged(&self) -> Result<(), TensorReadError> {
        let file = &self.file.files[self.info().part()];
        file.check_unchanged().map_err(|fault| self.failed(fault))
    }

    fn failed(&self, fault: ReadFault) -> TensorReadError {
        let TensorInfo { name, .. } = self.info();
        let path = self.file.paths[self.info().part()].clone();
        TensorReadError { tensor: name.clone(), path, fault: Arc::new(fault) }
    }
}

impl fmt::Debug for WeightTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info().fmt(f)
    }
}

impl WeightFile {
    /// Checks that the open files have the sizes and modification times that they were opened with.
    ///
    /// # Errors
    /// [`ChangedError`] names the file that has changed.
    pub fn check_unchanged(&self) -> Result<(), ChangedError> {
        for (file, path) in self.0.files.iter().zip(&self.0.paths) {
            file.check_unchanged().map_err(|fault| ChangedError { path: path.clone(), fault })?;
        }
        Ok(())
    }

    /// Text that tells these weights from others: stamps of the files, and checksums of their headers and of
    /// sample blocks of their data. `None` if a file cannot be read.
    pub fn identity(&self) -> Option<String> {
        let parts = self.stamps().zip(self.samples()).map(|(stamp, samples)| {
            let (head, data) = samples?;
            Some(format!("{stamp}, {head:08x} {data:08x}\n"))
        });
        parts.collect()
    }

    /// For each file, CRC-32 of the header, and of sample blocks of the tensor data; `None` if it
    /// cannot be read.
    pub(crate) fn samples(&self) -> impl Iterator<Item = Option<(u32, u32)>> {
        let parts = self.0.files.iter().zip(&self.0.headers).enumerate();
        parts.map(|(part, (file, header))| {
            let tensors = self.0.tensors.iter().filter(|info| info.part() == part);
            let end = usize::try_from(file.bytes_total()).ok()?;
            let start = tensors.map(|info| info.range().start).min().unwrap_or(end).min(end);
            let mut blocks = crc32fast::Hasher::new();
            for range in super::stamp::samples(start, end) {
                blocks.update(&read(file, range)?);
            }
            Some((crc32fast::hash(header), blocks.finalize()))
        })
    }
}

fn read(file: &super::DataFile, range: Range<usize>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; range.len()];
    file.read(range.start as u64, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::GgufWriter;

    #[test]
    fn slices_are_read_from_any_byte_on() {
        let values: Vec<u8> = (0..48).collect();
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let mut writer = GgufWriter::new();
        writer.meta("general.architecture", "x").tensor("x", &[1, 12], DType::F32, values.clone());
        writer.write_to(&mut file).expect("written");
        let tensor = WeightFile::open(file.path()).expect("a weight file").tensor("x");
        let tensor = tensor.expect("a tensor");
        let of = |steps: Range<usize>, times: usize| -> Vec<u8> {
            steps.step_by(8).flat_map(|at| values[at..at + 4].repeat(times)).collect()
        };
        for (slices, want) in [
            (Slices::range(4..16), values[4..16].to_vec()),
            (Slices::stepped(8..40, 4, 8), of(8..40, 1)),
            (Slices { times: 3, ..Slices::stepped(8..40, 4, 8) }, of(8..40, 3)),
            (Slices::repeated(0..8, 8, 5), values[..8].repeat(5)),
        ] {
            let part = tensor.clone().sliced(slices);
            assert_eq!(part.read().expect("read"), want, "{slices:?}");
            for start in 0..want.len() {
                for end in start..=want.len() {
                    let mut bytes = vec![0; end - start];
                    part.read_range(start, &mut bytes).expect("read");
                    assert_eq!(bytes, want[start..end], "{slices:?}, {start} to {end}");
                }
            }
        }
    }
}
