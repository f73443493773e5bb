//! Attention with sinks: keys that every row sees and that have no value.

use crate::attention::{Case, PLAIN, job, kept, sequence, sinks, sparse_masks};
use crate::attention_depends_on_its_division::divided;
use crate::attention_sees_a_wrong_key::check;
use crate::support::{attending, bits, is_emulated};
use lapwing_kernels::cpu::{self, AttentionSequence, Cpu};
use lapwing_kernels::kv::KvDtype;
use lapwing_kernels::mask::Mask;

const SUNK: Case = Case { sinks: sinks(6), ..PLAIN };

#[test]
fn a_sink_takes_weight_and_adds_no_value_whatever_is_stored() {
    for &dtype in &KvDtype::ALL[..if is_emulated() { 1 } else { 3 }] {
        for (head_dim, page_rows, positions) in
            [(16, 32, 70), (33, 24, 300), (64, 16, 520), (7, 5, 70), (1, 1, 3)]
        {
            check(Case { dtype, head_dim, page_rows, positions, ..SUNK });
        }
        for mask in [Mask::Window(1), Mask::Window(20), Mask::Full, Mask::Around(15)] {
            check(Case { dtype, mask: kept(mask), ..SUNK });
        }
        check(Case { dtype, soft_cap: Some(0.7), ..SUNK });
        check(Case { dtype, slopes: Some(&[0.5, 0.25, 0.125, 0.0625, 0.03, 1.0]), ..SUNK });
        check(Case { dtype, value_dim: Some(48), ..SUNK });
    }
}

#[test]
fn each_query_head_has_a_sink_of_its_own() {
    for (heads, kv_heads) in [(1, 1), (4, 1), (4, 4), (9, 3), (8, 2)] {
        check(Case { heads, kv_heads, sinks: sinks(heads), ..PLAIN });
    }
}

#[test]
fn a_row_without_a_key_is_zero_and_sparse_masks_equal_dense_ones() {
    for mask in sparse_masks() {
        check(Case { mask, positions: 300, ..SUNK });
        check(Case { mask, page_rows: 7, dtype: KvDtype::F32, ..SUNK });
    }
}

#[test]
fn a_row_with_sinks_does_not_depend_on_how_its_sequence_is_divided() {
    let dtypes = [KvDtype::I8, KvDtype::F16, KvDtype::F32];
    for &dtype in &dtypes[..if is_emulated() { 1 } else { 3 }] {
        divided(Case { dtype, positions: 520, heads: 3, kv_heads: 1, sinks: sinks(3), ..PLAIN });
        divided(Case { dtype, positions: 300, page_rows: 7, head_dim: 33, ..SUNK });
    }
    for mask in [kept(Mask::Window(20))].into_iter().chain(sparse_masks()) {
        divided(Case { mask, positions: 100, ..SUNK });
    }
}

/// The output of the last rows, which are divided along their keys.
fn last_rows(cpu: &Cpu, sinks: Option<&'static [f32]>) -> Vec<f32> {
    let case = Case { positions: 600, sinks, ..PLAIN };
    let s = sequence(&case);
    let sequences = [AttentionSequence { rows: 0..2, start_pos: 598, pages: &s.pages }];
    let kv = s.store.layer(1);
    let q = &s.q[..2 * case.heads * case.head_dim];
    let mut out = vec![f32::NAN; q.len()];
    cpu::attention(cpu, &cpu::AttentionJob { q, ..job(&case, &s, &kv, &sequences) }, &mut out);
    out
}

#[test]
fn a_sink_far_below_all_scores_changes_no_bit_and_one_far_above_leaves_nothing() {
    for threads in [1, 3] {
        for cpu in attending(threads) {
            let without = last_rows(&cpu, None);
            for below in [&[-1e4; 6], &[f32::NEG_INFINITY; 6]] {
                assert_eq!(bits(&last_rows(&cpu, Some(below))), bits(&without));
            }
            assert!(last_rows(&cpu, Some(&[1e4; 6])).iter().all(|x| *x == 0.0));
            assert!(without.iter().all(|x| *x != 0.0));
        }
    }
}
