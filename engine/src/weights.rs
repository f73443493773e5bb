//! Weight files: GGUF, read field by field. An engine opens its own; a program uses these types to read
//! the metadata of a file, for example for a [`Tokenizer`](crate::tokenizer::Tokenizer) without a model.
//!
//! ```no_run
//! use lapwing::tokenizer::Tokenizer;
//! use lapwing::weights::WeightFile;
//!
//! let file = WeightFile::open("model.gguf".as_ref())?;
//! let tokenizer = Tokenizer::from_metadata(file.metadata())?;
//! # Ok::<(), lapwing::Error>(())
//! ```

pub use lapwing_kernels::cpu::{
    BeyondMemory, CacheReadError, CacheWriteError, MustMap, NotMapped, PackCache, PackReport,
    PackedMemory, PackedUse,
};
pub use lapwing_kernels::weights::{
    Array, Gguf, Metadata, NoLease, Shape, TensorInfo, Text, Value, ValueKind, WeightFile,
    WeightTensor,
};
