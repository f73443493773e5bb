//! Writes files of zeros.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use super::{GgufWriter, WriteError};

impl GgufWriter {
    /// Writes a file in which the values of all tensors are zeros. File systems with sparse files store only what precedes
    /// the data, however large they are, and tensors whose format has another block of zeros than zero bytes
    /// ([`DType::zero_block`](crate::formats::DType::zero_block)). Data that tensors have are ignored.
    ///
    /// # Errors
    /// [`WriteError`]: a tensor's shape does not fit its format, the alignment is invalid, or the file cannot be written.
    pub fn write_zeros(&self, file: &mut File) -> Result<(), WriteError> {
        let alignment = self.alignment()?;
        let head = self.head(alignment)?;
        file.write_all(&head)?;
        let mut len = head.len().next_multiple_of(alignment);
        for tensor in &self.tensors {
            let bytes = tensor.expected()?;
            if let Some(block) = tensor.dtype.zero_block() {
                file.seek(SeekFrom::Start(len as u64))?;
                repeat(file, block, bytes / block.len())?;
            }
            len = (len + bytes).next_multiple_of(alignment);
        }
        file.set_len(len as u64)?;
        Ok(())
    }
}

fn repeat(file: &mut File, block: &[u8], times: usize) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, file);
    for _ in 0..times {
        out.write_all(block)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use crate::formats::{Block, DType};
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

    #[test]
    fn no_format_has_subnormal_scales_in_a_file_of_zeros() {
        let mut writer = GgufWriter::new();
        for dtype in DType::ALL {
            writer.tensor_later(&dtype.to_string(), &[dtype.block_len(), 3], dtype);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeros.gguf");
        writer.write_zeros(&mut std::fs::File::create(&path).unwrap()).unwrap();
        let opened = WeightFile::open(&path).unwrap();
        for dtype in DType::ALL {
            let stored = opened.tensor(&dtype.to_string()).unwrap().read().unwrap();
            assert_eq!(stored.len(), 3 * dtype.block_bytes(), "{dtype}");
            for stored in stored.chunks(dtype.block_bytes()) {
                let mut values = vec![f32::NAN; dtype.block_len()];
                dtype.dequantize_row(stored, &mut values);
                assert!(values.iter().all(|value| *value == 0.0), "{dtype}");
                let Some(format) = dtype.quantised() else { continue };
                let mut block = Block::default();
                (format.unpack)(stored, &mut block);
                assert!(!block.scale.iter().any(|scale| scale.is_subnormal()), "{dtype}");
            }
        }
    }
}
