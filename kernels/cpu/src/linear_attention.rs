//! Attention whose keys and values are added up in a state.

use crate::context::Cpu;
use crate::loops::linear_attention::{HeadRows, Strided};
use crate::pool::RowPairs;
use lapwing_model::device::{BatchSpan, SpanStates};
use lapwing_model::kv::{StateId, StateLayer};
use lapwing_model::op::LinearAttentionOp;
use std::cell::RefCell;
use std::ops::Range;

/// Rows of some sequences.
#[derive(Clone, Copy, Debug)]
pub struct LinearAttention<'a> {
    /// Heads, rule and places of the values.
    pub op: &'a LinearAttentionOp,
    /// q, k, v, keep and rate of [`Op::LinearAttention`](lapwing_model::op::Op::LinearAttention).
    pub inputs: [WideRows<'a>; 5],
    /// How much of a value is added to the output, by head.
    pub skip: Option<&'a [f32]>,
}

/// Rows of a value.
#[derive(Clone, Copy, Debug)]
pub struct WideRows<'a> {
    /// `[rows][width]`.
    pub x: &'a [f32],
    /// Values of a row.
    pub width: usize,
}

impl<'a> WideRows<'a> {
    /// The values of a head, from that row on.
    fn head(&self, row: usize, column: usize, len: usize) -> Strided<'a> {
        Strided { x: &self.x[row * self.width + column..], stride: self.width, len }
    }
}

impl<'a> LinearAttention<'a> {
    /// One head of the rows from that one on.
    fn head(&self, head: usize, row: usize) -> HeadRows<'a> {
        let (op, [q, k, v, keep, rate]) = (self.op, self.inputs);
        let (key, kept) = (op.key_head(head) * op.key_dim, keep.width / op.heads);
        HeadRows {
            q: q.head(row, op.first[0] + key, op.key_dim),
            k: k.head(row, op.first[1] + key, op.key_dim),
            v: v.head(row, op.first[2] + head * op.value_dim, op.value_dim),
            keep: keep.head(row, head * kept, kept),
            rate: rate.head(row, head, 1),
            rule: op.rule,
            scale: op.scale,
            skip: self.skip.map(|skip| skip[head]),
        }
    }
}

/// Rows of spans up to where each keeps its state next, and the places of the states that they change.
#[derive(Debug, Default)]
struct Round {
    places: Vec<StateId>,
    rows: Vec<Range<usize>>,
    /// Of each span the next position, and how many of its states are kept.
    next: Vec<(usize, usize)>,
}

thread_local! {
    static ROUND: RefCell<Round> = RefCell::default();
}

impl Round {
    fn start(&mut self, spans: &[BatchSpan], state: &mut StateLayer<'_>) {
        self.next.clear();
        self.next.extend(spans.iter().map(|span| (span.start, 0)));
        spans.iter().for_each(|span| state.enter(span));
    }

    /// Keeps the states after the rows so far where spans ask for it, and goes on with the next rows. Returns whether there are any.
    fn advance(&mut self, spans: &[BatchSpan], state: &mut StateLayer<'_>) -> bool {
        self.places.clear();
        self.rows.clear();
        for (span, (next, kept)) in spans.iter().zip(&mut self.next) {
            let SpanStates { to, keep, .. } = &span.states;
            while let Some((end, place)) = keep.get(*kept)
                && end == next
            {
                state.copy(*to, *place);
                *kept += 1;
            }
            let end = keep.get(*kept).map_or(span.end(), |(end, _)| *end);
            let positions = *next..end;
            if positions.is_empty() {
                continue;
            }
            self.places.push(*to);
            let row = |position: usize| span.rows.start + position - span.start;
            self.rows.push(row(positions.start)..row(positions.end));
            *next = positions.end;
        }
        !self.rows.is_empty()
    }
}

/// Changes the states of heads by rows, one after another, and makes what each row reads. A value depends on its row and those before
/// it only, and not on spans.
///
/// # Panics
/// When inputs or outputs are not rows of that op, the state is not that of its heads, or spans are not rows of different sequences.
pub fn linear_attention(
    ctx: &Cpu,
    job: &LinearAttention<'_>,
    spans: &[BatchSpan],
    state: &mut StateLayer<'_>,
    out: &mut [f32],
) {
    let (op, single_len) = (job.op, state.values());
    let wanted = LinearAttentionOp::state_values(op.heads, op.key_dim, op.value_dim);
    assert_eq!(single_len, wanted, "the state");
    let (row_len, kernel) = (op.heads * op.value_dim, ctx.kernels().linear_attention);
    let mut round = ROUND.take();
    round.start(spans, state);
    while round.advance(spans, state) {
        let (picks, blocks) = (&round.places[..], &round.rows[..]);
        let singles = state.all_mut();
        let data = &mut *out;
        let parts = op.heads;
        let pairs = RowPairs { singles, single_len, picks, data, row_len, blocks, parts };
        ctx.pool().pairs_mut(pairs, |[i, head], state, mut out| {
            kernel(&job.head(head, blocks[i].start), state, &mut out);
        });
    }
    ROUND.set(round);
}
