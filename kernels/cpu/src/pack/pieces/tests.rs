//! Pieces add up to what is packed at once.

use super::*;
use crate::isa::Isa;
use crate::matrix::Matrix;
use crate::pack::matrix::pack_all;
use lapwing_model::formats::DType;
use lapwing_model::requant::Requant;

/// Values of some tiles: less than a chunk, exactly a few, and more than a buffer.
const ROWS: [usize; 5] = [3, 256, 1, 4000, 700];
const COLS: usize = 1024;

fn stored(rows: usize) -> Vec<u8> {
    let value = |i: usize| (i * 31 % 251) as f32 / 64.0 - 1.0;
    (0..rows * COLS).flat_map(|i| value(i + rows).to_le_bytes()).collect()
}

fn sources(stored: &[Vec<u8>]) -> Vec<Source<'_>> {
    let requants = [None, None, Some(Requant::Q8_0), None, Some(Requant::Q4_0)];
    let all = stored.iter().zip(ROWS).zip(requants).map(|((bytes, rows), requant)| {
        Source::memory(Matrix::new(DType::F32, rows, COLS, bytes).unwrap(), requant)
    });
    all.collect()
}

#[test]
fn pieces_are_whole_chunks_and_add_up_to_what_is_packed_at_once() {
    let stored = ROWS.map(stored);
    let sources = sources(&stored);
    for threads in [1, 3] {
        let cpu = Cpu::new(threads, Isa::best());
        let want = pack_all(&cpu, &sources).unwrap();
        for least in [0, 2 * CHUNK + 77, usize::MAX] {
            let buffer = buffer(&sources, least).unwrap();
            let (room, mut pieces) = (buffer.len(), Vec::new());
            // What the buffer has had before must not matter.
            let buffer = vec![0xa5; room];
            let kept = pack_through(&cpu, &sources, buffer, |piece| {
                pieces.push(piece.to_vec());
                Ok::<(), ()>(())
            });
            assert!(kept.is_ok() && pieces.concat() == want.bytes(), "{threads} {least}");
            let (_, before) = pieces.split_last().unwrap();
            assert!(before.iter().all(|piece| piece.len().is_multiple_of(CHUNK)));
            assert!(room >= pieces.iter().map(Vec::len).max().unwrap());
            let expected = if least == usize::MAX { want.len() } else { least.max(CHUNK + 65_536) };
            assert_eq!(room, expected, "tiles of f32 have 64 KiB");
        }
    }
}

#[test]
fn the_first_error_ends_packing_and_names_its_matrix() {
    let mut stored = ROWS.map(stored);
    let cpu = Cpu::new(2, Isa::best());
    let mut calls = 0;
    let kept = pack_through(&cpu, &sources(&stored), vec![0; 2 * CHUNK], |_| {
        calls += 1;
        if calls == 2 { Err("full") } else { Ok(()) }
    });
    assert!(matches!(kept, Err(PieceError::Keep("full"))) && calls == 2);
    stored[4][(555 * COLS + 3) * 4..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    let kept = pack_through(&cpu, &sources(&stored), vec![0; 2 * CHUNK], |_| Ok::<(), ()>(()));
    let Err(PieceError::Pack(error)) = kept else { panic!("it is packed") };
    assert!(matches!(error, PackError::NotFinite { matrix: 4, row: 555, .. }), "{error}");
}
