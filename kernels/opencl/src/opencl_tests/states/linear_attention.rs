//! Attention whose keys and values are added up in a state.

use super::super::rows::of_both_kinds;
use super::super::{assert_near, bits, cases, noise};
use super::{Bench, OnDevice, Piece, ROWS, divisions, of_pieces, unknown};
use crate::ops::{LinearAttention, StateRows};
use crate::session::Buffer;
use lapwing_model::graph::WeightId;
use lapwing_model::op::{KeyOrder, LinearAttentionOp, Op, StateRule};
use lapwing_model::reference::{self, LinearRows};

of_both_kinds! {
    linear_attention_agrees_with_the_reference_in_any_chunks_and_company
    linear_attention_of_gpus_agrees_with_the_reference_in_any_chunks_and_company
    check
}

/// Heads of keys, heads of values for each, and values of a key and of a value.
fn shapes() -> Vec<[usize; 4]> {
    let quick = [[2, 3, 5, 17], [1, 2, 128, 128], [2, 1, 17, 40]].to_vec();
    let more = [[1, 1, 1, 1], [3, 1, 16, 16], [2, 2, 64, 128], [1, 2, 256, 24], [1, 1, 128, 64]];
    cases(quick.clone(), [&quick[..], &more].concat())
}

/// The rows of a sequence.
struct Rows {
    op: LinearAttentionOp,
    /// Queries, keys and values side by side.
    mixed: Vec<f32>,
    width: usize,
    factors: usize,
    keep: Vec<f32>,
    rate: Vec<f32>,
    skip: Option<Vec<f32>>,
    decay: Option<Vec<f32>>,
}

impl Rows {
    /// `kind`: bits of the delta rule, of a skip, of keys by turns, and of factors by values of a key; of those beyond 15, of decays.
    fn new([key_heads, shared, key_dim, value_dim]: [usize; 4], kind: usize) -> Rows {
        let (heads, keys) = (key_heads * shared, key_heads * key_dim);
        let is = |bit: usize| kind >> bit & 1 == 1;
        let op = LinearAttentionOp {
            heads,
            key_heads,
            key_order: if is(2) { KeyOrder::Turns } else { KeyOrder::Blocks },
            key_dim,
            value_dim,
            first: [0, keys, 2 * keys],
            rule: if is(0) { StateRule::Delta } else { StateRule::Add },
            scale: 0.3,
            skip: is(1).then_some(WeightId(0)),
            decay: is(4).then_some(WeightId(1)),
            state: 0,
        };
        let width = 2 * keys + heads * value_dim;
        // Keys of length 1, as in delta nets: otherwise the state grows from row to row.
        let mut mixed = noise(1, ROWS * width);
        for row in mixed.chunks_mut(width) {
            for key in row[keys..2 * keys].chunks_mut(key_dim) {
                let length = key.iter().map(|x| x * x).sum::<f32>().sqrt();
                key.iter_mut().for_each(|x| *x /= length);
            }
        }
        let within = |seed, len| noise(seed, len).into_iter().map(f32::abs).collect();
        let factors = if is(3) && !is(4) { key_dim } else { op.rates() };
        let all = heads * op.rates();
        let (keep, rate) = (within(2, ROWS * heads * factors), within(3, ROWS * all));
        let skip = is(1).then(|| noise(4, all));
        let decay = noise(5, heads * value_dim * key_dim).into_iter().map(|x| -3.0 * x.abs());
        let decay = is(4).then(|| decay.collect());
        Rows { op, mixed, width, factors, keep, rate, skip, decay }
    }

    /// The outputs and the last state, `[heads][key_dim][value_dim]`.
    fn reference(&self) -> [Vec<f64>; 2] {
        let (op, keys) = (&self.op, self.op.key_heads * self.op.key_dim);
        let part = |first: usize, len: usize| -> Vec<f32> {
            let rows = self.mixed.chunks(self.width);
            rows.flat_map(|row| row[first..first + len].to_vec()).collect()
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

    /// The outputs of pieces in a batch.
    fn run(&self, bench: &mut Bench, pieces: &[Piece], states: &Buffer) -> Vec<f32> {
        let (op, of_keep) = (&self.op, self.op.heads * self.factors);
        let batch = OnDevice::new(bench, pieces);
        let placed = |x: &[f32], width| bench.guarded(&of_pieces(x, width, pieces), width);
        let mixed = placed(&self.mixed, self.width);
        let (keep, rate) = (placed(&self.keep, of_keep), placed(&self.rate, op.heads * op.rates()));
        let skip = self.skip.as_ref().map(|skip| bench.floats(skip));
        let (_, order) = Op::LinearAttention(Box::new(*op)).by_column().unzip();
        let decays = self.decay.iter().zip(order);
        let decays = decays.map(|(x, order)| order.of(x, op.key_dim)).next();
        let decays = decays.map(|decays| bench.floats(&decays));
        let out = bench.room(batch.rows, op.heads * op.value_dim);
        let job = LinearAttention {
            op,
            inputs: [mixed.view(), mixed.view(), mixed.view(), keep.view(), rate.view()],
            factors: self.factors,
            skip: skip.as_ref(),
            decays: decays.as_ref(),
            state: StateRows { states, spans: batch.spans(), rows: batch.rows },
            out: out.view(),
        };
        bench.kernels.linear_attention(&job).unwrap();
        bench.rows(&out)
    }

    /// A state in the order of the reference.
    fn stored(&self, states: &[f32], place: usize) -> Vec<f32> {
        let LinearAttentionOp { heads, key_dim, value_dim, .. } = self.op;
        let block = LinearAttentionOp::BLOCK;
        let blocks = value_dim.div_ceil(block);
        let state = &states[place * self.values()..][..self.values()];
        let mut found = Vec::new();
        for line in 0..heads * key_dim {
            let (head, key) = (line / key_dim, line % key_dim);
            let of = |column: usize| {
                ((head * blocks + column / block) * key_dim + key) * block + column % block
            };
            found.extend((0..value_dim).map(|column| state[of(column)]));
        }
        found
    }

    fn values(&self) -> usize {
        LinearAttentionOp::state_values(self.op.heads, self.op.key_dim, self.op.value_dim)
    }
}

fn check(mut bench: Bench) {
    for shape in shapes() {
        for kind in (0..32).step_by(cases(6, 3)) {
            let what = format!("{shape:?}, kind {kind}");
            let x = Rows::new(shape, kind);
            let wide = x.op.heads * x.op.value_dim;
            let states = unknown(&bench, x.values());
            let whole = x.run(&mut bench, &[Piece::own(0, 0..ROWS)], &states);
            let [wanted, wanted_state] = x.reference();
            assert_near(&whole, &wanted, 2e-5, &what);
            let last = x.stored(&bench.read(&states), 0);
            assert_near(&last, &wanted_state, 2e-5, &what);
            for batches in divisions() {
                let states = unknown(&bench, x.values());
                for pieces in batches {
                    let found = x.run(&mut bench, &pieces, &states);
                    let wanted = of_pieces(&whole, wide, &pieces);
                    assert!(bits(&found) == bits(&wanted), "{what}: {pieces:?}");
                    let states = bench.read(&states);
                    for piece in pieces.iter().filter(|piece| piece.rows.end == ROWS) {
                        let found = x.stored(&states, piece.states.to as usize);
                        assert!(bits(&found) == bits(&last), "{what}: the state of {piece:?}");
                    }
                }
            }
        }
    }
}
