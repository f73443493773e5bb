use super::*;
use crate::formats::DType;
use crate::reference::dequantize;
use crate::requant::Group;
use half::f16;

/// The same group by group and value by value, in f64 except for the scale and its inverse, which are
/// f32.
fn naive(format: Requant, row: &[f32]) -> Vec<u8> {
    let half = |x: f32| f16::from_f32(x).to_le_bytes().to_vec();
    let inverse = |d: f32| if d == 0.0 { 0.0 } else { 1.0 / d };
    let group = match format.group() {
        Group::Columns(columns) => columns as usize,
        Group::Row => row.len(),
    };
    let mut bytes = Vec::new();
    for values in row.chunks(group) {
        let mut extreme = 0.0f32;
        for x in values {
            if x.abs() > extreme.abs() {
                extreme = *x;
            }
        }
        let min = values.iter().copied().fold(f32::INFINITY, f32::min);
        let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let (d, shift, top) = match format.dtype() {
            DType::Q8_0 => (extreme.abs() / 127.0, 0.0, 0.0),
            DType::Q4_1 => ((max - min) / 15.0, min, 0.5),
            _ => (extreme / -8.0, 0.0, 8.5),
        };
        for x in values.chunks(32) {
            bytes.extend(half(d));
            if format.dtype() == DType::Q4_1 {
                bytes.extend(half(min));
            }
            if format.dtype() == DType::Q8_0 {
                let q = x.iter().map(|x| (x * inverse(d)).round().clamp(-127.0, 127.0));
                bytes.extend(q.map(|q| q as i8 as u8));
                continue;
            }
            let q = x.iter().map(|x| ((x - shift) * inverse(d) + top).floor().clamp(0.0, 15.0));
            let q: Vec<u8> = q.map(|q| q as u8).collect();
            bytes.extend((0..16).map(|i| q[i] + 16 * q[16 + i]));
        }
    }
    bytes
}

/// Test rows: uniform noise of many magnitudes, values halfway between steps, one large value,
/// constants, zeros, one sign only.
fn cases() -> Vec<Vec<f32>> {
    let mut state = 7u32;
    let mut noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    };
    let mut cases: Vec<Vec<f32>> = Vec::new();
    for exponent in -30..=15 {
        cases.push((0..96).map(|_| noise() * 2f32.powi(exponent)).collect());
    }
    for cols in [64, 128, 192, 640] {
        // Blocks of one row have different magnitudes.
        cases.push((0..cols).map(|i| noise() * 2f32.powi(i / 32 % 7 - 3)).collect());
    }
    cases.push((0..96).map(|i| (i % 33) as f32 / 2.0 - 8.0).collect());
    cases.push((0..64).map(|i| i as f32 * 4.0 - 126.0).collect());
    cases.push((0..32).map(|i| if i == 17 { -1000.0 } else { noise() }).collect());
    cases.push((0..128).map(|i| if i == 77 { -1000.0 } else { noise() }).collect());
    cases.push((0..32).map(|_| noise().abs() + 3.0).collect());
    cases.push((0..32).map(|_| -noise().abs() - 3.0).collect());
    for constant in [0.0, -0.0, 1.0, -2.5, 65504.0, 1e-7, 1e-20, 1e-40, f32::MIN_POSITIVE] {
        cases.push(vec![constant; 64]);
    }
    cases.push((0..32).map(|i| if i % 2 == 0 { 8.0 } else { -8.0 }).collect());
    cases
}

/// Every form and every case whose row is whole groups.
fn forms_and_cases() -> Vec<(Requant, Vec<f32>)> {
    let groups = [Group::BLOCK, Group::Columns(64), Group::Columns(128), Group::Row];
    let forms = Requant::GROUPED.iter().flat_map(|form| groups.map(|group| form.with_group(group)));
    let all = forms.flatten().flat_map(|form| cases().into_iter().map(move |x| (form, x)));
    all.filter(|(form, x)| form.group_len(x.len()).is_some()).collect()
}

fn quantized(format: Requant, x: &[f32]) -> (Vec<u8>, bool) {
    let mut bytes = vec![0; format.dtype().row_bytes(x.len()).expect("whole blocks")];
    let sound = quantize(format, x, &mut bytes);
    (bytes, sound)
}

#[test]
fn blocks_equal_those_of_the_naive_quantiser() {
    for (format, x) in forms_and_cases() {
        let (got, sound) = quantized(format, &x);
        assert!(sound, "{format} {x:?}");
        assert_eq!(got, naive(format, &x), "{format} {x:?}");
    }
}

#[test]
fn a_group_of_one_block_is_gguf_s_format() {
    for (form, x) in Requant::GROUPED.iter().flat_map(|f| cases().into_iter().map(move |x| (*f, x)))
    {
        let rows = form.with_group(Group::Row).expect("a form");
        let of_blocks: Vec<u8> = x.chunks(BLOCK).flat_map(|x| quantized(rows, x).0).collect();
        assert_eq!(form.quantize(&x, x.len()), Some(of_blocks.clone()), "{form} {x:?}");
        assert_eq!(rows.quantize(&x, BLOCK), Some(of_blocks), "{form} {x:?}");
    }
}

/// The bound is half a step of the group, plus the rounding of scale and minimum to binary16 (relative
/// 2^-11, absolute 2^-25 for subnormal numbers), and for symmetric 4 bits the end of the range without a
/// step.
#[test]
fn quantisation_errors_stay_within_their_bound() {
    for (format, row) in forms_and_cases() {
        let got = dequantize(format.dtype(), &quantized(format, &row).0);
        let group = format.group_len(row.len()).expect("whole groups");
        for (x, got) in row.chunks(group).zip(got.chunks(group)) {
            let rounding = |x: f64| (x.abs() / 2048.0).max(2f64.powi(-25));
            let most = x.iter().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
            let low = x.iter().copied().map(f64::from).fold(f64::INFINITY, f64::min);
            let high = x.iter().copied().map(f64::from).fold(f64::NEG_INFINITY, f64::max);
            let bound = match format.dtype() {
                DType::Q8_0 => most / 254.0 + 127.0 * rounding(most / 127.0),
                DType::Q4_1 => {
                    let d = (high - low) / 15.0;
                    d / 2.0 + 15.0 * rounding(d) + rounding(low)
                }
                _ => most / 8.0 + 8.0 * rounding(most / 8.0),
            };
            for (x, got) in x.iter().zip(got) {
                let error = (f64::from(*x) - f64::from(*got)).abs();
                assert!(error <= bound * (1.0 + 1e-5), "{format} {x}: {got}, {error} > {bound}");
            }
        }
    }
}

#[test]
fn values_that_are_not_finite_or_too_large_are_reported() {
    let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -1e30];
    let forms = Requant::ALL
        .into_iter()
        .chain(Requant::GROUPED.map(|form| form.with_group(Group::Row).expect("a form")));
    for (format, bad) in forms.flat_map(|f| bad.map(|bad| (f, bad))) {
        // Its scales are powers of two as large as any value.
        if format.dtype() == DType::Mxfp4 && bad.is_finite() {
            continue;
        }
        for at in [0, 13, 31, 32, 255] {
            let mut x: Vec<f32> = (0..256).map(|i| i as f32).collect();
            x[at] = bad;
            assert!(!quantized(format, &x).1, "{format} {bad} at {at}");
            assert_eq!(format.quantize(&x, 256), None);
        }
    }
}

#[test]
fn rows_that_are_not_whole_groups_are_refused() {
    let x = vec![1.0; 192];
    for (name, cols, is_whole) in [
        ("q8_0", 96, true),
        ("q8_0", 48, false),
        ("int4:64", 96, false),
        ("int4:64", 192, true),
        ("int4:128", 192, false),
        ("int8:row", 96, true),
        ("int8:row", 48, false),
        ("int8:row", 128, false),
        ("int4", 0, false),
        ("iq4_nl", 96, true),
        ("q3_k", 96, false),
    ] {
        let form: Requant = name.parse().expect("a form");
        assert_eq!(form.quantize(&x, cols).is_some(), is_whole, "{name}: rows of {cols}");
    }
}
