//! Tensor table: name, shape, format and data range of every tensor.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use super::cursor::{Cursor, bad};
use super::error::{Fault, WeightError};
use crate::formats::DType;

/// Maximum tensor name length, in bytes. The specification has 64, some writers exceed it.
pub(super) const NAME_MAX: u64 = 256;

/// Dimensions of a tensor, fastest-varying first, as in GGUF.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [usize; 4],
    rank: u8,
}

#[expect(clippy::len_without_is_empty, reason = "no dimension is zero, so no shape is empty")]
impl Shape {
    /// A shape of 1 to 4 non-zero dimensions whose product fits in `usize`; otherwise `None`.
    pub fn new(dims: &[usize]) -> Option<Shape> {
        if dims.is_empty() || dims.len() > 4 || dims.contains(&0) {
            return None;
        }
        dims.iter().try_fold(1usize, |product, dim| product.checked_mul(*dim))?;
        let mut all = [1; 4];
        all[..dims.len()].copy_from_slice(dims);
        Some(Shape { dims: all, rank: dims.len() as u8 })
    }

    /// Dimensions; `dims()[0]` is the number of columns.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank.into()]
    }

    /// Values per row.
    pub fn cols(&self) -> usize {
        self.dims[0]
    }

    /// Rows: product of all dimensions but the first.
    pub fn rows(&self) -> usize {
        self.dims[1..].iter().product()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

/// Entry of the tensor table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, unique in the file.
    pub name: String,
    /// Dimensions.
    pub shape: Shape,
    /// Storage format.
    pub dtype: DType,
    /// Size of the data in bytes.
    pub bytes: usize,
    /// Offset of the data, from the start of the data section; after [`place`], from the start of
    /// the file.
    start: usize,
    /// Index of the part that contains the data.
    part: usize,
}

impl TensorInfo {
    /// Byte range of the data in its file.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.bytes
    }

    /// Index, into the paths of the weight file, of the file that contains the data.
    pub fn part(&self) -> usize {
        self.part
    }

    pub(super) fn set_part(&mut self, part: usize) {
        self.part = part;
    }
}

/// An entry of the table, with the byte offset of its offset field for errors.
pub(super) struct Entry {
    info: TensorInfo,
    offset_at: usize,
}

/// Reads the table; offsets are checked by [`place`].
pub(super) fn read_table(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<Entry>, WeightError> {
    let mut entries = Vec::new();
    let mut names: HashMap<&str, u64> = HashMap::new();
    for index in 0..count {
        let name_at = cursor.at();
        let name = cursor.name(format_args!("tensor {index}: name"), NAME_MAX)?;
        if let Some(first) = names.insert(name, index) {
            let fault = Fault::Duplicate { first };
            return Err(bad(format_args!("tensor {index} '{name}': name"), name_at, fault));
        }
        entries.push(read_entry(cursor, index, name)?);
    }
    Ok(entries)
}

fn read_entry(cursor: &mut Cursor<'_>, index: u64, name: &str) -> Result<Entry, WeightError> {
    let dims_at = cursor.at();
    let rank = cursor.u32(format_args!("tensor {index} '{name}': number of dimensions"))?;
    if !(1..=4).contains(&rank) {
        let fault = Fault::Unknown { found: rank.into(), expected: "between 1 and 4" };
        return Err(bad(
            format_args!("tensor {index} '{name}': number of dimensions"),
            dims_at,
            fault,
        ));
    }
    let mut dims = [1; 4];
    for (d, dim) in dims.iter_mut().enumerate().take(rank as usize) {
        let field = format_args!("tensor {index} '{name}': dimension {d}");
        let at = cursor.at();
        *dim = match usize::try_from(cursor.u64(field)?) {
            Ok(0) => return Err(bad(field, at, Fault::Zero)),
            Ok(dim) => dim,
            Err(_) => return Err(bad(field, at, Fault::Overflow("it"))),
        };
    }
    let Some(shape) = Shape::new(&dims[..rank as usize]) else {
        let fault = Fault::Overflow("the number of values");
        return Err(bad(format_args!("tensor {index} '{name}': dimensions"), dims_at, fault));
    };
    let type_at = cursor.at();
    let id = cursor.u32(format_args!("tensor {index} '{name}': type"))?;
    let Some(dtype) = DType::from_gguf(id) else {
        let (tensor, offset) = (name.to_owned(), type_at as u64);
        return Err(WeightError::UnsupportedType { tensor, index, offset, id });
    };
    if !shape.cols().is_multiple_of(dtype.block_len()) {
        let fault = Fault::PartialBlock { cols: shape.cols() as u64, dtype };
        return Err(bad(format_args!("tensor {index} '{name}': dimension 0"), dims_at + 4, fault));
    }
    let Some(bytes) = dtype.row_bytes(shape.cols()).and_then(|row| row.checked_mul(shape.rows()))
    else {
        let fault = Fault::Overflow("the number of bytes");
        return Err(bad(format_args!("tensor {index} '{name}': dimensions"), dims_at, fault));
    };
    let offset_at = cursor.at();
    let field = format_args!("tensor {index} '{name}': data offset");
    let start = usize::try_from(cursor.u64(field)?)
        .map_err(|_| bad(field, offset_at, Fault::Overflow("it")))?;
    let info = TensorInfo { name: name.to_owned(), shape, dtype, bytes, start, part: 0 };
    Ok(Entry { info, offset_at })
}

/// Bounds of the data section.
pub(super) struct DataSection {
    /// Byte offset of its start.
    pub(super) start: u64,
    /// Alignment of the tensors in it, in bytes.
    pub(super) alignment: u64,
    /// Length of the file, in bytes.
    pub(super) file_bytes: u64,
}

/// Checks that the data of every tensor is inside the file, aligned, and disjoint from that of all
/// others, and makes the offsets relative to the start of the file.
pub(super) fn place(
    mut entries: Vec<Entry>,
    data: &DataSection,
) -> Result<Vec<TensorInfo>, WeightError> {
    for (index, entry) in entries.iter_mut().enumerate() {
        let info = &mut entry.info;
        let found = info.start as u64;
        let name = &info.name;
        let field = format_args!("tensor {index} '{name}': data offset");
        if !found.is_multiple_of(data.alignment) {
            let fault = Fault::Misaligned { found, alignment: data.alignment };
            return Err(bad(field, entry.offset_at, fault));
        }
        let start = data.start.checked_add(found);
        let end = start.and_then(|start| start.checked_add(info.bytes as u64));
        let Some((start, _)) = start.zip(end.filter(|end| *end <= data.file_bytes)) else {
            let left = data.file_bytes.saturating_sub(start.unwrap_or(u64::MAX));
            let what = format!("{} tensor of {} bytes at offset {found}", info.dtype, info.bytes);
            return Err(bad(field, entry.offset_at, Fault::PastEnd { what, left }));
        };
        // `start` is at most the length of a slice, so it fits.
        info.start = start as usize;
    }
    check_disjoint(&entries)?;
    Ok(entries.into_iter().map(|entry| entry.info).collect())
}

fn check_disjoint(entries: &[Entry]) -> Result<(), WeightError> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_unstable_by_key(|i| (entries[*i].info.start, *i));
    for pair in order.windows(2) {
        let (before, entry) = (&entries[pair[0]].info, &entries[pair[1]]);
        if before.range().end > entry.info.start {
            let (index, name) = (pair[1], &entry.info.name);
            let fault = Fault::Overlap { other: before.name.clone() };
            let field = format_args!("tensor {index} '{name}': data offset");
            return Err(bad(field, entry.offset_at, fault));
        }
    }
    Ok(())
}
