//! Linear attention has the values of the reference, and the same bits in any chunks and batches and on any threads, also where
//! it goes on from a state that is kept.

use crate::support::{assert_close, bits, cpus, noise};
use lapwing_kernels::cpu::{Cpu, Isa, LinearAttention, WideRows, linear_attention};
use lapwing_kernels::device::Batch;
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvStore, StateId, StateLayout};
use lapwing_kernels::op::{KeyOrder, LinearAttentionOp, Op, StateRule};
use lapwing_kernels::reference::{self, LinearRows};
use proptest::prelude::*;

/// The rows of a sequence: queries, keys and values side by side, and the other inputs.
struct Rows {
    mixed: Vec<f32>,
    keep: Vec<f32>,
    rate: Vec<f32>,
    skip: Option<Vec<f32>>,
    decay: Option<Vec<f32>>,
    op: LinearAttentionOp,
    /// Kept values of a head.
    kept: usize,
}

impl Rows {
    fn new(op: LinearAttentionOp, by_key: bool, rows: usize) -> Rows {
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
        let (kept, rates) = (if by_key { op.key_dim } else { op.rates() }, op.heads * op.rates());
        let (keep, rate) = (within(2, rows * op.heads * kept), within(3, rows * rates));
        let skip = op.skip.map(|_| noise(4, rates));
        let decay = noise(5, op.heads * op.value_dim * op.key_dim).into_iter();
        let decay = op.decay.map(|_| decay.map(|x| -3.0 * x.abs()).collect());
        Rows { mixed, keep, rate, skip, decay, op, kept }
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
        let decay = self.decay.as_deref();
        reference::linear_attention(
            op,
            &LinearRows { q: &q, k: &k, v: &v, keep, rate, skip, decay },
        )
    }

    /// The output of the sequence in chunks that end at these rows, the first of which begins at `start`. Beside it another one at another
    /// place has the same rows.
    fn run(&self, cpu: &Cpu, store: &KvStore, cuts: &Cuts<'_>) -> Vec<f32> {
        let (op, wide, mut start) = (&self.op, Rows::width(&self.op), cuts.start);
        let (kept, rates) = (op.heads * self.kept, op.heads * op.rates());
        let (_, order) = Op::LinearAttention(Box::new(*op)).by_column().unzip();
        let decays = self.decay.iter().zip(order);
        let decays = decays.map(|(x, order)| order.of(x, op.key_dim)).next();
        let mut all = Vec::new();
        for &end in cuts.ends {
            let mut batch = Batch::default();
            for own in 0..2 {
                batch.push(&vec![0; end - start], start, [own], 0..0);
                let states = &mut batch.spans[own as usize].states;
                if cuts.are_kept {
                    // Some at two places.
                    let spare = kept_after(self.rate.len() / rates, own);
                    let places =
                        |rows: usize| [spare, kept_after(rows, own)].into_iter().skip(rows % 2);
                    let inner = start + 1..end;
                    let inner = inner.flat_map(|rows| places(rows).map(move |place| (rows, place)));
                    states.keep = inner.collect();
                    states.from = (start > 0).then(|| kept_after(start, own));
                }
            }
            let twice = |x: &[f32], width: usize| x[start * width..end * width].repeat(2);
            let mixed = twice(&self.mixed, wide);
            let (keep, rate) = (twice(&self.keep, kept), twice(&self.rate, rates));
            let mixed = WideRows { x: &mixed, width: wide };
            let keep = WideRows { x: &keep, width: kept };
            let rate = WideRows { x: &rate, width: rates };
            let inputs = [mixed, mixed, mixed, keep, rate];
            let (skip, decays) = (self.skip.as_deref(), decays.as_deref());
            let job = LinearAttention { op, inputs, skip, decays };
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
    /// Whether states are kept after each row, and it begins at such a state.
    are_kept: bool,
}

/// The place of the state after so many rows of one of the sequences.
fn kept_after(rows: usize, own: StateId) -> StateId {
    2 * rows as StateId + own
}

fn store(op: &LinearAttentionOp, places: usize) -> KvStore {
    let layout = KvLayout::uniform(0, KvHeads::new(0, 0), 1, KvDtype::default());
    let values = LinearAttentionOp::state_values(op.heads, op.key_dim, op.value_dim);
    let layout = KvLayout { states: [StateLayout { values }].into(), ..layout };
    let store = KvStore::new(layout, places as u32).expect("memory");
    // States of other sequences.
    store.state(0).all_mut().fill(f32::NAN);
    store
}

/// The state of a head in the order of the reference.
fn stored(op: &LinearAttentionOp, store: &KvStore, at: StateId) -> Vec<f32> {
    let state = store.state(0);
    let state = state.at(at);
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
        decay: (kind & 8 > 0).then_some(lapwing_kernels::graph::WeightId(1)),
        state: 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_chunks_have_the_bits_of_a_whole_sequence_and_the_values_of_the_reference(
        (key_heads, shared, key_dim, value_dim) in (1usize..4, 1usize..4, 1usize..40, 1usize..40),
        (kind, by_key, threads) in (0u8..16, any::<bool>(), 1usize..4),
        lengths in prop::collection::vec(1usize..12, 1..7),
    ) {
        let op = op([key_heads, shared, key_dim, value_dim], kind);
        let ends: Vec<usize> =
            (1..=lengths.len()).map(|n| lengths[..n].iter().sum()).collect();
        let rows = lengths.iter().sum();
        let x = Rows::new(op, by_key && op.decay.is_none(), rows);
        let [want, want_state] = x.reference();
        for isa in Isa::available() {
            let known = store(&op, 2);
            let cuts = Cuts { start: 0, ends: &[rows], are_kept: false };
            let whole = x.run(&Cpu::new(1, isa), &known, &cuts);
            assert_close(&whole, &want, 2e-5, 1.0, isa.name());
            let state = stored(&op, &known, 0);
            assert_close(&state, &want_state, 2e-5, 1.0, isa.name());
            let cut_store = store(&op, 2);
            let cuts = Cuts { start: 0, ends: &ends, are_kept: false };
            let cut = x.run(&Cpu::new(threads, isa), &cut_store, &cuts);
            prop_assert_eq!(bits(&cut), bits(&whole), "{}", isa.name());
            let of = |store: &KvStore| bits(store.state(0).all_mut());
            prop_assert_eq!(of(&cut_store), of(&known), "{}", isa.name());
        }
    }
}

#[test]
fn a_sequence_goes_on_where_another_has_kept_its_state() {
    let op = op([2, 2, 17, 20], 1);
    let rows = 14;
    let x = Rows::new(op, false, rows);
    for cpu in cpus(2) {
        let store = store(&op, 2 * rows + 2);
        let ends = &[rows][..];
        let cuts = |start| Cuts { start, ends, are_kept: true };
        let whole = x.run(&cpu, &store, &cuts(0));
        let last = stored(&op, &store, 1);
        for start in 1..rows {
            let before = stored(&op, &store, kept_after(start, 1));
            let found = x.run(&cpu, &store, &cuts(start));
            assert_eq!(bits(&found), bits(&whole[start * 80..]), "after {start} rows");
            assert_eq!(stored(&op, &store, 1), last, "after {start} rows");
            assert_eq!(stored(&op, &store, kept_after(start, 1)), before, "what is kept stays");
        }
    }
}
