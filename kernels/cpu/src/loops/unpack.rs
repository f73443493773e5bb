//! Unpacks stored blocks to unsigned integers.

use crate::matrix::StoredRows;
use crate::packed::layout::TILE;
use lapwing_model::formats::block::LEN_MAX;
use lapwing_model::formats::{Quantised, with_format};

/// Unpacks whole rows of a quantised format into `to`, `[k/4][16 rows][4 columns]`; absent rows are left as they are.
#[inline(always)]
pub(crate) fn tile(view: &StoredRows<'_>, to: &mut [u8]) {
    with_format!(view.dtype, blocks(view, to));
}

#[inline(always)]
fn blocks<F: Quantised>(view: &StoredRows<'_>, to: &mut [u8]) {
    let mut integers = [0; LEN_MAX];
    for (b, q) in to.chunks_exact_mut(F::LEN * TILE).enumerate() {
        for r in 0..view.rows.min(TILE) {
            let at = r * view.row_bytes + b * F::BYTES;
            let Some(stored) = view.bytes.get(at..at + F::BYTES) else { return };
            F::integers(stored, &mut integers);
            let lines = q.as_chunks_mut::<{ TILE * 4 }>().0;
            for (line, four) in lines.iter_mut().zip(integers.as_chunks::<4>().0) {
                line.as_chunks_mut::<4>().0[r] = *four;
            }
        }
    }
}
