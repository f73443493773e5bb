//! Attention against dense masks.

use crate::attention::{
    Case, PLAIN, Sequence, job, kept, multiplies_pairs, seen, sequence, sparse_masks,
};
use crate::support::{assert_close, attending, bits, is_emulated};
use half::bf16;
use lapwing_kernels::cpu::{self, Activations, AttentionSequence, Cpu, Isa};
use lapwing_kernels::kv::KvDtype;
use lapwing_kernels::mask::Mask;
use lapwing_kernels::op::AttentionOp;
use lapwing_kernels::reference::{self, DenseAttention};
use std::f32::consts::LOG2_E;

pub(crate) fn check(case: Case) {
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
    let [slopes, sinks] = [case.slopes, case.sinks].map(|of_heads| {
        of_heads.map(|of_heads| of_heads.iter().copied().map(f64::from).collect::<Vec<_>>())
    });
    let dense = DenseAttention {
        q: &q,
        k: &k,
        v: &v,
        shape: (case.heads, case.kv_heads, case.head_dim),
        scale: 0.5,
        soft_cap: case.soft_cap.map(f64::from),
        slopes: slopes.as_deref(),
        sinks: sinks.as_deref(),
    };
    let want = reference::attention(&dense, |pos| match case.mask {
        Mask::Full => (0..case.positions).collect(),
        Mask::Around(most) => {
            let first = pos.saturating_sub(*most);
            (first..case.positions.min(pos + most + 1)).collect()
        }
        mask => seen(mask, pos),
    });
    let sequences = [AttentionSequence { rows: 0..case.positions, start_pos: 0, pages: &s.pages }];
    let mut out = vec![f32::NAN; case.positions * case.out_width()];
    cpu::attention(cpu, &job(&case, &s, &s.store.layer(1), &sequences), &mut out);
    let what = format!("{} {case:?}", cpu.isa().name());
    if !pairs {
        return assert_close(&out, &want, 3e-6, 1.0, &what);
    }
    // Operands are rounded already, so what is left is the rounding of each weight, at most 2⁻⁸ of
    // it. Values are within ±1, so their mean has at most that error. Roundings go either way, so
    // the error over all results reaches 2⁻⁸ only if a key is wrong.
    assert_close(&out, &want, 2f64.powi(-8), 1.0, &what);
    let error: f64 = want.iter().zip(&out).map(|(w, o)| (w - f64::from(*o)).powi(2)).sum();
    let norm: f64 = want.iter().map(|w| w.powi(2)).sum();
    let strays = (error / norm.max(f64::MIN_POSITIVE)).sqrt();
    assert!(strays <= 2f64.powi(-8), "{what}: by {strays} of all");
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
fn a_window_around_each_row_is_exact_at_page_boundaries() {
    for most in [0, 1, 15, 16, 31, 32, 33, 64, 200] {
        for positions in [1, 17, 40, 100] {
            for (page_rows, dtype) in [(32, KvDtype::F16), (7, KvDtype::F32), (32, KvDtype::I8)] {
                let mask = kept(Mask::Around(most));
                check(Case { mask, positions, page_rows, dtype, ..PLAIN });
            }
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
fn keys_may_be_wider_or_narrower_than_values() {
    for dtype in KvDtype::ALL {
        for (head_dim, value_dim) in [(24, 16), (96, 64), (16, 48), (7, 5)] {
            for (positions, page_rows) in [(1, 32), (100, 32), (40, 7)] {
                let value_dim = Some(value_dim);
                check(Case { head_dim, value_dim, positions, page_rows, dtype, ..PLAIN });
            }
        }
    }
}

#[test]
fn the_soft_cap_applies_to_scores() {
    check(Case { soft_cap: Some(0.7), ..PLAIN });
    check(Case { soft_cap: Some(50.0), mask: &Mask::Window(20), ..PLAIN });
}

#[test]
fn linear_biases_fall_with_the_distance_of_a_key_whatever_is_stored() {
    const SLOPES: Option<&[f32]> = Some(&[0.5, 0.25, 0.125, 0.0625, 0.03, 1.0]);
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::I8] {
        for (head_dim, page_rows, positions) in
            [(16, 32, 70), (33, 24, 300), (64, 16, 520), (7, 5, 70)]
        {
            check(Case { slopes: SLOPES, dtype, head_dim, page_rows, positions, ..PLAIN });
        }
        check(Case { slopes: SLOPES, dtype, mask: &Mask::Window(20), ..PLAIN });
        check(Case { slopes: SLOPES, dtype, mask: &Mask::Full, ..PLAIN });
        check(Case { slopes: SLOPES, dtype, soft_cap: Some(0.7), ..PLAIN });
    }
}

#[test]
fn slopes_are_powers_of_two_in_even_steps() {
    let of = |alibi| AttentionOp {
        layer: 0,
        scale: 1.0,
        window: None,
        mask: Mask::Causal,
        soft_cap: None,
        alibi,
        sinks: None,
    };
    assert_eq!(of(None).slopes(8), None);
    let eight: Vec<f32> = (1..=8).map(|i| 0.5f32.powi(i)).collect();
    assert_eq!(of(Some(8.0)).slopes(8), Some(eight.clone()));
    // Those of the paper for twelve heads: eight, and four of the steps between them.
    let rest = [1, 3, 5, 7].map(|i| 0.5f32.powf(i as f32 / 2.0));
    assert_eq!(of(Some(8.0)).slopes(12), Some([eight, rest.to_vec()].concat()));
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
