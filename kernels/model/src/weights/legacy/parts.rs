//! Models in several parts: `NAME`, `NAME.1`, `NAME.2`, …
//!
//! Each part has the header and the vocabulary of the whole model, and a piece of each matrix. Source: the
//! reader of llama.cpp, March 2023.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::error::LegacyError;
use super::names::Cut;
use super::source::Source;
use super::{LegacyFile, LegacyTensor, read};
use crate::weights::tensor::Shape;
use crate::weights::{DataFile, WeightError};

/// Opens a file, and all other parts of its model.
pub(super) fn open(path: &Path) -> Result<LegacyFile, LegacyError> {
    let given = open_one(path)?;
    let parts = parts_of(&given);
    if parts == 1 {
        return merge(vec![given]).map_err(|(_, error)| error.in_file(path));
    }
    let paths = paths(path);
    let mut files = Vec::new();
    for (part, path) in paths.take(parts).enumerate() {
        if !path.exists() {
            return Err(LegacyError::MissingPart { part: part + 1, parts, path });
        }
        files.push((open_one(&path)?, path));
    }
    let (files, paths): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    merge(files).map_err(|(part, error)| error.in_file(&paths[part]))
}

fn open_one(path: &Path) -> Result<LegacyFile, LegacyError> {
    let file = DataFile::open(path)
        .map_err(|source| WeightError::Open { path: path.to_owned(), source })?;
    read::file(Source::File(file)).map_err(|error| error.in_file(path))
}

/// The paths of all parts, given that of any.
fn paths(any: &Path) -> impl Iterator<Item = PathBuf> {
    let is_number = |end: &std::ffi::OsStr| {
        end.to_str().is_some_and(|end| end.parse::<u32>().is_ok_and(|n| n.to_string() == end))
    };
    let first = match any.extension().is_some_and(is_number) {
        true => any.with_extension(""),
        false => any.to_owned(),
    };
    (0usize..).map(move |part| {
        let mut name = first.clone().into_os_string();
        if part > 0 {
            name.push(format!(".{part}"));
        }
        PathBuf::from(name)
    })
}

/// Parts of the model of which this file is one; 1 if it is whole, or no llama model.
fn parts_of(file: &LegacyFile) -> usize {
    let embeddings = file.tensors.iter().find(|tensor| tensor.name == "tok_embeddings.weight");
    let (width, cols) = match embeddings {
        Some(tensor) => (file.params.width as usize, tensor.shape.cols()),
        None => return 1,
    };
    if cols < width && width.is_multiple_of(cols) { width / cols } else { 1 }
}

/// Joins the parts of a model, which are read one by one.
///
/// # Errors
/// With the index of the part that is wrong.
pub(super) fn merge(mut parts: Vec<LegacyFile>) -> Result<LegacyFile, (usize, LegacyError)> {
    let count = parts.len();
    let wanted = parts.first().map_or(1, parts_of);
    if count != wanted {
        return Err((0, LegacyError::Parts { found: count, parts: wanted }));
    }
    let mut merged = parts.remove(0);
    if count == 1 {
        return Ok(merged);
    }
    for (i, part) in parts.into_iter().enumerate() {
        add(&mut merged, part).map_err(|what| (i + 1, LegacyError::PartDiffers { what }))?;
    }
    for tensor in &mut merged.tensors {
        let [cols, rows] = [tensor.shape.cols(), tensor.shape.rows()];
        let dims = match tensor.cut {
            Cut::None => continue,
            Cut::Rows => rows.checked_mul(count).map(|rows| [cols, rows]),
            Cut::Columns => cols.checked_mul(count).map(|cols| [cols, rows]),
        };
        tensor.shape = dims.and_then(|dims| Shape::new(&dims)).ok_or_else(|| {
            let (found, name) = (tensor.shape.to_string(), tensor.name.clone());
            let needed = format!("a shape of which {count} fit in memory");
            (0, LegacyError::Shape { tensor: name, found, needed })
        })?;
    }
    Ok(merged)
}

/// Adds a part to those before it; the error says what differs.
fn add(merged: &mut LegacyFile, part: LegacyFile) -> Result<(), String> {
    let LegacyFile { sources, version, params, pieces, tensors } = part;
    if (version, &params) != (merged.version, &merged.params) {
        return Err(format!(
            "{version} and {params:?}, not {} and {:?}",
            merged.version, merged.params
        ));
    }
    let mut pairs = pieces.iter().zip(&merged.pieces);
    if let Some(id) = pairs.position(|(piece, first)| !piece.is_same(first)) {
        return Err(format!("token {id}"));
    }
    let mut found: HashMap<String, LegacyTensor> =
        tensors.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
    for first in &mut merged.tensors {
        let name = &first.name;
        let tensor = found.remove(name).ok_or_else(|| format!("tensor '{name}' is missing"))?;
        if (tensor.shape, tensor.layout) != (first.shape, first.layout) {
            let [own, of_first] =
                [&tensor, first].map(|t| format!("{} in {}", t.shape, t.layout.dtype));
            return Err(format!("tensor '{name}' is {own}, not {of_first}"));
        }
        first.cut = Cut::of(name);
        first.starts.extend(tensor.starts);
    }
    if let Some(name) = found.keys().min() {
        return Err(format!("tensor '{name}' is not in the first part"));
    }
    merged.sources.extend(sources);
    Ok(())
}
