//! The sums of a matrix's output channels, which activations with a minimum need.

use crate::context::Cpu;
use crate::packed::PackedMatrix;
use crate::packed::layout::TILE;

/// Channels of a task.
const CHANNELS: usize = 4 * TILE;

/// Sums the weights of each output channel, unless that was done before. Not from a task of the pool.
pub(crate) fn sum_channels(ctx: &Cpu, matrix: &PackedMatrix) {
    matrix.keep_channel_sums(|| {
        let mut sums = vec![0.0; matrix.rows()];
        ctx.pool().chunks_mut(&mut sums, CHANNELS, |i, sums| {
            let mut values = vec![0.0; matrix.cols()];
            for (row, sum) in (i * CHANNELS..).zip(sums) {
                matrix.row(row, &mut values);
                *sum = values.iter().map(|value| f64::from(*value)).sum::<f64>() as f32;
            }
        });
        sums
    });
}
