//! Attention against dense masks.

use crate::support::{assert_close, bits, cpus, noise};
use half::f16;
use lapwing_kernels::cpu::{self, AttentionJob, AttentionMask, AttentionSpan, Cpu, Isa};
use lapwing_kernels::kv::{KvDtype, KvLayer, KvLayout, KvStore, PageId};
use lapwing_kernels::reference::{self, DenseAttention};

#[derive(Clone, Copy, Debug)]
struct Case {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    page_rows: usize,
    positions: usize,
    window: Option<usize>,
    soft_cap: Option<f32>,
}

const PLAIN: Case = Case {
    heads: 6,
    kv_heads: 2,
    head_dim: 16,
    page_rows: 32,
    positions: 70,
    window: None,
    soft_cap: None,
};

struct Sequence {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    pages: Vec<PageId>,
    store: KvStore,
}

/// All keys and values written, in pages that are neither neighbours nor in order, between
/// pages full of infinities.
fn sequence(case: &Case) -> Sequence {
    let round = |x: Vec<f32>| x.iter().map(|x| f16::from_f32(*x).to_f32()).collect::<Vec<_>>();
    let width = case.kv_heads * case.head_dim;
    let (k, v) = (round(noise(2, case.positions * width)), round(noise(3, case.positions * width)));
    let layout = KvLayout {
        layers: 2,
        kv_heads: case.kv_heads,
        head_dim: case.head_dim,
        page_rows: case.page_rows,
        dtype: KvDtype::F16,
    };
    let count = layout.pages_for(case.positions) as u32;
    let pages: Vec<PageId> = (0..count).rev().map(|i| 2 * i + 1).collect();
    let store = KvStore::new(layout, 2 * count + 1).expect("memory");
    let all: Vec<PageId> = (0..2 * count + 1).collect();
    let poison = vec![f32::INFINITY; all.len() * case.page_rows * width];
    let cpu = Cpu::new(2, Isa::best());
    store.layer(1).write(&cpu, &all, 0, (&poison, &poison));
    store.layer(1).write(&cpu, &pages, 0, (&k, &v));
    Sequence { q: noise(1, case.positions * case.heads * case.head_dim), k, v, pages, store }
}

fn job<'a>(
    case: &Case,
    s: &'a Sequence,
    kv: &'a KvLayer<'a>,
    spans: &'a [AttentionSpan<'a>],
) -> AttentionJob<'a> {
    AttentionJob {
        kv,
        q: &s.q,
        spans,
        heads: case.heads,
        scale: 0.5,
        mask: case.window.map_or(AttentionMask::Causal, AttentionMask::Window),
        soft_cap: case.soft_cap,
    }
}

fn check(case: Case) {
    let s = sequence(&case);
    let dense = DenseAttention {
        q: &s.q,
        k: &s.k,
        v: &s.v,
        shape: (case.heads, case.kv_heads, case.head_dim),
        scale: 0.5,
        soft_cap: case.soft_cap.map(f64::from),
    };
    let window = case.window.unwrap_or(usize::MAX);
    let want = reference::attention(&dense, |pos| (pos + 1).saturating_sub(window)..pos + 1);
    for cpu in cpus(2) {
        let spans = [AttentionSpan { rows: 0..case.positions, start_pos: 0, pages: &s.pages }];
        let mut out = vec![f32::NAN; s.q.len()];
        cpu::attention(&cpu, &job(&case, &s, &s.store.layer(1), &spans), &mut out);
        assert_close(&out, &want, (3e-6, 1.0), &format!("{} {case:?}", cpu.isa().name()));
    }
}

#[test]
fn causal_edge_at_page_boundaries() {
    for positions in [1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97] {
        check(Case { positions, ..PLAIN });
    }
}

#[test]
fn window_edge_at_page_boundaries() {
    for window in [1, 2, 16, 31, 32, 33, 64, 200] {
        check(Case { window: Some(window), positions: 100, ..PLAIN });
    }
}

#[test]
fn shared_kv_heads() {
    for (heads, kv_heads) in [(1, 1), (4, 1), (4, 4), (9, 3), (8, 2)] {
        check(Case { heads, kv_heads, ..PLAIN });
    }
}

#[test]
fn odd_heads_and_pages() {
    for head_dim in [1, 8, 33, 64, 80, 256] {
        check(Case { head_dim, positions: 40, ..PLAIN });
    }
    for page_rows in [1, 7, 16, 24, 64] {
        check(Case { page_rows, ..PLAIN });
    }
}

#[test]
fn soft_cap_bends_the_scores() {
    check(Case { soft_cap: Some(0.7), ..PLAIN });
    check(Case { soft_cap: Some(50.0), window: Some(20), ..PLAIN });
}

#[test]
fn a_row_depends_on_how_its_sequence_was_cut() {
    for window in [None, Some(1), Some(20), Some(33)] {
        let case = Case { window, positions: 100, ..PLAIN };
        let s = sequence(&case);
        for isa in Isa::available() {
            let mut whole = vec![0.0; s.q.len()];
            let spans = [AttentionSpan { rows: 0..100, start_pos: 0, pages: &s.pages }];
            cpu::attention(
                &Cpu::new(1, isa),
                &job(&case, &s, &s.store.layer(1), &spans),
                &mut whole,
            );
            for (chunk, threads) in [(1, 1), (7, 2), (16, 3), (32, 2), (64, 4), (99, 2)] {
                let spans = (0..100usize).step_by(chunk).map(|start| AttentionSpan {
                    rows: start..(start + chunk).min(100),
                    start_pos: start,
                    pages: &s.pages,
                });
                let spans: Vec<_> = spans.collect();
                let cpu = Cpu::new(threads, isa);
                let mut together = vec![0.0; s.q.len()];
                cpu::attention(&cpu, &job(&case, &s, &s.store.layer(1), &spans), &mut together);
                assert_eq!(bits(&together), bits(&whole), "one call, chunk {chunk}");
                let mut apart = vec![0.0; s.q.len()];
                for span in spans {
                    cpu::attention(&cpu, &job(&case, &s, &s.store.layer(1), &[span]), &mut apart);
                }
                assert_eq!(bits(&apart), bits(&whole), "apart, chunk {chunk}");
            }
        }
    }
}

#[test]
fn rows_outside_every_span_are_left_alone() {
    let s = sequence(&PLAIN);
    let spans = [AttentionSpan { rows: 2..3, start_pos: 40, pages: &s.pages }];
    let mut out = vec![7.0; s.q.len()];
    cpu::attention(
        &Cpu::new(2, Isa::best()),
        &job(&PLAIN, &s, &s.store.layer(1), &spans),
        &mut out,
    );
    let width = PLAIN.heads * PLAIN.head_dim;
    assert!(out[..2 * width].iter().chain(&out[3 * width..]).all(|o| *o == 7.0));
    assert!(out[2 * width..3 * width].iter().all(|o| *o != 7.0));
}
