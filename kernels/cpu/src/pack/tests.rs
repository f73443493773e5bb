//! Packed values equal the stored ones.

use super::matrix::pack_all;
use super::source::Source;
use super::tiles::READ_BYTES;
use super::{FileMatrix, PackError};
use crate::context::Cpu;
use crate::isa::Isa;
use crate::matrix::Matrix;
use crate::packed::PackedMatrix;
use crate::packed::group::Group;
use crate::packed::layout::{TILE, zero_point};
use lapwing_model::formats::{DType, Scales};
use lapwing_model::reference;
use lapwing_model::requant::Requant;
use lapwing_model::weights::{GgufWriter, WeightFile};

/// Values of one output channel, as [`Group`] unpacks them, or as the floats are stored.
fn unpacked(packed: &PackedMatrix, row: usize) -> Vec<f32> {
    let (tile, lane, layout) = (packed.tile(row / TILE), row % TILE, packed.layout());
    if layout.kind == Scales::None {
        let bytes = layout.dtype.block_bytes();
        let stored = tile.values.chunks_exact(bytes).skip(lane).step_by(TILE);
        return stored.flat_map(|stored| reference::dequantize(layout.dtype, stored)).collect();
    }
    let offset = zero_point(layout.dtype) as f32;
    let mut group = Group::new();
    let mut values = Vec::new();
    for g in 0..layout.groups() {
        group.read(&tile, g);
        for col in 0..32 {
            let q = f32::from(group.q[col / 4][lane * 4 + col % 4]);
            let half = if layout.kind.has_halves() { col / 16 } else { 0 };
            values.push(group.scale[half][lane] * (q - offset) + group.min[half][lane]);
        }
    }
    values
}

#[test]
fn packing_keeps_every_value() {
    for isa in Isa::available() {
        let cpu = Cpu::new(2, isa);
        for dtype in DType::ALL {
            for (rows, blocks) in [(1, 1), (15, 3), (16, 2), (17, 1), (33, 3)] {
                let cols =
                    if dtype.block_len() == 1 { blocks * 67 } else { blocks * dtype.block_len() };
                // All bits occur, in scales and minimums too; no scale is infinite or NaN.
                let mut state = 1u32;
                let mut bytes: Vec<u8> = (0..rows * dtype.row_bytes(cols).unwrap())
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (state >> 24) as u8
                    })
                    .collect();
                for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
                    while reference::dequantize(dtype, block).iter().any(|x| !x.is_finite()) {
                        block.rotate_left(1);
                        block[0] ^= 0x55;
                    }
                }
                let matrix = Matrix::new(dtype, rows, cols, &bytes).unwrap();
                let packed = PackedMatrix::new(&cpu, &matrix).unwrap();
                assert_eq!(packed.tiles(), rows.div_ceil(16));
                let what = format!("{} {dtype} {rows} × {cols}", isa.name());
                for row in 0..rows {
                    let want = reference::dequantize(dtype, matrix.row(row));
                    assert_eq!(unpacked(&packed, row), want, "{what}: row {row}");
                }
                for row in rows..packed.tiles() * TILE {
                    let zero = unpacked(&packed, row).iter().all(|v| *v == 0.0);
                    assert!(zero, "{what}: row {row} is absent");
                }
            }
        }
    }
}

#[test]
fn packed_weights_are_about_the_stored_size() {
    let cpu = Cpu::new(1, Isa::best());
    for dtype in DType::ALL {
        let stored = vec![0; 64 * dtype.row_bytes(768).unwrap()];
        let packed =
            PackedMatrix::new(&cpu, &Matrix::new(dtype, 64, 768, &stored).unwrap()).unwrap();
        let more = packed.bytes() as f64 / stored.len() as f64;
        // Bits that a value takes more than in a file: factors of fewer than 8 bits become bytes, runs of a grid become codes of
        // their values, digits and signs become 2 bits.
        let bits = 8.0 * dtype.block_bytes() as f64 / dtype.block_len() as f64;
        let widened = match dtype {
            DType::Q3K => 2.0 / 16.0,
            DType::Tq2_0 => 8.0 / 32.0,
            DType::Iq3S | DType::Iq3Xxs => 4.3125 - bits,
            DType::Iq2Xxs | DType::Iq1S => 3.3125 - bits,
            DType::Iq2S | DType::Iq2Xs | DType::Iq1M => 3.5625 - bits,
            DType::Tq1_0 => 2.3125 - bits,
            DType::Q2_0 | DType::Q1_0 => 2.5 - bits,
            _ => 0.0,
        };
        let widened = widened / bits;
        assert!((1.0..1.03 + widened).contains(&more), "{dtype}: {more}");
    }
}

/// Deterministic bytes in which all values occur.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn a_change_of_the_packed_values_raises_their_version() {
    // A change of the packed values must raise their version (`VALUES` in `cache/header.rs`) and
    // update these checksums. Other instruction sets pack the same values, but may leave other
    // bytes in absent channels.
    const OF_VERSION_2: [u32; DType::ALL.len()] = [
        1691637459, 1114157116, 1114157116, 1759422829, 3594175354, 484198769, 3768954763,
        2311357355, 375374439, 1073453869, 1524822819, 1895775808, 2015072513, 1759422829,
        3964348606, 2848881524, 790538815, 1813019299, 2896689668, 720076969, 2255748954,
        2985137427, 1784795258, 3687277912, 2368182160, 1988806560, 4289648666, 2164745179,
    ];
    let generic = Isa::available().into_iter().find(|isa| isa.name() == "generic").unwrap();
    let cpu = Cpu::new(2, generic);
    let sums = DType::ALL.map(|dtype| {
        let stored = noise(35 * dtype.row_bytes(512).unwrap());
        let matrix = Matrix::new(dtype, 35, 512, &stored).unwrap();
        let packed = PackedMatrix::new(&cpu, &matrix).unwrap();
        crc32fast::hash(packed.tile_data())
    });
    assert_eq!(sums, OF_VERSION_2);
}

#[test]
fn a_matrix_read_from_a_file_in_pieces_is_packed_like_one_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Rows of a few bytes, of which many tiles are read at once, and rows of which not one tile is.
    for (rows, cols) in [(5000, 32), (8 * 40 + 7, 1024), (35, 2 * READ_BYTES / TILE)] {
        for dtype in [DType::F32, DType::Q4_1] {
            let stored = finite(dtype, rows, cols);
            let mut writer = GgufWriter::new();
            writer.tensor("other", &[cols, 1], dtype, finite(dtype, 1, cols));
            writer.tensor("matrix", &[cols, rows], dtype, stored.clone());
            let path = folder.path().join("matrix.gguf");
            writer.write_to(&mut std::fs::File::create(&path).unwrap()).unwrap();
            let file = WeightFile::open(&path).unwrap();
            let tensor = file.tensor("matrix").unwrap();
            for requant in [None, Some(Requant::Q4_0)] {
                let matrix = Matrix::new(dtype, rows, cols, &stored).unwrap();
                let memory = Source::memory(matrix, requant);
                let from_file = FileMatrix::new(&tensor, rows, cols).unwrap();
                let from_file = Source::file(from_file, requant);
                let bytes = |threads, source| {
                    let packed = pack_all(&Cpu::new(threads, Isa::best()), &[source, source]);
                    packed.unwrap().bytes().to_vec()
                };
                let want = bytes(2, memory);
                assert!(bytes(1, from_file) == want && bytes(3, from_file) == want);
            }
        }
    }
}

/// Rows of any format whose values are all finite.
fn finite(dtype: DType, rows: usize, cols: usize) -> Vec<u8> {
    let values: Vec<f32> = noise(4 * rows * cols)
        .as_chunks()
        .0
        .iter()
        .map(|bytes: &[u8; 4]| f32::from(i16::from_le_bytes([bytes[0], bytes[1]])) / 4096.0)
        .collect();
    reference::quantize(dtype, &values)
}

#[test]
fn requantised_weights_equal_those_of_a_file_in_that_format() {
    for isa in Isa::available() {
        let cpu = Cpu::new(2, isa);
        let forms = ["q8_0", "q4_1", "q4_0", "int8:row", "int4:row:min", "int4:row"];
        let forms = forms.map(|name| name.parse::<Requant>().unwrap());
        for (dtype, format) in DType::ALL.iter().flat_map(|d| forms.map(|f| (*d, f))) {
            let blocks: &[usize] = if dtype.block_len() == 256 { &[1, 3] } else { &[1, 3, 7] };
            for (rows, blocks) in
                [1, 15, 17, 33].iter().flat_map(|r| blocks.iter().map(|b| (*r, *b)))
            {
                let cols = blocks * dtype.block_len().max(32);
                let stored = finite(dtype, rows, cols);
                let matrix = Matrix::new(dtype, rows, cols, &stored).unwrap();
                let before = format.quantize(&reference::dequantize(dtype, &stored), cols).unwrap();
                let file = Matrix::new(format.dtype(), rows, cols, &before).unwrap();
                let got = PackedMatrix::requantized(&cpu, &matrix, format).unwrap();
                let want = PackedMatrix::new(&cpu, &file).unwrap();
                assert_eq!((got.dtype(), got.bytes()), (want.dtype(), want.bytes()));
                let bytes = |packed: &PackedMatrix| packed.tile_data().to_vec();
                let what = format!("{} {dtype} to {format}, {rows} × {cols}", isa.name());
                assert!(bytes(&got) == bytes(&want), "{what}");
            }
        }
    }
}

/// Enough rows for many tasks.
const ROWS: usize = 2048;

#[test]
fn requantised_weights_of_several_tasks_are_right() {
    let cpu = Cpu::new(2, Isa::best());
    let (rows, cols) = (ROWS + 7, 1024);
    let stored = finite(DType::F32, rows, cols);
    let matrix = Matrix::new(DType::F32, rows, cols, &stored).unwrap();
    let packed = PackedMatrix::requantized(&cpu, &matrix, Requant::Q4_0).unwrap();
    for row in [0, ROWS - 1, ROWS, rows - 1] {
        let values = reference::dequantize(DType::F32, matrix.row(row));
        let want = Requant::Q4_0.quantize(&values, cols).unwrap();
        let want = reference::dequantize(DType::Q4_0, &want);
        assert_eq!(unpacked(&packed, row), want, "row {row}");
    }
}

#[test]
fn the_first_row_that_cannot_be_requantised_is_named() {
    let (rows, cols) = (2 * ROWS + 40, 1024);
    for bad in [f32::NAN, f32::NEG_INFINITY, f32::MAX] {
        for at in [0, 16, ROWS + 3, rows - 1] {
            let mut stored = vec![0; rows * cols * 4];
            for row in [at, rows - 1] {
                stored[(row * cols + 77) * 4..][..4].copy_from_slice(&bad.to_le_bytes());
            }
            let matrix = Matrix::new(DType::F32, rows, cols, &stored).unwrap();
            let cpu = Cpu::new(2, Isa::best());
            let error = PackedMatrix::requantized(&cpu, &matrix, Requant::Q8_0).unwrap_err();
            let PackError::NotFinite { matrix: 0, row, format: Requant::Q8_0 } = error else {
                panic!("{error}")
            };
            assert_eq!(row, at, "{bad}");
        }
    }
}
