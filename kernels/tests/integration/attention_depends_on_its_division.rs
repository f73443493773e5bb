//! Rows of attention in any division of a sequence into chunks, tasks and threads.

use crate::attention::{Case, PLAIN, job, kept, sequence, sparse_masks};
use crate::attention_sees_a_wrong_key::check;
use crate::support::{attending, bits, is_emulated};
use lapwing_kernels::cpu::{self, AttentionJob, AttentionSequence, Cpu, Isa};
use lapwing_kernels::kv::KvDtype;
use lapwing_kernels::mask::Mask;

/// All rows at once on one thread against every other division of the sequence.
pub(crate) fn divided(case: Case) {
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
