//! Masked attention over KV pages with online softmax: no row of scores is ever held, and what
//! no row of a block sees is not computed.
//!
//! Keys are visited in steps of several pages, and steps are gathered in splits, both from
//! absolute boundaries. Each split is accumulated from nothing and then joined to those before
//! it, in order. A task is a block of query rows × the heads that share one KV head, which load
//! each page once, over all its splits or, where blocks are too few for the threads, over one of
//! them (Stream-K). So a row's result depends on its own position only.
//!
//! Where a processor multiplies pairs of bfloat16, all rows are computed so, from the even places of
//! the head or of the keys on, whether pages are read as stored or not.

mod job;
mod mask;
mod plan;
mod task;

use crate::cpu::context::{Activations, Cpu};
use crate::cpu::isa::kernels::AttnBf16Kernels;
use crate::cpu::pool::Grid;
use crate::kv::KvDtype;
pub use job::{AttentionJob, AttentionSequence};
pub use mask::AttentionMask;
use plan::{Plan, Shape, TASKS_PER_THREAD, Unit};
use std::cell::RefCell;
use task::{Scratch, Task};

thread_local! {
    static PLAN: RefCell<Plan> = RefCell::default();
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// The kernels that multiply pairs of bfloat16, for keys and values stored as `kv`; none where attention
/// multiplies in f32.
pub(crate) fn bf16_kernels(ctx: &Cpu, kv: KvDtype) -> Option<&'static AttnBf16Kernels> {
    let rounds = ctx.activations() == Activations::Int8 && kv != KvDtype::F32;
    ctx.kernels().attn_bf16.filter(|_| rounds)
}

/// Attention of every row of the spans; `out` is `[rows][heads][head_dim]`, and rows in no
/// span are left alone. A row that sees no key becomes zero.
///
/// # Panics
/// When sizes do not fit, spans overlap, a span has too few pages, or the mask has an empty
/// size or a list out of order.
pub fn attention(ctx: &Cpu, job: &AttentionJob<'_>, out: &mut [f32]) {
    let layout = *job.kv.layout();
    let width = job.heads * layout.head_dim;
    assert_eq!(job.q.len(), out.len(), "q and out differ in length");
    assert!(out.len().is_multiple_of(width), "q is not whole rows of heads × head_dim");
    assert!(job.heads.is_multiple_of(layout.kv_heads), "heads is no multiple of the KV heads");
    assert!(job.mask.is_valid(), "an empty size or a list out of order in {:?}", job.mask);
    let shape = Shape::new(&layout, job.heads);
    let mut plan = PLAN.take();
    plan.fill(job, &shape, ctx.pool().threads());
    let Plan { blocks, rows, units, partials, partial_len } = &mut plan;
    let task = |block: usize, kv_head: usize| Task {
        kernels: ctx.kernels(),
        attn_bf16: bf16_kernels(ctx, layout.dtype),
        job,
        shape,
        block: &blocks[block],
        pages: job.spans[blocks[block].span].pages,
        kv_head,
        prefetch_hint: ctx.caches().prefetch_hint,
    };
    let len = *partial_len;
    // Several units are a task where there are many: their keys lie one after another.
    let run = (units.len() / (ctx.pool().threads() * TASKS_PER_THREAD)).max(1);
    ctx.pool().chunks_mut(&mut partials[..units.len() * len], run * len, |i, partials| {
        SCRATCH.with_borrow_mut(|scratch| {
            for (unit, partial) in (i * run..units.len()).zip(partials.chunks_exact_mut(len)) {
                let of = |unit: &Unit| (task(unit.block, unit.kv_head), unit.split);
                let (task, split) = of(&units[unit]);
                let next = units.get(unit + 1).map(of);
                let next = next.as_ref().and_then(|(task, split)| task.first_keys(*split));
                task.partial(split, next, scratch, partial);
            }
        });
    });
    let group_width = shape.group * layout.head_dim;
    let grid = Grid { row_len: width, row_blocks: rows, col_chunk: group_width };
    let partials = &partials[..units.len() * len];
    ctx.pool().grid_mut(out, &grid, |i, col, mut out| {
        let task = task(i, col / group_width);
        SCRATCH.with_borrow_mut(|scratch| {
            match blocks[i].units {
                None => task.whole(scratch),
                Some(unit) => {
                    let splits = blocks[i].splits.len();
                    let first = (unit + task.kv_head * splits) * len;
                    task.joined(&partials[first..first + splits * len], scratch);
                }
            }
            task.finish(scratch, &mut out);
        });
    });
    PLAN.set(plan);
}
