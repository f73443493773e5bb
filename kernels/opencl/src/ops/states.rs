//! Launches of ops with a state of the rows before.
#![expect(unsafe_code, reason = "launches kernels")]

use super::kernels::Kernels;
use super::programs::{Family, ROW_ITEMS, chunk};
use super::views::{F32, Ints, View, int};
use crate::error::OpenClError;
use crate::session::{Arg, Buffer, Range};
use lapwing_model::op::{KeyOrder, LinearAttentionOp, StateRule};

/// Where the rows of sequences and their states are. Numbers out of range are replaced by the nearest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spans<'a> {
    /// For each row, the number of its span.
    pub(crate) row_spans: Ints<'a>,
    /// For each span its first row, its rows, the position of the first one, the place of the state before it or -1, the place of
    /// that after it, the element of the buffer where its pairs of numbers begin, and how many there are: rows of the span, and the
    /// place of the state after these.
    pub(crate) spans: Ints<'a>,
    /// Number of spans.
    pub(crate) count: usize,
}

/// States at all places, and the rows that change them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateRows<'a> {
    pub(crate) states: &'a Buffer,
    pub(crate) spans: Spans<'a>,
    pub(crate) rows: usize,
}

impl Spans<'_> {
    /// Numbers of a span: as in spans.cl.
    pub(crate) const INTS: usize = 7;
}

impl<'a> StateRows<'a> {
    /// SPAN_PARAMETERS, of states of so many values.
    ///
    /// # Panics
    /// If there is no place, or there are fewer numbers than spans need.
    fn args(&self, values: usize) -> [Arg<'a>; 6] {
        let Spans { spans, count, .. } = self.spans;
        let places = (self.states.bytes() / F32).checked_div(values).unwrap_or(0);
        assert!(places > 0 && count > 0, "{count} spans, {places} places of states");
        spans.check(count * Spans::INTS, "spans");
        let len = spans.at + spans.len();
        let [at, count, len, places, rows] = [spans.at, count, len, places, self.rows].map(int);
        [Arg::Buffer(spans.buffer), at, count, len, places, rows]
    }
}

/// Causal convolution of columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortConv<'a> {
    /// Rows of `width` values.
    pub(crate) x: View<'a>,
    pub(crate) width: usize,
    /// `[taps][width]`: the weights of a row itself last.
    pub(crate) weights: &'a Buffer,
    /// Rows that a value depends on.
    pub(crate) taps: usize,
    /// What is added to the sums, by column.
    pub(crate) bias: Option<&'a Buffer>,
    /// Whether the result is x·sigmoid(x) of the sum x.
    pub(crate) is_silu: bool,
    /// States of `taps - 1` rows.
    pub(crate) state: StateRows<'a>,
    /// Not the values of `x`.
    pub(crate) out: View<'a>,
}

/// Attention whose keys and values are added up in states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinearAttention<'a> {
    pub(crate) op: &'a LinearAttentionOp,
    /// q, k, v, keep and rate of [`Op::LinearAttention`](lapwing_model::op::Op::LinearAttention).
    pub(crate) inputs: [View<'a>; 5],
    /// Values of a row of `keep` for each head: 1, or one for each value of a key; with decays one for each value of the head.
    pub(crate) factors: usize,
    /// How much of a value is added to the output, by head, or with decays by value.
    pub(crate) skip: Option<&'a Buffer>,
    /// The decays, in the order of [`Op::by_column`](lapwing_model::op::Op::by_column).
    pub(crate) decays: Option<&'a Buffer>,
    pub(crate) state: StateRows<'a>,
    /// Rows of `heads · value_dim` values.
    pub(crate) out: View<'a>,
}

impl Kernels {
    /// Convolves rows, and then makes the last ones of each span its state.
    ///
    /// # Panics
    /// If an operand is too small, or there is no place for a state.
    pub(crate) fn short_conv(&mut self, job: &ShortConv<'_>) -> Result<(), OpenClError> {
        let ShortConv { x, width, weights, taps, bias, is_silu, state, out } = *job;
        let (rows, row_spans) = (state.rows, state.spans.row_spans);
        if rows == 0 {
            return Ok(());
        }
        x.check(rows, width, "x of a convolution");
        out.check(rows, width, "out of a convolution");
        row_spans.check(rows, "spans of rows");
        let has = |buffer: &Buffer, values: usize| buffer.bytes() / F32 >= values;
        assert!(taps > 0 && has(weights, taps * width), "weights of {taps} rows of {width}");
        assert!(bias.is_none_or(|bias| has(bias, width)), "a bias of {width} values");
        let kept = taps - 1;
        // Without rows before there is no state, and a place needs no memory.
        let of_state = state.args((kept * width).max(1));
        let mut args = x.args().to_vec();
        args.extend([weights, bias.unwrap_or(weights), state.states].map(Arg::Buffer));
        args.extend(out.args());
        args.extend([Arg::Buffer(row_spans.buffer), int(row_spans.at)]);
        args.extend(of_state);
        let [has_bias, is_silu] = [bias.is_some(), is_silu].map(|is| Arg::Int(i32::from(is)));
        args.extend([int(width), int(taps), has_bias, is_silu]);
        let columns = width.div_ceil(chunk(self.is_cpu));
        // SAFETY: the kernel's parameters; the operands were checked, and the kernel keeps numbers of spans, rows and places within
        // the lists and the buffers.
        unsafe { self.launch(Family::ShortConv.kernel("short_conv"), &args, [columns, rows, 1]) }?;
        let mut args = x.args().to_vec();
        args.push(Arg::Buffer(state.states));
        args.extend(of_state);
        args.extend([int(width), int(kept)]);
        let items = [columns, state.spans.count, 1];
        // SAFETY: as above.
        unsafe { self.launch(Family::ShortConv.kernel("keep_rows"), &args, items) }
    }

    /// Linear attention.
    ///
    /// # Panics
    /// If an operand is too small, heads share no keys evenly, or there is no place for a state.
    pub(crate) fn linear_attention(
        &mut self,
        job: &LinearAttention<'_>,
    ) -> Result<(), OpenClError> {
        let LinearAttention { op, skip, decays, state, out, .. } = *job;
        if state.rows == 0 {
            return Ok(());
        }
        let mut args: Vec<Arg<'_>> = job.checked_inputs().iter().flat_map(View::args).collect();
        out.check(state.rows, op.heads * op.value_dim, "out of linear attention");
        let has_room = |buffer: &Buffer, of_head: usize| buffer.bytes() / F32 >= op.heads * of_head;
        let has_skip = skip.is_none_or(|skip| has_room(skip, op.rates()));
        let has_decays = decays.is_none_or(|decays| has_room(decays, op.value_dim * op.key_dim));
        assert!(has_skip && has_decays, "a skip or decays of {} heads", op.heads);
        let weights = [skip, decays].map(|buffer| buffer.unwrap_or(out.buffer));
        args.extend([weights[0], weights[1], state.states].map(Arg::Buffer));
        args.extend(out.args());
        let values = LinearAttentionOp::state_values(op.heads, op.key_dim, op.value_dim);
        args.extend(state.args(values));
        args.extend([op.heads, op.key_heads, op.value_dim].map(int));
        args.extend([Arg::Int(job.flags()), Arg::Float(op.scale)]);
        let family = Family::LinearAttention(op.key_dim);
        let (single, group) =
            (family.kernel("linear_attention"), family.kernel("linear_attention_group"));
        let blocks = op.heads * op.value_dim.div_ceil(LinearAttentionOp::BLOCK);
        let spans = state.spans.count;
        if self.shares(group, ROW_ITEMS)? {
            let range = Range::plane([blocks, spans], [ROW_ITEMS, 1]);
            // SAFETY: as below; the kernel states groups of that many items.
            return unsafe { self.launch_groups(group, &args, range) };
        }
        // SAFETY: the kernel's parameters; the operands were checked, and the kernel keeps numbers of rows and places within the
        // lists and the buffers.
        unsafe { self.launch(single, &args, [blocks, spans, 1]) }
    }
}

impl<'a> LinearAttention<'a> {
    /// The inputs, from the first column that the op reads on.
    ///
    /// # Panics
    /// If one is too small, or heads share no keys evenly.
    fn checked_inputs(&self) -> [View<'a>; 5] {
        let op = self.op;
        let LinearAttentionOp { heads, key_heads, key_dim, value_dim, first, .. } = *op;
        let is_even = key_heads > 0 && heads.is_multiple_of(key_heads);
        assert!(is_even, "{heads} heads with keys of {key_heads}");
        let known = if op.decay.is_some() { [value_dim; 2] } else { [1, key_dim] };
        let is_known = known.contains(&self.factors) && op.decay.is_some() == self.decays.is_some();
        assert!(is_known, "{} factors of keys of {key_dim} values", self.factors);
        let [q, k, v, keep, rate] = self.inputs;
        let from = |view: View<'a>, column| View { at: view.at + column, ..view };
        let inputs = [from(q, first[0]), from(k, first[1]), from(v, first[2]), keep, rate];
        let keys = key_heads * key_dim;
        let widths = [keys, keys, heads * value_dim, heads * self.factors, heads * op.rates()];
        for (view, width) in inputs.iter().zip(widths) {
            view.check(self.state.rows, width, "an input of linear attention");
        }
        inputs
    }

    /// As in linear_attention.cl.
    fn flags(&self) -> i32 {
        let bits = [
            self.op.rule == StateRule::Delta,
            self.op.key_order == KeyOrder::Turns,
            self.skip.is_some(),
            self.factors > 1 && self.decays.is_none(),
            self.decays.is_some(),
        ];
        bits.iter().enumerate().map(|(bit, is_set)| i32::from(*is_set) << bit).sum()
    }
}
