//! Attention of the rows of a token tree: each sees the keys of its own path only, with the bits of a sequence without
//! branches.

use crate::attention::{after_storage, kept, multiplies_pairs, seen, sinks, sparse_masks};
use crate::support::{assert_close, attending, bits, noise};
use lapwing_kernels::cpu::{self, AttentionJob, AttentionSequence, Cpu, KvRows};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvStore, PageId};
use lapwing_kernels::mask::Mask;
use lapwing_kernels::reference::{self, DenseAttention};

#[derive(Clone, Copy, Debug)]
struct Case {
    head_dim: usize,
    page_rows: usize,
    /// Position of the latest token, the root of the tree.
    root: usize,
    mask: &'static Mask,
    sinks: Option<&'static [f32]>,
    dtype: KvDtype,
}

const HEADS: usize = 6;
const KV_HEADS: usize = 2;

/// Rows of each piece: the tokens, the number of the row before the first one, where row 0 is the root, and the piece
/// of that row. The first piece begins with the root.
const PIECES: [(usize, usize, usize); 5] = [(6, 0, 0), (2, 0, 0), (5, 3, 0), (1, 7, 1), (3, 8, 2)];

/// A piece in the batch: first row, number of rows, position of the first row, and pages.
struct Piece {
    row: usize,
    rows: usize,
    start: usize,
    pages: Vec<PageId>,
}

/// Rows of a tree. Row `i` has the query and the keys and values number `i`, and `paths[i]` are the numbers of the rows
/// up to itself from position 0 on.
struct Tree {
    pieces: Vec<Piece>,
    paths: Vec<Vec<usize>>,
}

/// The tree, whose keys and values are written to `store` as a device does it.
fn tree(case: &Case, cpu: &Cpu, store: &KvStore, k: &[f32], v: &[f32]) -> Tree {
    let (width, page_rows) = (KV_HEADS * case.head_dim, case.page_rows);
    let mut free = (0..store.pages() as PageId).rev();
    let mut layer = store.layer(0);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut paths: Vec<Vec<usize>> = (0..=case.root).map(|row| (0..=row).collect()).collect();
    for (number, (rows, after, parent)) in PIECES.into_iter().enumerate() {
        let is_first = number == 0;
        let row = if is_first { 0 } else { paths.len() };
        let start = if is_first { 0 } else { paths[case.root + after].len() };
        let first = paths.len();
        for new in first..first + rows - usize::from(is_first) {
            let before = if new == first { case.root + after } else { new - 1 };
            let path = paths[before].iter().copied().chain([new]).collect();
            paths.push(path);
        }
        let end = if is_first { case.root + rows } else { start + rows };
        let shared = if is_first { 0 } else { start / page_rows };
        let mut pages = if is_first { Vec::new() } else { pieces[parent].pages[..shared].to_vec() };
        pages.extend(free.by_ref().take(end.div_ceil(page_rows) - shared));
        if !start.is_multiple_of(page_rows) {
            layer.copy_page(pieces[parent].pages[shared], pages[shared]);
        }
        let (from, to) = (row * width, (row + end - start) * width);
        let rows = KvRows { pages: &pages, start_pos: start, k: &k[from..to], v: &v[from..to] };
        rows.write(cpu, &mut layer);
        pieces.push(Piece { row, rows: end - start, start, pages });
    }
    Tree { pieces, paths }
}

fn store(case: &Case) -> KvStore {
    let Case { head_dim, page_rows, dtype, .. } = *case;
    let layout = KvLayout::uniform(1, KvHeads::new(KV_HEADS, head_dim), page_rows, dtype);
    let pages = PIECES.len() * layout.pages_for(case.root + 16);
    let store = KvStore::new(layout.clone(), pages as u32).expect("memory");
    let all: Vec<PageId> = (0..pages as PageId).collect();
    let poison = vec![f32::INFINITY; pages * page_rows * KV_HEADS * head_dim];
    let rows = KvRows { pages: &all, start_pos: 0, k: &poison, v: &poison };
    rows.write(&Cpu::new(2, cpu::Isa::best()), &mut store.layer(0));
    store
}

fn attend(
    case: &Case,
    cpu: &Cpu,
    store: &KvStore,
    q: &[f32],
    sequences: &[AttentionSequence<'_>],
) -> Vec<f32> {
    let (mut out, kv) = (vec![0.0; q.len()], store.layer(0));
    let (mask, scale) = (case.mask, 0.5);
    let job = AttentionJob {
        kv: &kv,
        q,
        sequences,
        heads: HEADS,
        scale,
        mask,
        slopes: None,
        sinks: case.sinks,
        soft_cap: None,
    };
    cpu::attention(cpu, &job, &mut out);
    out
}

fn check(case: Case) {
    let rows = case.root + PIECES.iter().map(|(rows, ..)| rows).sum::<usize>();
    let (width, kv_width) = (HEADS * case.head_dim, KV_HEADS * case.head_dim);
    let q = noise(1, rows * width);
    let (k, v) = (noise(2, rows * kv_width), noise(3, rows * kv_width));
    for cpu in attending(2) {
        let what = format!("{} {case:?}", cpu.isa().name());
        let branched = store(&case);
        let Tree { pieces, paths } = tree(&case, &cpu, &branched, &k, &v);
        let all = pieces.iter().map(|Piece { row, rows, start, pages }| AttentionSequence {
            rows: *row..row + rows,
            start_pos: *start,
            pages,
        });
        let found = attend(&case, &cpu, &branched, &q, &all.collect::<Vec<_>>());

        let round = |x: &[f32]| after_storage(case.dtype, case.head_dim, x);
        let shape = (HEADS, KV_HEADS, case.head_dim);
        let (stored_k, stored_v) = (round(&k), round(&v));
        let (k_of, v_of) = (&stored_k[..], &stored_v[..]);
        let of_heads: Option<Vec<f64>> =
            case.sinks.map(|sinks| sinks.iter().copied().map(f64::from).collect());
        let dense = DenseAttention {
            q: &q,
            k: k_of,
            v: v_of,
            shape,
            scale: 0.5,
            slopes: None,
            sinks: of_heads.as_deref(),
            soft_cap: None,
        };
        let want = reference::attention(&dense, |row| {
            let path = &paths[row];
            seen(case.mask, path.len() - 1).into_iter().map(|key| path[key]).collect()
        });
        let tolerance = if multiplies_pairs(&cpu, case.dtype) { 2f64.powi(-6) } else { 3e-6 };
        assert_close(&found, &want, tolerance, 1.0, &what);

        // The path to the last row of each piece as a sequence without branches.
        for piece in &pieces {
            let path = &paths[piece.row + piece.rows - 1];
            let of_path = |x: &[f32], width: usize| -> Vec<f32> {
                path.iter().flat_map(|row| &x[row * width..(row + 1) * width]).copied().collect()
            };
            let linear = store(&case);
            let pages: Vec<PageId> = (0..path.len().div_ceil(case.page_rows) as PageId).collect();
            let (k, v) = (of_path(&k, kv_width), of_path(&v, kv_width));
            let rows = KvRows { pages: &pages, start_pos: 0, k: &k, v: &v };
            rows.write(&cpu, &mut linear.layer(0));
            let sequence = AttentionSequence { rows: 0..path.len(), start_pos: 0, pages: &pages };
            let alone = attend(&case, &cpu, &linear, &of_path(&q, width), &[sequence]);
            assert_eq!(bits(&of_path(&found, width)), bits(&alone), "{what}");
        }
    }
}

const PLAIN: Case = Case {
    head_dim: 16,
    page_rows: 32,
    root: 40,
    mask: &Mask::Causal,
    sinks: None,
    dtype: KvDtype::F16,
};

#[test]
fn a_row_of_a_branch_has_the_bits_of_a_sequence_without_branches() {
    for dtype in KvDtype::ALL {
        for (page_rows, head_dim) in [(32, 16), (7, 33), (1, 8), (16, 80)] {
            for root in [0, 3, 15, 31, 62] {
                check(Case { dtype, page_rows, head_dim, root, ..PLAIN });
            }
        }
    }
}

#[test]
fn a_row_of_a_branch_sees_what_the_mask_lets_it_see_of_its_path() {
    let windows = [1, 3, 33].map(|window| kept(Mask::Window(window)));
    for mask in windows.into_iter().chain(sparse_masks()) {
        check(Case { mask, ..PLAIN });
        check(Case { mask, page_rows: 7, root: 100, ..PLAIN });
    }
}

#[test]
fn a_row_of_a_branch_has_the_sinks_of_a_sequence_without_branches() {
    for dtype in KvDtype::ALL {
        for (page_rows, head_dim, root) in [(32, 16, 300), (7, 33, 31), (1, 8, 3)] {
            let sinks = sinks(HEADS);
            check(Case { dtype, page_rows, head_dim, root, sinks, ..PLAIN });
            check(Case { dtype, page_rows, head_dim, root, sinks, mask: &Mask::Window(5) });
        }
    }
}
