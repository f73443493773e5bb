//! Reads magic, hyper-parameters, vocabulary and tensor headers.

use std::collections::HashSet;

use super::error::LegacyError;
use super::format::{GGJT, GGMF, GGML, Layout, LegacyVersion};
use super::model::LegacyParams;
use super::names::Cut;
use super::source::{Reader, Source};
use super::{LegacyFile, LegacyTensor, vocabulary};
use crate::weights::Fault;
use crate::weights::gguf::TENSORS_MAX;
use crate::weights::tensor::{NAME_MAX, Shape};

/// Reads everything but the tensor data. Of one part of a model, tensors have the shapes of that part.
pub(super) fn file(source: Source) -> Result<LegacyFile, LegacyError> {
    let mut reader = Reader::new(&source);
    let version = version(&mut reader)?;
    let params = params(&mut reader)?;
    let pieces = vocabulary::read(&mut reader, version, params.vocab)?;
    let mut tensors = Vec::new();
    let mut names = HashSet::new();
    while reader.left() > 0 {
        let at = reader.at();
        if tensors.len() as u64 >= TENSORS_MAX {
            let fault = Fault::AboveLimit { found: TENSORS_MAX + 1, limit: TENSORS_MAX };
            return Err(reader.bad(at, format_args!("number of tensors"), fault));
        }
        let tensor = tensor(&mut reader, version, tensors.len())?;
        if !names.insert(tensor.name.clone()) {
            let first = tensors.iter().position(|t: &LegacyTensor| t.name == tensor.name);
            let fault = Fault::Duplicate { first: first.unwrap_or_default() as u64 };
            return Err(reader.bad(at, format_args!("name of tensor '{}'", tensor.name), fault));
        }
        tensors.push(tensor);
    }
    Ok(LegacyFile { sources: vec![source], version, params, pieces, tensors })
}

fn version(reader: &mut Reader<'_>) -> Result<LegacyVersion, LegacyError> {
    let magic = reader.u32(format_args!("magic"))?;
    let (format, known): (_, &[LegacyVersion]) = match magic {
        GGML => return Ok(LegacyVersion::Ggml),
        GGMF => ("GGMF", &[LegacyVersion::Ggmf]),
        GGJT => ("GGJT", &[LegacyVersion::Ggjt1, LegacyVersion::Ggjt2, LegacyVersion::Ggjt3]),
        found => return Err(LegacyError::Magic { found }),
    };
    let found = reader.u32(format_args!("version"))?;
    let index = (found as usize).checked_sub(1);
    index.and_then(|index| known.get(index)).copied().ok_or(LegacyError::Version {
        format,
        found,
        known: if known.len() == 1 { "version 1" } else { "versions 1 to 3" },
    })
}

fn params(reader: &mut Reader<'_>) -> Result<LegacyParams, LegacyError> {
    let mut number = |name: &str| reader.u32(format_args!("hyper-parameter {name}"));
    Ok(LegacyParams {
        vocab: number("n_vocab")?,
        width: number("n_embd")?,
        mult: number("n_mult")?,
        heads: number("n_head")?,
        layers: number("n_layer")?,
        rotary: number("n_rot")?,
        file_type: number("ftype")?,
    })
}

fn tensor(
    reader: &mut Reader<'_>,
    version: LegacyVersion,
    index: usize,
) -> Result<LegacyTensor, LegacyError> {
    let at = reader.at();
    let rank = reader.u32(format_args!("tensor {index}: number of dimensions"))?;
    let name_bytes = reader.u32(format_args!("tensor {index}: name length"))?.into();
    let type_at = reader.at();
    let id = reader.u32(format_args!("tensor {index}: type"))?;
    if !(1..=2).contains(&rank) {
        let fault = Fault::Unknown { found: rank.into(), expected: "1 or 2" };
        return Err(reader.bad(at, format_args!("tensor {index}: number of dimensions"), fault));
    }
    if name_bytes > NAME_MAX {
        let fault = Fault::AboveLimit { found: name_bytes, limit: NAME_MAX };
        return Err(reader.bad(at + 4, format_args!("tensor {index}: name length"), fault));
    }
    let mut dims = [1; 2];
    let dims_at = reader.at();
    for dim in dims.iter_mut().take(rank as usize) {
        *dim = reader.u32(format_args!("tensor {index}: dimension"))? as usize;
    }
    let name_at = reader.at();
    let name = reader.bytes(name_bytes, format_args!("tensor {index}: name"))?;
    let name = String::from_utf8(name)
        .map_err(|_| reader.bad(name_at, format_args!("tensor {index}: name"), Fault::NotUtf8))?;
    let Some(layout) = Layout::of(version, id) else {
        return Err(LegacyError::Type { tensor: name, id, offset: type_at, version });
    };
    let field = format_args!("tensor {index} '{name}': dimensions");
    let Some(shape) = Shape::new(&dims[..rank as usize]) else {
        return Err(reader.bad(dims_at, field, Fault::Zero));
    };
    if !shape.cols().is_multiple_of(layout.dtype.block_len()) {
        let fault = Fault::PartialBlock { cols: shape.cols() as u64, dtype: layout.dtype };
        return Err(reader.bad(dims_at, field, fault));
    }
    let blocks = (shape.len() / layout.dtype.block_len()) as u64;
    let Some(bytes) = blocks.checked_mul(layout.block_bytes() as u64) else {
        return Err(reader.bad(dims_at, field, Fault::Overflow("the number of bytes")));
    };
    let padding = reader.at().next_multiple_of(version.alignment()) - reader.at();
    reader.skip(padding, format_args!("padding of tensor {index} '{name}'"))?;
    let start = reader.skip(bytes, format_args!("data of tensor {index} '{name}'"))?;
    Ok(LegacyTensor { name, shape, layout, cut: Cut::None, starts: vec![start] })
}
