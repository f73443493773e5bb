//! Runs matmuls on the pool.

use super::blocking::BlockingInput;
use super::dispatch::{BlockEnd, Dispatch, read_after};
use super::op::{Epilogue, MATMULS_MAX, Matmul};
use super::task::{QuantizedBlock, Scratch, Task};
use crate::context::Cpu;
use crate::loops::quantize::{Q8Block, QuantScheme};
use crate::packed::layout::{GROUP, TILE};
use crate::pool::PartitionedMatrix;
use std::cell::RefCell;

thread_local! {
    pub(super) static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Computes up to `MATMULS_MAX` (4) matmuls of a dispatch's m rows, each to its `[m][n]` output. A
/// value does not depend on m, on the channels that are computed with it, or on the other matmuls.
///
/// # Panics
/// When there are more matmuls, or the sizes of one do not match.
pub fn matmuls<'a>(
    ctx: &Cpu,
    dispatch: &Dispatch<'_>,
    matmuls: impl IntoIterator<Item = (Matmul<'a>, &'a mut [f32])>,
) {
    let m = dispatch.rows;
    let mut list = [const { None }; MATMULS_MAX];
    for (index, (matmul, out)) in matmuls.into_iter().enumerate() {
        assert!(index < MATMULS_MAX, "more than {MATMULS_MAX} matmuls at once");
        matmul.check(m);
        matmul.sum_channels(ctx);
        assert_eq!(out.len(), m * matmul.weight.len(), "out of {m} rows");
        list[index] = Some((matmul, out));
    }
    if m == 0 {
        return;
    }
    let tasks = dispatch.tasks(ctx, 1, || {
        list.each_ref().map(|of| of.as_ref().map(|(matmul, _)| BlockingInput::of(matmul)))
    });
    let mut matrices = [const { None }; MATMULS_MAX];
    for (matrix, (blocks, of)) in matrices.iter_mut().zip(tasks.blocks.into_iter().zip(&mut list)) {
        let (Some(blocks), Some((_, out))) = (blocks, of) else { continue };
        *matrix = Some(PartitionedMatrix { data: std::mem::take(out), blocks });
    }
    let weight = |index: usize| Some(list[index].as_ref()?.0.weight.clone());
    let first_read = |thread| dispatch.next.first_read(ctx, m, thread);
    ctx.pool().partitioned_mut(&mut matrices, tasks.max_claim, |index, rows, block, after| {
        let Some((matmul, _)) = &list[index] else { return };
        let end = BlockEnd { index, channel: block.end() };
        let next = read_after(ctx, end, after, weight, &first_read);
        let task = Task { rows, until: after.until, next };
        SCRATCH.with_borrow_mut(|scratch| matmul.write(ctx, task, block, scratch));
    });
}

/// Computes a matmul whose output is quantised on the fly, to `[m][n/32]` blocks: bit for bit those
/// of quantising its rows afterwards.
///
/// # Panics
/// When sizes do not match, the channels are not whole tiles, or the epilogue accumulates into the
/// output.
pub(crate) fn quantized_matmul(
    ctx: &Cpu,
    dispatch: &Dispatch<'_>,
    matmul: &Matmul<'_>,
    scheme: QuantScheme,
    out: &mut [Q8Block],
) {
    let m = dispatch.rows;
    matmul.check(m);
    matmul.sum_channels(ctx);
    assert!(!matches!(matmul.epilogue, Epilogue::AccumulateInto), "blocks cannot be added to");
    let groups = matmul.weight.len() / GROUP;
    assert_eq!(out.len(), m * groups, "out of {m} rows");
    if out.is_empty() {
        return;
    }
    let unit = scheme.columns() / TILE;
    let tasks = dispatch.tasks(ctx, unit, || [Some(BlockingInput::of(matmul)), None, None, None]);
    let [Some(channels), ..] = tasks.blocks else { return };
    let mut matrices = [Some(PartitionedMatrix { data: out, blocks: channels.divided(GROUP) })];
    let weight = |_| Some(matmul.weight.clone());
    let first_read = |thread| dispatch.next.first_read(ctx, m, thread);
    ctx.pool().partitioned_mut(&mut matrices, tasks.max_claim, |index, rows, block, after| {
        let after = after.times(GROUP);
        let end = BlockEnd { index, channel: block.end() * GROUP };
        let next = read_after(ctx, end, after, weight, &first_read);
        let task = Task { rows, until: after.until, next };
        SCRATCH.with_borrow_mut(|scratch| {
            let block = QuantizedBlock { scheme, block };
            matmul.write_quantized(ctx, task, block, scratch);
        });
    });
}
