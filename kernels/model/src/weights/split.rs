//! Split models: parts named `NAME-00001-of-0000N.gguf`, each a complete GGUF file.

use std::path::{Path, PathBuf};

use super::bytes::Bytes;
use super::data_file::DataFile;
use super::error::WeightError;
use super::gguf::Gguf;
use super::header::{self, Failure};
use super::metadata::{Metadata, MetadataError};
use super::split_fault::SplitFault;

const NO: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// One file of a split model, or the only file.
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) file: DataFile,
    /// Header, metadata and tensor table.
    pub(super) header: Bytes,
    pub(super) gguf: Gguf,
}

/// Parses the header of a file; arguments are its first bytes and its size in bytes.
pub(super) type Reader = fn(&Bytes, u64) -> Result<Gguf, Failure>;

/// Opens a file and, if it is part of a split model, all other parts; returns them in order.
pub(super) fn open_all(path: &Path, reader: Reader) -> Result<Vec<Part>, WeightError> {
    let file = DataFile::open(path)
        .map_err(|source| WeightError::Open { path: path.to_owned(), source })?;
    let opened = read(path, file, reader)?;
    let parts = number(&opened, COUNT)?.unwrap_or(1);
    if parts <= 1 {
        return Ok(vec![opened]);
    }
    let no = number(&opened, NO)?.unwrap_or(0);
    let prefix = Place { no, parts }.prefix(path).ok_or_else(|| SplitFault::Name {
        path: path.to_owned(),
        no,
        parts,
    })?;
    let mut opened = Some(opened);
    let mut all = Vec::new();
    for i in 0..parts {
        let place = Place { no: i, parts };
        let part = match opened.take_if(|_| i == no) {
            Some(opened) => opened,
            None => place.open(path.with_file_name(place.name(&prefix)), reader)?,
        };
        place.expect(&part, NO, i.into(), "")?;
        place.expect(&part, COUNT, parts.into(), "")?;
        all.push(part);
    }
    let tensors: usize = all.iter().map(|part| part.gguf.tensors.len()).sum();
    for (no, part) in (0..).zip(&all) {
        if !matches!(opt_u64(&part.gguf.metadata, TENSORS), Ok(None)) {
            let why = ", the number of tensors in all parts";
            Place { no, parts }.expect(part, TENSORS, tensors as u64, why)?;
        }
    }
    Ok(all)
}

fn read(path: &Path, file: DataFile, reader: Reader) -> Result<Part, WeightError> {
    let (gguf, header) = header::read(&file, reader).map_err(|e| e.in_file(path))?;
    Ok(Part { path: path.to_owned(), file, header, gguf })
}

/// A metadata value of the split, which the format limits to 16 bits.
fn number(part: &Part, key: &'static str) -> Result<Option<u32>, WeightError> {
    let limit = u16::MAX.into();
    match opt_u64(&part.gguf.metadata, key) {
        Ok(None) => Ok(None),
        Ok(Some(found)) if found <= limit => Ok(Some(found as u32)),
        Ok(Some(found)) => Err(invalid(part, key, found.to_string(), format!("at most {limit}"))),
        Err(e) => Err(invalid(part, key, e.to_string(), "a number".to_owned())),
    }
}

fn invalid(part: &Part, key: &'static str, found: String, expected: String) -> WeightError {
    SplitFault::Number { key, path: part.path.clone(), found, expected }.into()
}

fn opt_u64(metadata: &Metadata, key: &str) -> Result<Option<u64>, MetadataError> {
    metadata.opt_u64(key)
}

/// Which part of a split model a file is.
#[derive(Clone, Copy)]
struct Place {
    /// Index of the part.
    no: u32,
    /// Number of parts.
    parts: u32,
}

impl Place {
    fn open(self, path: PathBuf, reader: Reader) -> Result<Part, WeightError> {
        let Place { no, parts } = self;
        match DataFile::open(&path) {
            Ok(file) => read(&path, file, reader),
            Err(source) => Err(WeightError::MissingPart { path, part: no + 1, parts, source }),
        }
    }

    /// Checks the value of a key of this part. The text explains the expected value.
    fn expect(
        self,
        part: &Part,
        key: &'static str,
        value: u64,
        why: &str,
    ) -> Result<(), WeightError> {
        let found = match opt_u64(&part.gguf.metadata, key) {
            Ok(Some(found)) if found == value => return Ok(()),
            Ok(Some(found)) => found.to_string(),
            Ok(None) => "missing".to_owned(),
            Err(e) => e.to_string(),
        };
        let Place { no, parts } = self;
        let (path, expected) = (part.path.clone(), format!("{value}{why}"));
        Err(SplitFault::Key { part: no + 1, parts, key, path, found, expected }.into())
    }

    /// `NAME` of the path of this part, whose file is `NAME-00001-of-0000N.gguf`.
    fn prefix(self, path: &Path) -> Option<String> {
        let name = path.file_name()?.to_str()?;
        name.strip_suffix(&self.name("")).map(str::to_owned)
    }

    /// The file name of this part, given `NAME`.
    fn name(self, prefix: &str) -> String {
        format!("{prefix}-{:05}-of-{:05}.gguf", self.no + 1, self.parts)
    }
}
