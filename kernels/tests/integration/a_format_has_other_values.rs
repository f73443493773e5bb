//! Stored blocks have the values that the package gguf gives them.

use lapwing_kernels::cpu::{Cpu, Isa, Matrix, PackedMatrix};
use lapwing_kernels::formats::DType;
use lapwing_kernels::reference;
use serde_json::Value;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |two| u8::from_str_radix(std::str::from_utf8(two).expect("ASCII"), 16).expect("hex");
    digits.map(byte).collect()
}

#[test]
fn blocks_of_every_format_have_the_values_that_gguf_gives_them() {
    let text = include_str!("../../../tests/reference/formats.json");
    let rows: Value = serde_json::from_str(text).expect("JSON");
    let cpu = Cpu::new(1, Isa::best());
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.block_len() > 1) {
        let row = &rows[dtype.to_string()];
        let stored = bytes(row["bytes"].as_str().expect("hex"));
        let wanted = row["values"].as_array().expect("values").iter();
        let wanted: Vec<f64> = wanted.map(|value| value.as_f64().expect("a number")).collect();
        assert_eq!(reference::dequantize(dtype, &stored).len(), wanted.len(), "{dtype}");
        // As a row of a table, from which the CPU dequantises.
        let matrix = Matrix::new(dtype, 1, wanted.len(), &stored).expect("a matrix");
        let packed = PackedMatrix::new(&cpu, &matrix).expect("packed");
        let mut row = vec![0.0; wanted.len()];
        packed.row(0, &mut row);
        for values in [reference::dequantize(dtype, &stored), row] {
            for (at, (found, wanted)) in values.iter().zip(&wanted).enumerate() {
                // Scales times integers are rounded in another order.
                let error = 3e-6 * wanted.abs() + f64::from(f32::MIN_POSITIVE) * 1e-6;
                assert!(
                    (f64::from(*found) - wanted).abs() <= error,
                    "{dtype} {at}: {found}, {wanted}"
                );
            }
        }
    }
}
