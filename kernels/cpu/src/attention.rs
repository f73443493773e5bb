//! Masked attention over KV pages with online softmax: a row of scores is never stored whole, and
//! key blocks that are masked for all rows of a block are skipped.
//!
//! Keys are visited in steps of several pages, and several steps form a split; the boundaries of
//! both are absolute positions. Each split is accumulated from zero and then combined with the
//! splits before it, in order. A task is a block of query rows × the heads that share one KV head,
//! which load each page once. It covers all splits, or, if there are too few blocks for the
//! threads, one split (split-KV, as in Flash-Decoding and Stream-K). A row's result therefore
//! depends on its position only. Sinks join the sum of the weights at the end, when all splits are combined.
//!
//! On processors that multiply pairs of bfloat16, all rows are computed in pairs, which start at
//! even offsets of the head dimension or of the keys, whether pages are read as stored or not.

mod job;
mod plan;
mod task;

use crate::context::Cpu;
use crate::isa::kernels::AttnBf16Kernels;
use crate::pool::Grid;
pub use job::{AttentionJob, AttentionSequence};
use lapwing_model::kv::KvDtype;
use lapwing_model::quant::Activations;
use plan::{AttentionShape, Plan, SplitTask, TASKS_PER_THREAD};
use std::cell::RefCell;
use task::{Scratch, Task};

thread_local! {
    static PLAN: RefCell<Plan> = RefCell::default();
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// The kernels that multiply pairs of bfloat16, for keys and values stored as `kv`; none where attention
/// multiplies in f32.
pub(crate) fn bf16_kernels(ctx: &Cpu, kv: KvDtype) -> Option<&'static AttnBf16Kernels> {
    let rounds = ctx.activations() != Activations::F32 && kv != KvDtype::F32;
    ctx.kernels().attn_bf16.filter(|_| rounds)
}

/// Attention of every row of the sequences; `out` is `[rows][heads][value_dim]`. Rows in no sequence
/// are not touched, and a row that sees no key becomes zero.
///
/// # Panics
/// When sizes do not match, sequences overlap, a sequence has too few pages, or the mask has a zero
/// size.
pub fn attention(ctx: &Cpu, job: &AttentionJob<'_>, out: &mut [f32]) {
    let layout = *job.kv.layout();
    let heads = layout.heads;
    let (q_width, width) = (job.heads * heads.key_dim, job.heads * heads.value_dim);
    assert!(job.q.len().is_multiple_of(q_width), "q is not whole rows of heads × key_dim");
    assert_eq!(job.q.len() / q_width * width, out.len(), "out has not the rows of q");
    assert!(job.heads.is_multiple_of(heads.count), "heads is no multiple of the KV heads");
    assert!(job.sinks.is_none_or(|sinks| sinks.len() == job.heads), "sinks of other heads");
    assert!(job.mask.check().is_ok(), "an empty size in {:?}", job.mask);
    let shape = AttentionShape::new(&layout, job.heads);
    let mut plan = PLAN.take();
    plan.fill(job, &shape, ctx.pool().threads());
    let Plan { blocks, rows, split_tasks, partials, partial_len } = &mut plan;
    let task = |block: usize, kv_head: usize| Task {
        kernels: ctx.kernels(),
        attn_bf16: bf16_kernels(ctx, layout.dtype),
        job,
        shape,
        block: &blocks[block],
        pages: job.sequences[blocks[block].sequence].pages,
        kv_head,
        prefetch_hint: ctx.caches().prefetch_hint,
    };
    let len = *partial_len;
    // Many split tasks are grouped into one pool task, whose keys are consecutive in memory.
    let run = (split_tasks.len() / (ctx.pool().threads() * TASKS_PER_THREAD)).max(1);
    ctx.pool().chunks_mut(&mut partials[..split_tasks.len() * len], run * len, |i, partials| {
        SCRATCH.with_borrow_mut(|scratch| {
            for (unit, partial) in (i * run..split_tasks.len()).zip(partials.chunks_exact_mut(len))
            {
                let of = |unit: &SplitTask| (task(unit.block, unit.kv_head), unit.split);
                let (task, split) = of(&split_tasks[unit]);
                let next = split_tasks.get(unit + 1).map(of);
                let next = next.as_ref().and_then(|(task, split)| task.first_keys(*split));
                task.partial(split, next, scratch, partial);
            }
        });
    });
    let group_width = shape.group * shape.value_dim;
    let grid = Grid { row_len: width, row_blocks: rows, col_chunk: group_width };
    let partials = &partials[..split_tasks.len() * len];
    ctx.pool().grid_mut(out, &grid, |i, col, mut out| {
        let task = task(i, col / group_width);
        SCRATCH.with_borrow_mut(|scratch| {
            match blocks[i].split_tasks {
                None => task.all_splits(scratch),
                Some(unit) => {
                    let splits = blocks[i].splits.len();
                    let first = (unit + task.kv_head * splits) * len;
                    task.combine_partials(&partials[first..first + splits * len], scratch);
                }
            }
            task.finish(scratch, &mut out);
        });
    });
    PLAN.set(plan);
}
