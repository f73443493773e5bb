//! The graph of oracles, and the expected values.

use std::ops::Range;

use lapwing_actors::message::FinishReason;
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, ValueId, WeightSpec};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout};
use lapwing_kernels::mask::Mask;
use lapwing_kernels::op::{AttentionOp, Op, ShortConvOp};
use lapwing_kernels::part::Share;

/// Hash of no tokens.
pub(super) const START: u64 = 0xcbf2_9ce4_8422_2325;

pub const VOCAB: usize = 97;
pub const PAGE_ROWS: usize = 4;
/// Token that ends a text.
pub const STOP: u32 = 96;
/// Channels of every value except the logits: two shares of [`Share::ALIGN`].
pub const WIDTH: usize = 2 * Share::ALIGN;
/// Row counts for which an NPU oracle has graphs.
pub const SIZES: [usize; 4] = [4, 8, 16, 32];

/// What a graph has beside what every graph has.
#[derive(Clone, Copy, Default)]
pub struct Form {
    /// States in its layers.
    pub states: bool,
    /// Hidden states of rows that another model is given, which it passes on.
    pub passes_on: bool,
    /// Rows that it is given; it passes on those whose output is wanted.
    pub given: bool,
}

/// A graph of `layers` layers with every kind of block; only its shape matters to the oracle.
pub fn graph(layers: usize) -> Graph {
    graph_of(layers, Form::default())
}

/// As [`graph`], in that form.
pub fn graph_of(layers: usize, form: Form) -> Graph {
    let mut graph = Graph::default();
    let mut weight = |name: &str, rows, cols| {
        graph.add_weight(WeightSpec { name: name.to_owned(), rows, cols, dtype: DType::F32 })
    };
    let table = weight("table", VOCAB, WIDTH);
    let gain = weight("gain", 1, WIDTH);
    let matrix = weight("matrix", WIDTH, WIDTH);
    let head = weight("head", VOCAB, WIDTH);
    let taps = form.states.then(|| weight("taps", WIDTH, 3));
    let mut push = |op, inputs: &[ValueId], width, layer| {
        graph.push(NewNode { op, inputs, width, layer, role: "oracle" })
    };
    let mut x = push(Op::Embed { table, scale: 1.0 }, &[], WIDTH, None);
    if form.given {
        let given = push(Op::Given, &[], WIDTH, None);
        x = push(Op::Add, &[x, given], WIDTH, None);
    }
    for layer in 0..layers {
        let mut push = |op, inputs: &[ValueId]| push(op, inputs, WIDTH, Some(layer));
        let matmul = || Op::MatMul { weight: matrix, bias: None };
        let normed = push(Op::RmsNorm { weight: Some(gain), group: WIDTH, eps: 1e-5 }, &[x]);
        let (q, k) = (push(matmul(), &[normed]), push(matmul(), &[normed]));
        let op = AttentionOp {
            layer,
            scale: 1.0,
            window: None,
            mask: Mask::Causal,
            soft_cap: None,
            alibi: None,
            sinks: None,
        };
        let mut mixed = push(Op::Attention(op), &[q, k, k]);
        if let Some(weight) = taps {
            let op = ShortConvOp { weight, bias: None, is_silu: false, state: layer };
            mixed = push(Op::ShortConv(op), &[mixed]);
        }
        let out = push(matmul(), &[mixed]);
        x = push(Op::Add, &[out, x]);
    }
    if form.passes_on {
        let node =
            NewNode { op: Op::SelectRows, inputs: &[x], width: WIDTH, layer: None, role: "oracle" };
        x = graph.push_passed(node);
    }
    let mut push = |op, inputs: &[ValueId], width, layer| {
        graph.push(NewNode { op, inputs, width, layer, role: "oracle" })
    };
    // Nothing reads what is passed on, as the oracle writes other values there.
    let norm = || Op::RmsNorm { weight: Some(gain), group: WIDTH, eps: 1e-5 };
    let mut passed = form.passes_on.then(|| push(norm(), &[x], WIDTH, None));
    let selected = push(Op::SelectRows, &[x], WIDTH, None);
    if form.given {
        passed = Some(push(norm(), &[selected], WIDTH, None));
    }
    push(Op::MatMul { weight: head, bias: None }, &[selected], VOCAB, None);
    passed.into_iter().for_each(|value| graph.pass_on(value));
    graph
}

pub fn layout() -> KvLayout {
    KvLayout::uniform(1, KvHeads::new(1, 2), PAGE_ROWS, KvDtype::F16)
}

pub(super) fn mix(hash: u64, id: u32) -> u64 {
    (hash ^ u64::from(id)).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
}

/// The token that follows `ids`.
pub fn next_token(ids: &[u32]) -> u32 {
    (ids.iter().fold(START, |h, id| mix(h, *id)) % VOCAB as u64) as u32
}

/// The tokens that follow a prompt, and the finish reason.
pub fn foretell(prompt: &[u32], tokens_max: usize) -> (Vec<u32>, FinishReason) {
    let mut ids = prompt.to_vec();
    for _ in 0..tokens_max {
        let next = next_token(&ids);
        ids.push(next);
        if next == STOP {
            return (ids.split_off(prompt.len()), FinishReason::Stop);
        }
    }
    (ids.split_off(prompt.len()), FinishReason::Length)
}

/// Channels that hold the hash of the tokens up to a row, in what is passed on.
const HASH_CHANNELS: usize = 4;

/// What a row passes on that comes after tokens of that hash.
pub(super) fn passed(hash: u64) -> Vec<f32> {
    let digits = (0..HASH_CHANNELS).map(|at| (hash >> (16 * at) & 0xffff) as f32);
    digits.chain(std::iter::repeat(0.0)).take(WIDTH).collect()
}

/// The hash in a row that a model is given.
pub(super) fn given(row: &[f32]) -> u64 {
    let digits = row[..HASH_CHANNELS].iter().enumerate();
    digits.map(|(at, digit)| (*digit as u64) << (16 * at)).sum()
}

/// Expected first channel of a value; each further channel is one more.
pub(super) fn expected(value: ValueId, id: u32, position: u32) -> f32 {
    (mix(mix(mix(7, id), position), value.0 as u32) % 65_536) as f32
}

/// Hidden states of these rows of a text, in a graph of `layers` layers.
pub fn hidden(ids: &[u32], rows: Range<usize>, layers: usize) -> Vec<f32> {
    let value = graph(layers).hidden().output();
    let row = |at: usize| {
        let first = expected(value, ids[at], at as u32);
        (0..WIDTH).map(move |feature| first + feature as f32)
    };
    rows.flat_map(row).collect()
}
