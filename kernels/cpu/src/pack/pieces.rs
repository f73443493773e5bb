//! Packs matrices through a buffer, a piece at a time, so that they need no more memory than that.

use super::error::PackError;
use super::source::Source;
use super::tiles::pack;
use crate::context::Cpu;
use crate::packed::file_data::CHUNK;
use crate::packed::layout::Layout;
use std::io;

/// Bytes of the buffer, unless a chunk and a tile have more: enough to occupy all threads, and little for any machine that runs a
/// model.
pub(super) const BUFFER_BYTES: usize = 32 << 20;

/// Why matrices are not packed piece by piece.
pub(super) enum PieceError<E> {
    /// They cannot be packed.
    Pack(PackError),
    /// Their bytes cannot be kept.
    Keep(E),
}

/// Packs matrices one after another, and has `keep` take their bytes in order: whole chunks of [`CHUNK`] each time, except for
/// the last.
pub(super) fn pack_pieces<E>(
    ctx: &Cpu,
    sources: &[Source<'_>],
    keep: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), PieceError<E>> {
    let buffer = buffer(sources, BUFFER_BYTES).map_err(PieceError::Pack)?;
    pack_through(ctx, sources, buffer, keep)
}

fn pack_through<E>(
    ctx: &Cpu,
    sources: &[Source<'_>],
    mut buffer: Vec<u8>,
    mut keep: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), PieceError<E>> {
    let mut filled = 0;
    for (i, source) in sources.iter().enumerate() {
        let tile = source.layout().tile;
        let mut left = Layout::tiles(source.rows());
        while !left.is_empty() {
            let room = (buffer.len() - filled) / tile;
            if room == 0 {
                let whole = filled / CHUNK * CHUNK;
                keep(&buffer[..whole]).map_err(PieceError::Keep)?;
                buffer.copy_within(whole..filled, 0);
                filled -= whole;
                continue;
            }
            let some = left.start..left.end.min(left.start + room);
            let to = &mut buffer[filled..][..some.len() * tile];
            to.fill(0);
            let packed = pack(ctx, source, some.clone(), to);
            packed.map_err(|error| PieceError::Pack(error.of(i)))?;
            (left.start, filled) = (some.end, filled + some.len() * tile);
        }
    }
    keep(&buffer[..filled]).map_err(PieceError::Keep)
}

/// A buffer of `least` bytes, or as many as all matrices have, in which a tile always fits behind what is left of a chunk.
fn buffer(sources: &[Source<'_>], least: usize) -> Result<Vec<u8>, PackError> {
    let size = |source: &Source<'_>| source.layout().bytes(source.rows());
    let all = sources.iter().map(size).fold(0, usize::saturating_add);
    let tile = sources.iter().map(|source| source.layout().tile).max().unwrap_or(0);
    let bytes = least.max(CHUNK + tile).min(all);
    let mut buffer = Vec::new();
    let failed = |_| PackError::Memory { bytes, source: io::ErrorKind::OutOfMemory.into() };
    buffer.try_reserve_exact(bytes).map_err(failed)?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

#[cfg(test)]
mod tests;
