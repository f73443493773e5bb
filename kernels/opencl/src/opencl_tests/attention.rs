//! KV cache and attention.

mod cache;

use super::{PAGE_ROWS, assert_near, bench, bits, cases};
use cache::{Cache, Rules, page_len};
use lapwing_model::binary16;
use lapwing_model::kv::KvDtype;

/// Heads, KV heads, values of a key and of a value, positions per page.
const SHAPES: [[usize; 5]; 6] = [
    [9, 3, 64, 64, PAGE_ROWS],
    [2, 2, 80, 48, 16],
    [1, 1, 7, 7, 5],
    [4, 1, 256, 256, PAGE_ROWS],
    [3, 1, 12, 20, 4],
    [2, 1, 288, 256, 8],
];

/// Among the scores, far below and above them: as many as any of the shapes has heads.
const SINKS: Option<&[f32]> = Some(&[0.5, -1.0, 3.0, 0.0, -300.0, 300.0, 1.5, -0.25, 2.0]);

const RULES: [Rules; 7] = [
    Rules { window: None, scale: 0.125, soft_cap: None, sinks: None },
    Rules { window: Some(1), scale: 1.0, soft_cap: None, sinks: None },
    Rules { window: Some(33), scale: 0.75, soft_cap: None, sinks: None },
    Rules { window: Some(usize::MAX), scale: 1.0, soft_cap: Some(2.0), sinks: None },
    Rules { window: Some(6), scale: 0.5, soft_cap: Some(50.0), sinks: None },
    Rules { window: None, scale: 0.125, soft_cap: None, sinks: SINKS },
    Rules { window: Some(33), scale: 0.75, soft_cap: Some(2.0), sinks: SINKS },
];

/// Lengths of sequences for the kernels for CPUs, and for GPUs, which compute 256 keys at a time.
const LENS: [usize; 2] = [75, 601];

/// The positions whose rows are computed: all of a short sequence; of a long one those beside the borders of
/// 256 keys and of pages, and some between.
fn positions(len: usize, page_rows: usize) -> Vec<usize> {
    let beside = |position: usize, border: usize| (position + 2) % border < 4;
    let is_chosen = |position: &usize| {
        len <= 100
            || *position + 2 >= len
            || beside(*position, 256)
            || (beside(*position, page_rows) && *position < 2 * page_rows)
            || position.is_multiple_of(29)
    };
    (0..len).filter(is_chosen).collect()
}

fn check(dtype: KvDtype, in_groups: bool) {
    for shape in SHAPES.into_iter().take(cases(3, 6)) {
        let Some(mut bench) = bench(shape[4], dtype) else { return };
        if in_groups {
            bench.kernels.launch_in_groups();
        }
        let lens = [1, shape[4], LENS[usize::from(in_groups)]];
        let cache = Cache::new(&mut bench, shape, dtype, &lens);
        for rules in RULES {
            let width = shape[0] * shape[3];
            let mut together = Vec::new();
            let mut found = std::collections::HashMap::new();
            for (sequence, len) in lens.iter().enumerate() {
                let positions = positions(*len, shape[4]);
                let rows: Vec<_> = positions.iter().map(|position| (sequence, *position)).collect();
                let alone = cache.attend(&mut bench, &rows, rules);
                let what = format!("{dtype} {shape:?} {rules:?} sequence {sequence}");
                let all = cache.wanted(sequence, rules);
                let wanted = positions.iter().flat_map(|at| &all[at * width..][..width]);
                let wanted: Vec<f64> = wanted.copied().collect();
                assert_near(&alone, &wanted, 5e-6, &what);
                for (row, alone) in rows.iter().zip(alone.chunks(width)) {
                    found.insert(*row, alone.to_vec());
                }
                // Some rows of each, later positions first.
                let step = 3 + positions.len() / 20;
                together.extend(rows.into_iter().rev().step_by(step));
            }
            let mixed = cache.attend(&mut bench, &together, rules);
            for (row, mixed) in together.iter().zip(mixed.chunks(width)) {
                let alone = &found[row];
                assert_eq!(bits(mixed), bits(alone), "{dtype} {shape:?} {rules:?} {row:?}");
                let single = cache.attend(&mut bench, &[*row], rules);
                assert_eq!(bits(&single), bits(alone), "{dtype} {shape:?} {rules:?} {row:?}");
            }
        }
    }
}

#[test]
fn attention_over_f32_pages_is_right_and_independent_of_other_rows() {
    check(KvDtype::F32, false);
}

#[test]
fn attention_of_gpus_over_f32_pages_is_right_and_independent_of_other_rows() {
    check(KvDtype::F32, true);
}

#[test]
fn attention_of_gpus_over_f16_pages_is_right_and_independent_of_other_rows() {
    check(KvDtype::F16, true);
}

#[test]
fn attention_over_f16_pages_is_right_and_independent_of_other_rows() {
    check(KvDtype::F16, false);
}

#[test]
fn a_page_has_the_order_of_the_host_and_f16_is_rounded_to_nearest_even() {
    for dtype in [KvDtype::F32, KvDtype::F16] {
        let shape = [2, 2, 12, 20, 8];
        let Some(mut bench) = bench(shape[4], dtype) else { return };
        let mut cache = Cache::new(&mut bench, shape, dtype, &[19]);
        // Halfway between two numbers of f16, subnormal, too large, and zero with a sign.
        let odd =
            [1.0 + 2f32.powi(-11), 1.0 + 3.0 * 2f32.powi(-11), 2f32.powi(-25), 1e-7, 7e4, -0.0];
        cache.sequences[0].k[..odd.len()].copy_from_slice(&odd);
        cache.sequences[0].v[24..][..odd.len()].copy_from_slice(&odd);
        cache.write(&mut bench, &[(0, 1), (0, 0)]);
        let [_, kv_heads, key_dim, value_dim, page_rows] = shape;
        let bytes = bench.read_ints(&cache.kv);
        let stored = |at: usize| match dtype {
            KvDtype::F16 => (bytes[at / 2] >> (at % 2 * 16)) as u32 & 0xffff,
            _ => bytes[at] as u32,
        };
        let wanted = |x: f32| match dtype {
            KvDtype::F16 => u32::from(binary16::from_f32(x)),
            _ => x.to_bits(),
        };
        let sequence = &cache.sequences[0];
        for position in 0..19 {
            let page = sequence.pages[position / page_rows] as usize * page_len(shape);
            let row = position % page_rows;
            let values = page + kv_heads * key_dim * page_rows;
            let each =
                |dim: usize| (0..kv_heads).flat_map(move |head| (0..dim).map(move |d| (head, d)));
            for (head, d) in each(key_dim) {
                let found = stored(page + (head * key_dim + d) * page_rows + row);
                let key = sequence.k[(position * kv_heads + head) * key_dim + d];
                assert_eq!(found, wanted(key), "{dtype} key {position} {head} {d}");
            }
            for (head, d) in each(value_dim) {
                let found = stored(values + (head * page_rows + row) * value_dim + d);
                let value = sequence.v[(position * kv_heads + head) * value_dim + d];
                assert_eq!(found, wanted(value), "{dtype} value {position} {head} {d}");
            }
        }
        // What no row was written to is as before.
        assert!((0..page_len(shape)).all(|at| stored(at) == wanted_blank(dtype)));
    }
}

fn wanted_blank(dtype: KvDtype) -> u32 {
    if dtype == KvDtype::F16 { 0xffff } else { u32::MAX }
}

#[test]
fn pages_out_of_range_are_kept_within_the_cache() {
    let shape = [1, 1, 16, 16, 4];
    let Some(mut bench) = bench(shape[4], KvDtype::F32) else { return };
    let mut cache = Cache::new(&mut bench, shape, KvDtype::F32, &[9]);
    for pages in [vec![-7, i32::MAX, 2], vec![i32::MIN]] {
        cache.sequences[0].pages = pages;
        cache.write(&mut bench, &[(0, 0), (0, 8)]);
        cache.attend(&mut bench, &[(0, 0), (0, 8)], RULES[0]);
    }
}

#[test]
fn int8_pages_are_refused() {
    use crate::ops::{KernelSpec, Kernels};
    use crate::program::ProgramCache;
    let Some(bench) = bench(4, KvDtype::F32) else { return };
    let spec = KernelSpec { kv: KvDtype::I8, ..KernelSpec::default() };
    let kernels = Kernels::new(&bench.session, &ProgramCache::default(), &spec);
    assert!(kernels.is_err_and(|e| e.to_string().contains("int8")));
}
