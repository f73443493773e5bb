//! Linear attention has the values of the reference, and the same bits in any chunks and batches and on any threads; each page has the
//! state after the latest of its rows.

use crate::support::{assert_close, bits, cpus, noise};
use lapwing_kernels::cpu::{Cpu, Isa, LinearAttention, WideRows, linear_attention};
use lapwing_kernels::device::Batch;
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvStore, PageId, StateLayout};
use lapwing_kernels::op::{KeyOrder, LinearAttentionOp, StateRule};
use lapwing_kernels::reference::{self, LinearRows};
use proptest::prelude::*;

/// The rows of a sequence: queries, keys and values side by side, and the other inputs.
struct Rows {
    mixed: Vec<f32>,
    keep: Vec<f32>,
    rate: Vec<f32>,
    skip: Option<Vec<f32>>,
    op: LinearAttentionOp,
    /// Kept values of a head.
    kept: usize,
}

impl Rows {
    fn new(op: LinearAttentionOp, kept: usize, rows: usize) -> Rows {
        // Keys of length 1, as in delta nets: otherwise the state grows from row to row.
        let (keys, width) = (op.key_heads * op.key_dim, Rows::width(&op));
        let mut mixed = noise(1, rows * width);
        for row in mixed.chunks_mut(width) {
            for key in row[keys..2 * keys].chunks_mut(op.key_dim) {
                let length = key.iter().map(|x| x * x).sum::<f32>().sqrt();
                key.iter_mut().for_each(|x| *x /= length);
            }
        }
        let within = |seed, len| noise(seed, len).into_iter().map(|x| x.abs()).collect();
        let keep = within(2, rows * op.heads * kept);
        let skip = op.skip.map(|_| noise(4, op.heads));
        Rows { mixed, keep, rate: within(3, rows * op.heads), skip, op, kept }
    }

    fn width(op: &LinearAttentionOp) -> usize {
        2 * op.key_heads * op.key_dim + op.heads * op.value_dim
    }

    fn reference(&self) -> [Vec<f64>; 2] {
        let (op, width) = (&self.op, Rows::width(&self.op));
        let keys = op.key_heads * op.key_dim;
        let part = |first: usize, len: usize| -> Vec<f32> {
            self.mixed.chunks(width).flat_map(|row| row[first..first + len].to_vec()).collect()
        };
        let (q, k) = (part(0, keys), part(keys, keys));
        let v = part(2 * keys, op.heads * op.value_dim);
        let (keep, rate, skip) = (&self.keep, &self.rate, self.skip.as_deref());
        reference::linear_attention(op, &LinearRows { q: &q, k: &k, v: &v, keep, rate, skip })
    }

    /// The output of the sequence in chunks that end at these rows, the first of which begins at `start`. Beside it another one with other
    /// pages has the same rows.
    fn run(
        &self,
        cpu: &Cpu,
        store: &KvStore,
        cuts: &Cuts<'_>,
        pages: &[Vec<PageId>; 2],
    ) -> Vec<f32> {
        let (op, wide, mut start) = (&self.op, Rows::width(&self.op), cuts.start);
        let kept = op.heads * self.kept;
        let mut all = Vec::new();
        for &end in cuts.ends {
            let mut batch = Batch::default();
            for pages in pages {
                batch.push(&vec![0; end - start], start, pages.clone(), 0..0);
            }
            let twice = |x: &[f32], width: usize| x[start * width..end * width].repeat(2);
            let mixed = twice(&self.mixed, wide);
            let (keep, rate) = (twice(&self.keep, kept), twice(&self.rate, op.heads));
            let mixed = WideRows { x: &mixed, width: wide };
            let keep = WideRows { x: &keep, width: kept };
            let rate = WideRows { x: &rate, width: op.heads };
            let inputs = [mixed, mixed, mixed, keep, rate];
            let job = LinearAttention { op, inputs, skip: self.skip.as_deref() };
            let mut out = vec![f32::NAN; 2 * (end - start) * op.heads * op.value_dim];
            linear_attention(cpu, &job, &batch.spans, &mut store.state(0), &mut out);
            let (first, second) = out.split_at(out.len() / 2);
            assert_eq!(bits(first), bits(second), "equal sequences");
            all.extend(first);
            start = end;
        }
        all
    }
}

/// Where a sequence begins, and where its chunks end.
struct Cuts<'a> {
    start: usize,
    ends: &'a [usize],
}

fn store(op: &LinearAttentionOp, page_rows: usize, pages: usize) -> KvStore {
    let layout = KvLayout::uniform(0, KvHeads::new(0, 0), page_rows, KvDtype::default());
    let values = LinearAttentionOp::state_values(op.heads, op.key_dim, op.value_dim);
    let layout = KvLayout { states: [StateLayout { values }].into(), ..layout };
    let store = KvStore::new(layout, pages as u32).expect("memory");
    // Pages of other sequences.
    store.state(0).all_mut().fill(f32::NAN);
    store
}

/// Pages of two sequences, by turns.
fn pages(rows: usize, page_rows: usize) -> [Vec<PageId>; 2] {
    let each = rows.div_ceil(page_rows) as PageId;
    [0, 1].map(|at| (0..each).rev().map(|page| 2 * page + at).collect())
}

/// The state of a head in the order of the reference.
fn stored(op: &LinearAttentionOp, store: &KvStore, pages: &[PageId], rows: usize) -> Vec<f32> {
    let state = store.state(0);
    let state = state.before(pages, rows);
    let blocks = op.value_dim.div_ceil(LinearAttentionOp::BLOCK);
    let place = |head: usize, key: usize, column: usize| {
        let block = head * blocks + column / LinearAttentionOp::BLOCK;
        (block * op.key_dim + key) * LinearAttentionOp::BLOCK + column % LinearAttentionOp::BLOCK
    };
    let keys = (0..op.heads).flat_map(|head| (0..op.key_dim).map(move |key| (head, key)));
    let columns = 0..op.value_dim;
    keys.flat_map(|(head, key)| columns.clone().map(move |column| place(head, key, column)))
        .map(|at| state[at])
        .collect()
}

fn op([key_heads, shared, key_dim, value_dim]: [usize; 4], kind: u8) -> LinearAttentionOp {
    let keys = key_heads * key_dim;
    let skip = (kind & 2 > 0).then_some(lapwing_kernels::graph::WeightId(0));
    LinearAttentionOp {
        heads: key_heads * shared,
        key_heads,
        key_order: if kind & 4 > 0 { KeyOrder::Turns } else { KeyOrder::Blocks },
        key_dim,
        value_dim,
        first: [0, keys, 2 * keys],
        rule: if kind & 1 > 0 { StateRule::Delta } else { StateRule::Add },
        scale: 0.3,
        skip,
        state: 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_chunks_have_the_bits_of_a_whole_sequence_and_the_values_of_the_reference(
        (key_heads, shared, key_dim, value_dim) in (1usize..4, 1usize..4, 1usize..40, 1usize..40),
        (kind, by_key, threads, page_rows) in (0u8..8, any::<bool>(), 1usize..4, 1usize..9),
        lengths in prop::collection::vec(1usize..12, 1..7),
    ) {
        let op = op([key_heads, shared, key_dim, value_dim], kind);
        let ends: Vec<usize> =
            (1..=lengths.len()).map(|n| lengths[..n].iter().sum()).collect();
        let rows = lengths.iter().sum();
        let x = Rows::new(op, if by_key { key_dim } else { 1 }, rows);
        let pages = pages(rows, page_rows);
        let all = 2 * rows.div_ceil(page_rows);
        let [want, want_state] = x.reference();
        for isa in Isa::available() {
            let known = store(&op, page_rows, all);
            let whole = x.run(&Cpu::new(1, isa), &known, &Cuts { start: 0, ends: &[rows] }, &pages);
            assert_close(&whole, &want, 2e-5, 1.0, isa.name());
            let state = stored(&op, &known, &pages[0], rows);
            assert_close(&state, &want_state, 2e-5, 1.0, isa.name());
            let cut_store = store(&op, page_rows, all);
            let cut = x.run(&Cpu::new(threads, isa), &cut_store, &Cuts { start: 0, ends: &ends }, &pages);
            prop_assert_eq!(bits(&cut), bits(&whole), "{}", isa.name());
            let of = |store: &KvStore| bits(store.state(0).all_mut());
            prop_assert_eq!(of(&cut_store), of(&known), "{}", isa.name());
        }
    }
}

#[test]
fn a_sequence_goes_on_from_the_end_of_any_full_page_of_another() {
    let op = op([2, 2, 17, 20], 1);
    let (page_rows, rows) = (3, 14);
    let x = Rows::new(op, 1, rows);
    for cpu in cpus(2) {
        let store = store(&op, page_rows, 20);
        let cuts = Cuts { start: 0, ends: &[rows] };
        let whole = x.run(&cpu, &store, &cuts, &pages(rows, page_rows));
        for shared in 1..5 {
            let start = shared * page_rows;
            let own = pages(rows, page_rows).map(|known| {
                let new = known[shared..].iter().map(|page| page + 10);
                known[..shared].iter().copied().chain(new).collect::<Vec<_>>()
            });
            let cuts = Cuts { start, ends: &[rows - 1, rows] };
            let found = x.run(&cpu, &store, &cuts, &own);
            assert_eq!(bits(&found), bits(&whole[start * 80..]), "{shared} pages");
        }
    }
}
