//! What a dispatch computes, and what will most likely be read after it.

use super::PRODUCTS_MAX;
use super::blocking::{self, Reads};
use crate::cpu::Cpu;
use crate::cpu::packed::Features;
use crate::cpu::quantize::ActKind;
use crate::cpu::tile::TILE;

/// A dispatch of products.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dispatch<'a> {
    /// Rows of activations (m).
    pub(crate) rows: usize,
    /// The next dispatch of products, taken to have as many rows.
    pub(crate) next: Upcoming<'a>,
}

/// The weights of a dispatch to come. Memory is idle while threads meet and while one of them
/// prepares what the others wait for; each thread asks for the beginning of what it will read
/// next at the end of what it reads now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upcoming<'a> {
    /// Of each product; of a gate without its `up`.
    pub(crate) weights: [Option<Features<'a>>; PRODUCTS_MAX],
    /// Whether the only product is a gate.
    pub(crate) is_gate: bool,
    /// As what the values will be quantised as they come, if so.
    pub(crate) form: Option<ActKind>,
}

impl Dispatch<'_> {
    /// Of so many rows; nothing is known of what follows.
    pub(crate) fn of(rows: usize) -> Dispatch<'static> {
        Dispatch { rows, next: Upcoming::default() }
    }
}

impl<'a> Upcoming<'a> {
    /// What a thread reads first, if it has a task.
    pub(super) fn first_read(&self, ctx: &Cpu, m: usize, thread: usize) -> Option<&'a [u8]> {
        let unit = self.form.map_or(1, |kind| kind.columns() / TILE);
        let reads = self.weights.each_ref().map(|weight| {
            let weight = weight.as_ref()?.clone();
            Some(Reads { weight, is_gate: self.is_gate })
        });
        let blocks = blocking::cut(ctx, (m, unit), &reads);
        let (index, col) = ctx.pool().first_block(blocks, thread)?;
        self.weights[index].as_ref().map(|weight| weight.bytes_from(col))
    }
}
