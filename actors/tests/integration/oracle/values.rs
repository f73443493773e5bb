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

/// A graph of `layers` layers with every kind of block; only its shape matters to the oracle.
pub fn graph(layers: usize) -> Graph {
    graph_of(layers, false)
}

/// As [`graph`]; its layers may have states.
pub fn graph_of(layers: usize, with_states: bool) -> Graph {
    let mut graph = Graph::default();
    let mut weight = |name: &str, rows, cols| {
        graph.add_weight(WeightSpec { name: name.to_owned(), rows, cols, dtype: DType::F32 })
    };
    let table = weight("table", VOCAB, WIDTH);
    let gain = weight("gain", 1, WIDTH);
    let matrix = weight("matrix", WIDTH, WIDTH);
    let head = weight("head", VOCAB, WIDTH);
    let taps = with_states.then(|| weight("taps", WIDTH, 3));
    let mut push = |op, inputs: &[ValueId], width, layer| {
        graph.push(NewNode { op, inputs, width, layer, role: "oracle" })
    };
    let mut x = push(Op::Embed { table, scale: 1.0 }, &[], WIDTH, None);
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
    let selected = push(Op::SelectRows, &[x], WIDTH, None);
    push(Op::MatMul { weight: head, bias: None }, &[selected], VOCAB, None);
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
