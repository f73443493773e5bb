//! Weight files: GGUF, read by position; every field is checked before it is used.

mod bytes;
mod cursor;
mod data;
mod data_file;
mod error;
mod gguf;
mod header;
mod lease;
mod leased_file;
pub mod legacy;
mod metadata;
mod skim;
mod split;
mod split_fault;
mod stamp;
mod start;
mod tensor;
mod value;
mod write;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use data::Slices;
pub use data::{ChangedError, TensorReadError, WeightTensor};
pub use data_file::{DataFile, ReadFault};
pub use error::{Fault, WeightError};
pub use gguf::{Gguf, parse, parse_header};
pub use leased_file::{LeasedFile, NoLease, Unleased, can_lease};
pub use metadata::{Metadata, MetadataError};
pub use split_fault::SplitFault;
pub use start::{HeaderStart, parse_start};
pub use tensor::{Shape, TensorInfo};
pub use value::{Array, Text, Value, ValueKind};
pub use write::{GgufWriter, MetaValue, WriteError};

pub(crate) use bytes::Bytes;
pub use stamp::Stamp;

/// An open model: one file, or all parts of a split model. Clones share it.
#[derive(Clone)]
pub struct WeightFile(Arc<Inner>);

struct Inner {
    paths: Vec<PathBuf>,
    /// Each part, open.
    files: Vec<DataFile>,
    /// Header, metadata and tensor table of each part.
    headers: Vec<Bytes>,
    metadata: Metadata,
    /// In file order.
    tensors: Vec<TensorInfo>,
    /// Index of a tensor, by name.
    by_name: HashMap<String, usize>,
    /// What devices keep with the open file, by its type.
    kept: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl WeightFile {
    /// Opens a GGUF file and, if it is part of a split model (`NAME-00001-of-0000N.gguf`), all
    /// other parts. Reads the header, metadata and tensor table; tensor data are read on demand.
    /// If a file is changed while it is open, reading it fails with an error; a file that takes its
    /// place under the same name has no effect.
    ///
    /// # Errors
    /// [`WeightError`] names the file, the invalid field and its byte offset.
    pub fn open(path: &Path) -> Result<WeightFile, WeightError> {
        let mut inner = Inner::empty();
        for (i, part) in split::open_all(path, gguf::read)?.into_iter().enumerate() {
            // The first part of a split model has the metadata of the whole model.
            if i == 0 {
                inner.metadata = part.gguf.metadata;
            }
            inner.paths.push(part.path);
            inner.files.push(part.file);
            inner.headers.push(part.header);
            for info in part.gguf.tensors {
                inner.add(info, i)?;
            }
        }
        Ok(WeightFile(Arc::new(inner)))
    }

    /// Reads metadata and tensor tables of a file, or of all parts of a split model, whose tensors
    /// are concatenated. The tensor data may be missing; see [`parse_header`].
    ///
    /// # Errors
    /// As [`open`](WeightFile::open), except that truncated tensor data is accepted.
    pub fn header(path: &Path) -> Result<Gguf, WeightError> {
        let mut inner = Inner::empty();
        let (mut version, mut alignment) = (0, 0);
        for (i, part) in split::open_all(path, gguf::read_header)?.into_iter().enumerate() {
            // The first part of a split model has the metadata of the whole model.
            if i == 0 {
                inner.metadata = part.gguf.metadata;
                (version, alignment) = (part.gguf.version, part.gguf.alignment);
            }
            inner.paths.push(part.path);
            for info in part.gguf.tensors {
                inner.add(info, i)?;
            }
        }
        let Inner { metadata, tensors, .. } = inner;
        Ok(Gguf { version, metadata, tensors, alignment })
    }

    /// Metadata: key-value pairs.
    pub fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }

    /// Tensors in file order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.0.tensors.iter()
    }

    /// The tensor of that name, if there is one.
    pub fn tensor(&self, name: &str) -> Option<WeightTensor> {
        let index = *self.0.by_name.get(name)?;
        Some(WeightTensor { file: Arc::clone(&self.0), index, slices: None })
    }

    /// What devices of one kind keep with the open file, such as weights in a layout of theirs. All clones of the file share
    /// it; the first call makes its default.
    pub fn kept<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let of_type = kept.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        Arc::clone(of_type).downcast().expect("the key is the type of the value")
    }

    /// File-system stamps of the files when they were opened, in part order.
    pub fn stamps(&self) -> impl Iterator<Item = Stamp> {
        self.0.files.iter().map(DataFile::stamp)
    }

    /// Whether the files still have the stamps that they had when they were opened.
    pub fn is_unchanged(&self) -> bool {
        let now = self.0.paths.iter().map(|path| Stamp::of_path(path).ok());
        self.stamps().zip(now).all(|(then, now)| Some(then) == now)
    }

    /// Paths of the files, in part order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.0.paths
    }

    /// Total size of all files, in bytes.
    pub fn bytes_total(&self) -> u64 {
        self.0.files.iter().map(DataFile::bytes_total).sum()
    }
}

impl Inner {
    fn empty() -> Inner {
        Inner {
            paths: Vec::new(),
            files: Vec::new(),
            headers: Vec::new(),
            metadata: Metadata::new(Vec::new()),
            tensors: Vec::new(),
            by_name: HashMap::new(),
            kept: Mutex::default(),
        }
    }

    fn add(&mut self, mut info: TensorInfo, part: usize) -> Result<(), WeightError> {
        info.set_part(part);
        if let Some(first) = self.by_name.insert(info.name.clone(), self.tensors.len()) {
            let first = self.paths[self.tensors[first].part()].clone();
            let second = self.paths[part].clone();
            return Err(SplitFault::DuplicateTensor { tensor: info.name, first, second }.into());
        }
        self.tensors.push(info);
        Ok(())
    }
}

impl fmt::Debug for WeightFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeightFile")
            .field("paths", &self.0.paths)
            .field("tensors", &self.0.tensors.len())
            .finish_non_exhaustive()
    }
}
