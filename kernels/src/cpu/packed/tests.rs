//! Packed values are the stored ones.

use super::{Group, Packed, Scales};
use crate::cpu::tile::TILE;
use crate::cpu::{Cpu, Isa, Matrix, unpack};
use crate::quant::DType;
use crate::reference;

/// Values of one feature, as [`Group`] reads them, or as the floats are stored.
fn unpacked(packed: &Packed, row: usize) -> Vec<f32> {
    let (tile, lane, layout) = (packed.tile(row / TILE), row % TILE, packed.layout());
    if layout.kind == Scales::None {
        let bytes = layout.dtype.block_bytes();
        let stored = tile.values.chunks_exact(bytes).skip(lane).step_by(TILE);
        return stored.flat_map(|stored| reference::dequantize(layout.dtype, stored)).collect();
    }
    let offset = unpack::offset(layout.dtype) as f32;
    let mut group = Group::new();
    let mut values = Vec::new();
    for g in 0..layout.groups() {
        group.read(&tile, g);
        for col in 0..32 {
            let q = f32::from(group.q[col / 4][lane * 4 + col % 4]);
            let half = if layout.kind == Scales::Halves { col / 16 } else { 0 };
            values.push(group.scale[half][lane] * (q - offset) + group.min[lane]);
        }
    }
    values
}

#[test]
fn packing_changes_a_value() {
    for isa in Isa::available() {
        let cpu = Cpu::new(2, isa);
        for dtype in DType::ALL {
            for (rows, blocks) in [(1, 1), (15, 3), (16, 2), (17, 1), (33, 3)] {
                let cols =
                    if dtype.block_len() == 1 { blocks * 67 } else { blocks * dtype.block_len() };
                // All bits occur, in scales and minimums too; no scale is infinite or no number.
                let mut state = 1u32;
                let mut bytes: Vec<u8> = (0..rows * dtype.row_bytes(cols).unwrap())
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (state >> 24) as u8
                    })
                    .collect();
                let halves: &[usize] = match dtype {
                    DType::F32 | DType::F16 | DType::Bf16 => &[0],
                    DType::Q4_0 | DType::Q5_0 | DType::Q8_0 => &[0],
                    DType::Q6K => &[208],
                    _ => &[0, 2],
                };
                for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
                    halves.iter().for_each(|at| block[at + 1] &= 0xbb);
                    if dtype == DType::F32 {
                        block[3] &= 0xbb;
                    }
                }
                let matrix = Matrix::new(dtype, rows, cols, &bytes).unwrap();
                let packed = Packed::new(&cpu, &matrix).unwrap();
                assert_eq!(packed.tiles(), rows.div_ceil(16));
                let what = format!("{} {dtype} {rows} × {cols}", isa.name());
                for row in 0..rows {
                    let want = reference::dequantize(dtype, matrix.row(row));
                    assert_eq!(unpacked(&packed, row), want, "{what}: row {row}");
                }
                for row in rows..packed.tiles() * TILE {
                    let zero = unpacked(&packed, row).iter().all(|v| *v == 0.0);
                    assert!(zero, "{what}: row {row} is not there");
                }
            }
        }
    }
}

#[test]
fn packed_weights_take_much_more_memory_than_stored_ones() {
    let cpu = Cpu::new(1, Isa::best());
    for dtype in DType::ALL {
        let stored = vec![0; 64 * dtype.row_bytes(768).unwrap()];
        let packed = Packed::new(&cpu, &Matrix::new(dtype, 64, 768, &stored).unwrap()).unwrap();
        let more = packed.bytes() as f64 / stored.len() as f64;
        assert!((1.0..1.03).contains(&more), "{dtype}: {more}");
    }
}
