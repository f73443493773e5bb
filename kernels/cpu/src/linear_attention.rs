//! Attention whose keys and values are added up in a state.

use crate::context::Cpu;
use crate::loops::linear_attention::{HeadRows, Strided};
use crate::pool::{PlacedGroup, PlacedRows};
use lapwing_model::device::{BatchSpan, SpanStates};
use lapwing_model::kv::{StateId, StateLayer};
use lapwing_model::op::LinearAttentionOp;
use std::cell::RefCell;

/// Rows of some sequences.
#[derive(Clone, Copy, Debug)]
pub struct LinearAttention<'a> {
    /// Heads, rule and places of the values.
    pub op: &'a LinearAttentionOp,
    /// q, k, v, keep and rate of [`Op::LinearAttention`](lapwing_model::op::Op::LinearAttention).
    pub inputs: [WideRows<'a>; 5],
    /// How much of a value is added to the output, by head, or with decays by value.
    pub skip: Option<&'a [f32]>,
    /// The decays, in the order of [`Op::by_column`](lapwing_model::op::Op::by_column).
    pub decays: Option<&'a [f32]>,
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
        let (rates, of_head) = (op.rates(), op.key_dim * op.value_dim);
        HeadRows {
            q: q.head(row, op.first[0] + key, op.key_dim),
            k: k.head(row, op.first[1] + key, op.key_dim),
            v: v.head(row, op.first[2] + head * op.value_dim, op.value_dim),
            keep: keep.head(row, head * kept, kept),
            rate: rate.head(row, head * rates, rates),
            rule: op.rule,
            scale: op.scale,
            skip: self.skip.map(|skip| &skip[head * rates..][..rates]),
            decays: self.decays.map(|decays| &decays[head * of_head..][..of_head]),
        }
    }
}

/// Spans as groups of rows that go through places of the state.
#[derive(Debug, Default)]
struct Plan {
    groups: Vec<PlacedGroup>,
    /// The places that groups write to.
    picks: Vec<StateId>,
    /// Of each of these places, after which rows of its group the state is kept there.
    ends: Vec<usize>,
}

thread_local! {
    static PLAN: RefCell<Plan> = RefCell::default();
}

impl Plan {
    fn fill(&mut self, spans: &[BatchSpan]) {
        let Plan { groups, picks, ends } = self;
        groups.clear();
        picks.clear();
        ends.clear();
        for span in spans {
            let SpanStates { from, to, keep } = &span.states;
            let first = picks.len();
            for (end, place) in keep.iter().copied().chain([(span.end(), *to)]) {
                picks.push(place);
                ends.push(end - span.start);
            }
            let picks = first..picks.len();
            groups.push(PlacedGroup { before: *from, picks, rows: span.rows.clone() });
        }
    }
}

/// Changes the states of heads by rows, one after another, and makes what each row reads. A value depends on its row and those before
/// it only, and not on spans. A state is read where it is and written where the span wants it, so that none is copied; only of two
/// places after the same row, the second is a copy of the first.
///
/// # Panics
/// When inputs or outputs are not rows of that op, the state is not that of its heads, spans are not rows of different sequences, or two write to
/// the same place.
pub fn linear_attention(
    ctx: &Cpu,
    job: &LinearAttention<'_>,
    spans: &[BatchSpan],
    state: &mut StateLayer<'_>,
    out: &mut [f32],
) {
    let (op, place_len) = (job.op, state.values());
    let wanted = LinearAttentionOp::state_values(op.heads, op.key_dim, op.value_dim);
    assert_eq!(place_len, wanted, "the state");
    let kernel = ctx.kernels().linear_attention;
    let mut plan = PLAN.take();
    plan.fill(spans);
    let Plan { groups, picks, ends } = &plan;
    let placed = PlacedRows {
        places: state.all_mut(),
        place_len,
        picks,
        data: out,
        row_len: op.heads * op.value_dim,
        groups,
        parts: op.heads,
    };
    ctx.pool().places_mut(placed, |[at, head], places, mut out| {
        let PlacedGroup { rows, picks, .. } = &groups[at];
        kernel(&job.head(head, rows.start), places, &ends[picks.clone()], &mut out);
    });
    PLAN.set(plan);
}
