//! Attention against dense masks.

use crate::support::{assert_close, attending, bits, is_emulated, noise};
use half::{bf16, f16};
use lapwing_kernels::cpu::{self, Activations, AttentionJob, AttentionSequence, Cpu, Isa, KvRows};
use lapwing_kernels::kv::{KvDtype, KvLayer, KvLayout, KvStore, PageId};
use lapwing_kernels::mask::{BlockList, Mask};
use lapwing_kernels::reference::{self, DenseAttention};
use std::f32::consts::LOG2_E;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
struct Case {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    page_rows: usize,
    positions: usize,
    mask: &'static Mask,
    soft_cap: Option<f32>,
    dtype: KvDtype,
}

const PLAIN: Case = Case {
    heads: 6,
    kv_heads: 2,
    head_dim: 16,
    page_rows: 32,
    positions: 70,
    mask: &Mask::Causal,
    soft_cap: None,
    dtype: KvDtype::F16,
};

struct Sequence {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    pages: Vec<PageId>,
    store: KvStore,
}

/// Values of heads of `head_dim` values after storage in `dtype`.
pub(crate) fn after_storage(dtype: KvDtype, head_dim: usize, x: &[f32]) -> Vec<f32> {
    match dtype {
        KvDtype::F32 => x.to_vec(),
        KvDtype::F16 => x.iter().map(|x| f16::from_f32(*x).to_f32()).collect(),
        KvDtype::I8 => x.chunks(head_dim).flat_map(rounded_to_i8).collect(),
    }
}

fn rounded_to_i8(head: &[f32]) -> Vec<f32> {
    let highest = head.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    let (scale, inverse) = (highest / 127.0, 127.0 / highest);
    head.iter().map(|x| (x * inverse).round_ties_even() * scale).collect()
}

/// Writes all keys and values to pages that are neither adjacent nor in order, between pages full
/// of infinities.
fn sequence(case: &Case) -> Sequence {
    let width = case.kv_heads * case.head_dim;
    let round = |x: Vec<f32>| after_storage(case.dtype, case.head_dim, &x);
    let (k, v) = (noise(2, case.positions * width), noise(3, case.positions * width));
    let layout = KvLayout {
        layers: 2,
        kv_heads: case.kv_heads,
        head_dim: case.head_dim,
        page_rows: case.page_rows,
        dtype: case.dtype,
    };
    let count = layout.pages_for(case.positions) as u32;
    let pages: Vec<PageId> = (0..count).rev().map(|i| 2 * i + 1).collect();
    let store = KvStore::new(layout, 2 * count + 1).expect("memory");
    let all: Vec<PageId> = (0..2 * count + 1).collect();
    let poison = vec![f32::INFINITY; all.len() * case.page_rows * width];
    let cpu = Cpu::new(2, Isa::best());
    let mut layer = store.layer(1);
    KvRows { pages: &all, start_pos: 0, k: &poison, v: &poison }.write(&cpu, &mut layer);
    KvRows { pages: &pages, start_pos: 0, k: &k, v: &v }.write(&cpu, &mut layer);
    drop(layer);
    let q = noise(1, case.positions * case.heads * case.head_dim);
    Sequence { q, k: round(k), v: round(v), pages, store }
}

fn job<'a>(
    case: &Case,
    s: &'a Sequence,
    kv: &'a KvLayer<'a>,
    sequences: &'a [AttentionSequence<'a>],
) -> AttentionJob<'a> {
    AttentionJob {
        kv,
        q: &s.q,
        sequences,
        heads: case.heads,
        scale: 0.5,
        mask: case.mask,
        soft_cap: case.soft_cap,
    }
}

/// Keys up to its own that the row at `pos` sees, by the definition of the mask.
pub(crate) fn seen(mask: &Mask, pos: usize) -> Vec<usize> {
    let sees = |key: &usize| match mask {
        Mask::Causal | Mask::Full => true,
        Mask::Window(window) => key + window > pos,
        Mask::Dilated { count, stride } => (0..*count).any(|i| key + i * stride == pos),
        Mask::Blocks { blocks, window } => {
            let len = blocks.block_len();
            window.is_none_or(|window| key + window > pos)
                && blocks.listed().contains(&((pos / len) as u32, (key / len) as u32))
        }
    };
    (0..=pos).filter(sees).collect()
}

fn check(case: Case) {
    attending(2).iter().for_each(|cpu| check_on(cpu, case));
}

fn check_on(cpu: &Cpu, case: Case) {
    let s = sequence(&case);
    let pairs = multiplies_pairs(cpu, case.dtype);
    let round = |x: &[f32], factor: f32| -> Vec<f32> {
        x.iter().map(|x| bf16::from_f32(x * factor).to_f32() / factor).collect()
    };
    let factor = 0.5 * case.soft_cap.map_or(LOG2_E, |_| 1.0);
    let (q, k, v) = match (pairs, case.dtype) {
        (false, _) => (s.q.clone(), s.k.clone(), s.v.clone()),
        // bfloat16 represents all 8-bit integers exactly.
        (true, KvDtype::I8) => (round(&s.q, factor), s.k.clone(), s.v.clone()),
        (true, _) => (round(&s.q, factor), round(&s.k, 1.0), round(&s.v, 1.0)),
    };
    let dense = DenseAttention {
        q: &q,
        k: &k,
        v: &v,
        shape: (case.heads, case.kv_heads, case.head_dim),
        scale: 0.5,
        soft_cap: case.soft_cap.map(f64::from),
    };
    let want = reference::attention(&dense, |pos| match case.mask {
        Mask::Full => (0..case.positions).collect(),
        mask => seen(mask, pos),
    });
    let sequences = [AttentionSequence { rows: 0..case.positions, start_pos: 0, pages: &s.pages }];
    let mut out = vec![f32::NAN; s.q.len()];
    cpu::attention(cpu, &job(&case, &s, &s.store.layer(1), &sequences), &mut out);
    let what = format!("{} {case:?}", cpu.isa().name());
    if !pairs {
        return assert_close(&out, &want, (3e-6, 1.0), &what);
    }
    // Operands are rounded already, so what is left is the rounding of each weight, at most 2⁻⁸ of
    // it. Values are within ±1, so their mean has at most that error. Roundings go either way, so
    // the error over all results reaches 2⁻⁸ only if a key is wrong.
    assert_close(&out, &want, (2f64.powi(-8), 1.0), &what);
    let error: f64 = want.iter().zip(&out).map(|(w, o)| (w - f64::from(*o)).powi(2)).sum();
    let norm: f64 = want.iter().map(|w| w.powi(2)).sum();
    let strays = (error / norm.max(f64::MIN_POSITIVE)).sqrt();
    assert!(strays <= 2f64.powi(-8), "{what}: by {strays} of all");
}

/// Whether attention rounds its operands to bfloat16.
pub(crate) fn multiplies_pairs(cpu: &Cpu, dtype: KvDtype) -> bool {
    cpu.isa().name() == "avx512-bf16"
        && cpu.activations() == Activations::Int8
        && dtype != KvDtype::F32
}

#[test]
fn a_causal_mask_is_exact_at_page_boundaries() {
    for positions in [1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97] {
        check(Case { positions, ..PLAIN });
    }
}

#[test]
fn a_window_is_exact_at_page_boundaries() {
    for window in [1, 2, 16, 31, 32, 33, 64, 200] {
        check(Case { mask: kept(Mask::Window(window)), positions: 100, ..PLAIN });
    }
}

#[test]
fn under_the_full_mask_each_row_sees_all_keys_of_its_sequence() {
    // The kernels are the same at any length beyond their blocks.
    let long = if is_emulated() { &[300][..] } else { &[127, 255, 257, 300, 520] };
    for &positions in [1, 2, 15, 16, 17, 31, 33, 64, 65, 97, 129].iter().chain(long) {
        for (page_rows, dtype) in
            [(32, KvDtype::F16), (7, KvDtype::F32), (16, KvDtype::F32), (32, KvDtype::I8)]
        {
            let mask = &Mask::Full;
            check(Case { mask, positions, page_rows, dtype, ..PLAIN });
        }
    }
}

#[test]
fn query_heads_share_kv_heads() {
    for (heads, kv_heads) in [(1, 1), (4, 1), (4, 4), (9, 3), (8, 2)] {
        check(Case { heads, kv_heads, ..PLAIN });
    }
}

#[test]
fn odd_head_and_page_sizes_are_right() {
    for head_dim in [1, 8, 33, 64, 80, 256] {
        check(Case { head_dim, positions: 40, ..PLAIN });
    }
    for page_rows in [1, 7, 16, 24, 64] {
        check(Case { page_rows, ..PLAIN });
    }
}

#[test]
fn the_soft_cap_applies_to_scores() {
    check(Case { soft_cap: Some(0.7), ..PLAIN });
    check(Case { soft_cap: Some(50.0), mask: &Mask::Window(20), ..PLAIN });
}

/// Rows of blocks 1, 4 and 9 see no key; some rows see only blocks far before their own.
const LISTED: [(u32, u32); 12] = [
    (0, 0),
    (2, 0),
    (2, 2),
    (3, 1),
    (5, 2),
    (6, 6),
    (7, 0),
    (7, 3),
    (7, 7),
    (8, 7),
    (10, 4),
    (10, 11),
];

/// A mask for all cases.
pub(crate) fn kept(mask: Mask) -> &'static Mask {
    Box::leak(Box::new(mask))
}

pub(crate) fn sparse_masks() -> Vec<&'static Mask> {
    let dilated = [(1, 1), (5, 3), (100, 2), (4, 60), (3, 200)];
    let dilated = dilated.map(|(count, stride)| kept(Mask::Dilated { count, stride }));
    let blocks = [(1, None), (7, None), (24, None), (32, None), (7, Some(20)), (24, Some(33))];
    let blocks = blocks.map(|(len, window)| {
        let blocks = Arc::new(BlockList::new(len, LISTED).expect("a list"));
        kept(Mask::Blocks { blocks, window })
    });
    dilated.into_iter().chain(blocks).collect()
}

#[test]
fn sparse_masks_equal_dense_ones() {
    for mask in sparse_masks() {
        for (positions, page_rows, dtype) in
            [(300, 32, KvDtype::F16), (70, 7, KvDtype::F32), (300, 16, KvDtype::F32)]
        {
            check(Case { mask, positions, page_rows, dtype, ..PLAIN });
        }
    }
}

#[test]
fn every_stored_type_is_right_over_many_splits() {
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::I8] {
        for (head_dim, page_rows) in [(16, 32), (33, 24), (64, 16), (7, 5)] {
            check(Case {
                dtype,
                head_dim,
                page_rows,
                positions: 520,
                heads: 3,
                kv_heads: 1,
                ..PLAIN
            });
        }
        check(Case { dtype, soft_cap: Some(0.7), ..PLAIN });
    }
}

/// A thread's buffers keep the contents of its last call: here, infinities after the last key of a
/// page, where the next call's pages have padding.
#[test]
fn padding_ignores_the_contents_of_an_earlier_layout() {
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::I8] {
        for cpu in attending(1) {
            check_on(&cpu, Case { dtype, positions: 5, ..PLAIN });
            check_on(&cpu, Case { dtype, positions: 20, page_rows: 7, head_dim: 7, ..PLAIN });
        }
    }
}

#[test]
fn int8_keys_and_values_are_close_to_those_written() {
    let case = Case { dtype: KvDtype::I8, head_dim: 64, positions: 100, ..PLAIN };
    let exact = sequence(&Case { dtype: KvDtype::F32, ..case });
    let rounded = sequence(&case);
    let out_of = |s: &Sequence| {
        let sequences = [AttentionSequence { rows: 0..100, start_pos: 0, pages: &s.pages }];
        let mut out = vec![0.0; s.q.len()];
        cpu::attention(
            &Cpu::new(1, Isa::best()),
            &job(&case, s, &s.store.layer(1), &sequences),
            &mut out,
        );
        out
    };
    let (want, got) = (out_of(&exact), out_of(&rounded));
    let error: f64 = want.iter().zip(&got).map(|(w, g)| f64::from(w - g).powi(2)).sum();
    let norm: f64 = want.iter().map(|w| f64::from(*w).powi(2)).sum();
    assert!((error / norm).sqrt() < 0.02, "{}", (error / norm).sqrt());
}

/// All rows at once on one thread against every other division of the sequence.
fn divided(case: Case) {
    let s = sequence(&case);
    let n = case.positions;
    let divisions = [(1, 4), (7, 2), (64, 4), (n, 8), (1, 1), (16, 3), (32, 2), (n - 1, 2)];
    let divisions = &divisions[..if is_emulated() { 4 } else { 8 }];
    for one in attending(1) {
        let isa = one.isa();
        let mut whole = vec![0.0; s.q.len()];
        let sequences = [AttentionSequence { rows: 0..n, start_pos: 0, pages: &s.pages }];
        cpu::attention(&one, &job(&case, &s, &s.store.layer(1), &sequences), &mut whole);
        for &(chunk, threads) in divisions {
            let what = format!("{} {case:?} chunk {chunk} on {threads}", isa.name());
            let sequences = (0..n).step_by(chunk).map(|start| AttentionSequence {
                rows: start..(start + chunk).min(n),
                start_pos: start,
                pages: &s.pages,
            });
            let sequences: Vec<_> = sequences.collect();
            let cpu = Cpu::new(threads, isa);
            let mut together = vec![0.0; s.q.len()];
            cpu::attention(&cpu, &job(&case, &s, &s.store.layer(1), &sequences), &mut together);
            assert!(bits(&together) == bits(&whole), "one call, {what}");
            let mut apart = vec![0.0; s.q.len()];
            for sequence in sequences {
                cpu::attention(&cpu, &job(&case, &s, &s.store.layer(1), &[sequence]), &mut apart);
            }
            assert!(bits(&apart) == bits(&whole), "apart, {what}");
        }
    }
}

#[test]
fn a_row_does_not_depend_on_how_its_sequence_is_divided() {
    let windows = [1, 20, 33].map(|window| kept(Mask::Window(window)));
    for mask in windows.into_iter().chain([&Mask::Causal]).chain(sparse_masks()) {
        divided(Case { mask, positions: 100, ..PLAIN });
    }
}

#[test]
fn a_row_of_quantised_keys_does_not_depend_on_how_its_sequence_is_divided() {
    // The longest of all under emulation; other tests try the other types there.
    let dtypes = [KvDtype::I8, KvDtype::F32, KvDtype::F16];
    for &dtype in &dtypes[..if is_emulated() { 1 } else { 3 }] {
        divided(Case { dtype, positions: 520, heads: 3, kv_heads: 1, ..PLAIN });
        divided(Case { dtype, positions: 300, page_rows: 7, head_dim: 33, ..PLAIN });
    }
}

/// The last pair of keys, or of a head's values, is half a pair; infinities are in place of the
/// missing half.
#[test]
fn the_missing_half_of_a_pair_is_ignored() {
    for dtype in [KvDtype::F16, KvDtype::I8] {
        for positions in [17, 31, 33, 65] {
            for (heads, kv_heads, page_rows, head_dim) in
                [(1, 1, 32, 16), (4, 1, 16, 48), (3, 1, 7, 5), (6, 2, 24, 33)]
            {
                let case = Case { dtype, positions, heads, kv_heads, page_rows, head_dim, ..PLAIN };
                check(case);
                divided(case);
            }
        }
    }
}

/// Bits on the instruction set of that name; `None` if the machine lacks it.
fn attended(isa: &str, activations: Activations, case: &Case) -> Option<Vec<u32>> {
    let isa = Isa::available().into_iter().find(|known| known.name() == isa)?;
    let cpu = Cpu::new(2, isa).with_activations(activations);
    let s = sequence(case);
    let sequences = [AttentionSequence { rows: 0..case.positions, start_pos: 0, pages: &s.pages }];
    let mut out = vec![0.0; s.q.len()];
    cpu::attention(&cpu, &job(case, &s, &s.store.layer(1), &sequences), &mut out);
    Some(bits(&out))
}

#[test]
fn exact_activations_or_keys_in_f32_are_rounded_to_bfloat16() {
    for dtype in KvDtype::ALL {
        for activations in [Activations::Int8, Activations::F32] {
            let case = Case { dtype, ..PLAIN };
            let of = |isa: &str| attended(isa, activations, &case);
            let (Some(pairs), Some(singles)) = (of("avx512-bf16"), of("avx512")) else { return };
            let rounded = activations == Activations::Int8 && dtype != KvDtype::F32;
            assert_eq!(pairs != singles, rounded, "{dtype}, activations in {activations:?}");
        }
    }
}

#[test]
fn rows_of_different_lengths_have_the_same_bits_together() {
    let case = Case { positions: 1500, ..PLAIN };
    let s = sequence(&case);
    let positions = [3, 1499, 40, 700, 0];
    let width = case.heads * case.head_dim;
    let sequences: Vec<_> = positions
        .iter()
        .enumerate()
        .map(|(row, pos)| AttentionSequence {
            rows: row..row + 1,
            start_pos: *pos,
            pages: &s.pages,
        })
        .collect();
    let (kv, q) = (s.store.layer(1), &s.q[..positions.len() * width]);
    for one in attending(1) {
        let isa = one.isa();
        let job = AttentionJob { q, ..job(&case, &s, &kv, &sequences) };
        let (mut alone, mut together) = (vec![0.0; q.len()], vec![0.0; q.len()]);
        cpu::attention(&Cpu::new(5, isa), &job, &mut together);
        for sequence in &sequences {
            let job = AttentionJob { sequences: std::slice::from_ref(sequence), ..job.clone() };
            cpu::attention(&one, &job, &mut alone);
        }
        assert_eq!(bits(&alone), bits(&together), "{}", isa.name());
    }
}

#[test]
fn rows_of_no_sequence_are_not_touched() {
    let s = sequence(&PLAIN);
    let sequences = [AttentionSequence { rows: 2..3, start_pos: 40, pages: &s.pages }];
    let mut out = vec![7.0; s.q.len()];
    cpu::attention(
        &Cpu::new(2, Isa::best()),
        &job(&PLAIN, &s, &s.store.layer(1), &sequences),
        &mut out,
    );
    let width = PLAIN.heads * PLAIN.head_dim;
    assert!(out[..2 * width].iter().chain(&out[3 * width..]).all(|o| *o == 7.0));
    assert!(out[2 * width..3 * width].iter().all(|o| *o != 7.0));
}
