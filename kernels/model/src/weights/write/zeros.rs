//! Writes files of zeros.

use std::fs::File;
use std::io::Write;

use super::{GgufWriter, WriteError};

impl GgufWriter {
    /// Writes a file in which the data of all tensors are zeros. File systems with sparse files store only what precedes
    /// the data, however large they are. Data that tensors have are ignored.
    ///
    /// # Errors
    /// [`WriteError`]: a tensor's shape does not fit its format, the alignment is invalid, or the file cannot be written.
    pub fn write_zeros(&self, file: &mut File) -> Result<(), WriteError> {
        let alignment = self.alignment()?;
        let head = self.head(alignment)?;
        file.write_all(&head)?;
        let mut len = head.len().next_multiple_of(alignment);
        for tensor in &self.tensors {
            len = (len + tensor.expected()?).next_multiple_of(alignment);
        }
        file.set_len(len as u64)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::DType;
    use crate::weights::{GgufWriter, WeightFile};

    #[test]
    fn a_file_of_zeros_has_the_tensors_and_no_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeros.gguf");
        let mut file = std::fs::File::create(&path).unwrap();
        GgufWriter::new()
            .meta("general.architecture", "llama")
            .tensor_later("a", &[256, 1000], DType::Q4K)
            .tensor_later("b", &[3], DType::F32)
            .write_zeros(&mut file)
            .unwrap();
        let opened = WeightFile::open(&path).unwrap();
        assert_eq!(opened.metadata().str("general.architecture").unwrap(), "llama");
        let tensors: Vec<_> = opened.tensors().map(|t| (t.name.as_str(), t.bytes)).collect();
        assert_eq!(tensors, [("a", 144_000), ("b", 12)]);
        assert!(opened.tensor("a").unwrap().read().unwrap().iter().all(|byte| *byte == 0));
        assert_eq!(opened.tensor("b").unwrap().read().unwrap().len(), 12);
    }
}
