//! FLOPs of attention in chunks: the chunks of a prompt add up to the closed form.

use lapwing_kernels::device::Batch;
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::mask::Mask;
use lapwing_kernels::op::{AttentionOp, Op};
use lapwing_plan::strategy::{PromptRows, StrategyOptions, all};
use proptest::prelude::*;

mod work;

use work::AttentionWork;

use crate::setup::Setup;

/// A graph of one attention op with H heads of D values.
fn attention(heads: usize, head_dim: usize) -> Graph {
    let width = heads * head_dim;
    let mut g = Graph::default();
    let spec = WeightSpec { name: "t".into(), rows: 10, cols: width, dtype: DType::F32 };
    let table = g.add_weight(spec);
    let node = |op, inputs| NewNode { op, inputs, width, layer: None, role: "test" };
    let x = g.push(node(Op::Embed { table, scale: 1.0 }, &[]));
    let op = AttentionOp {
        layer: 0,
        scale: 1.0,
        window: None,
        mask: Mask::Causal,
        soft_cap: None,
        alibi: None,
        sinks: None,
    };
    g.push(NewNode { op: Op::Attention(op), inputs: &[x, x, x], width, layer: None, role: "test" });
    g
}

/// FLOPs of one chunk of each of the sequences, as the graph counts them.
fn graph_flops(graph: &Graph, sequences: u64, start: u64, rows: u64) -> u128 {
    let mut batch = Batch::default();
    for _ in 0..sequences {
        batch.push(&vec![0; rows as usize], start as usize, Vec::new(), 0..0);
    }
    u128::from(graph.cost(1, &batch).flops)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_chunks_of_every_strategy_add_up_to_the_closed_form(
        rows in 1..5000usize,
        chunk in 1..1500usize,
        most in 1..3000usize,
        (batch, heads, head_dim) in (1..4u64, 1..9u64, 1..65u64),
    ) {
        let work = AttentionWork { batch, heads, head_dim };
        let graph = attention(heads as usize, head_dim as usize);
        let mut setup = Setup::new("llama", "cpu gpu npu");
        setup.chunk_rows = most;
        let options = StrategyOptions { chunk: Some(chunk), ..StrategyOptions::default() };
        for strategy in all(&options) {
            let size = strategy.chunk_rows(&setup.input(), PromptRows::new(rows));
            let (mut start, mut rectangles, mut causal, mut counted) = (0, 0, 0, 0);
            let mut same = true;
            while start < rows {
                let taken = strategy.chunk_rows(&setup.input(), PromptRows { all: rows, remaining: rows - start });
                same &= taken == size || taken == rows - start;
                let (at, taken_rows) = (start as u64, taken as u64);
                rectangles += work.chunk(at, taken_rows);
                causal += work.causal(at, taken_rows);
                counted += graph_flops(&graph, batch, at, taken_rows);
                start += taken;
            }
            // `auto` may decide again for the rest of a prompt; the others use one chunk size.
            prop_assert!(same || strategy.name() == "auto");
            if same {
                prop_assert_eq!(rectangles, work.chunked(rows as u64, size as u64));
            }
            prop_assert_eq!(causal, work.causal(0, rows as u64));
            prop_assert_eq!(counted, causal);
            prop_assert!(causal <= rectangles && rectangles <= work.unchunked(rows as u64));
        }
    }

    #[test]
    fn the_general_form_reduces_to_that_of_full_chunks(
        chunks in 1..2000u64,
        chunk in 1..2000u64,
        (batch, heads, head_dim) in (1..9u64, 1..200u64, 1..300u64),
    ) {
        let work = AttentionWork { batch, heads, head_dim };
        let rows = chunks * chunk;
        let dbh = u128::from(batch * heads * head_dim);
        let (s, c) = (u128::from(rows), u128::from(chunk));
        prop_assert_eq!(work.unchunked(rows), 4 * s * s * dbh);
        prop_assert_eq!(work.chunked(rows, chunk), 2 * c * s * dbh + 2 * s * s * dbh);
        // chunked / unchunked = ½·(1 + C/S).
        prop_assert_eq!(work.chunked(rows, chunk) * 2 * s, work.unchunked(rows) * (s + c));
        let i = u128::from(chunks);
        prop_assert_eq!(work.chunk(rows - chunk, chunk), 4 * i * c * c * dbh);
    }

    #[test]
    fn a_remainder_costs_its_rows_times_all_keys(
        (q, c, r) in (0..1000u64, 1..1000u64, 0..1000u64),
        (batch, heads, head_dim) in (1..9u64, 1..200u64, 1..300u64),
    ) {
        let (rows, r) = (q * c + r % c, r % c);
        let work = AttentionWork { batch, heads, head_dim };
        let whole = work.chunked(q * c, c);
        prop_assert_eq!(work.chunked(rows, c), whole + work.chunk(q * c, r));
        prop_assert_eq!(work.chunked(rows, 0), work.unchunked(rows));
    }
}
