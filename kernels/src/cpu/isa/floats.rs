//! Float weights in blocks of up to 6 rows × 16 features; the stored values are converted as they
//! are read.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use crate::cpu::isa::lanes::Lanes;
use crate::cpu::tile::{FloatJob, TILE};
use crate::quant::DType;

/// Rows of a register block.
pub(crate) const ROWS: usize = 6;

/// A stored float format.
trait Float {
    const BYTES: usize;

    /// 16 values.
    ///
    /// # Safety
    /// As [`Lanes`] demands.
    unsafe fn load<V: Lanes>(from: *const u8) -> V;
}

macro_rules! floats {
    ($($name:ident: $bytes:literal, $load:ident;)*) => {$(
        struct $name;
        impl Float for $name {
            const BYTES: usize = $bytes;
            #[inline(always)]
            unsafe fn load<V: Lanes>(from: *const u8) -> V {
                // SAFETY: by the caller.
                unsafe { V::$load(from.cast()) }
            }
        }
    )*};
}

floats! {
    F32: 4, load;
    F16: 2, load_f16;
    Bf16: 2, load_bf16;
}

/// The product of float tiles; every sum runs over the columns in order.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn tiles<V: Lanes>(job: &FloatJob<'_>, out: &mut [f32]) {
    job.check(out);
    // SAFETY: by the caller; `check` has compared all lengths.
    unsafe {
        match job.tiles.dtype {
            DType::F16 => of::<V, F16>(job, out),
            DType::Bf16 => of::<V, Bf16>(job, out),
            _ => of::<V, F32>(job, out),
        }
    }
}

/// Some rows times a tile.
struct Block {
    tile: *const u8,
    x: *const f32,
    k: usize,
    out: *mut f32,
    stride: usize,
}

/// # Safety
/// Lengths as [`FloatJob::check`] demands, and the machine has the instructions of `V`.
#[inline(always)]
unsafe fn of<V: Lanes, F: Float>(job: &FloatJob<'_>, out: &mut [f32]) {
    let (k, stride) = (job.tiles.cols, job.tiles.count * TILE);
    for t in 0..job.tiles.count {
        let values = job.tiles.tile(t);
        assert_eq!(values.len(), k * TILE * F::BYTES, "another format");
        for row in (0..job.rows).step_by(ROWS) {
            let (x, rows) = (job.x[row * k..].as_ptr(), job.rows - row);
            let out = out[row * stride + t * TILE..].as_mut_ptr();
            let block = Block { tile: values.as_ptr(), x, k, out, stride };
            // SAFETY: the tile has k lines of 16 values; `rows` rows of k values are left in `x`,
            // and of 16 values in `out`.
            unsafe {
                match rows {
                    1 => block.rows::<V, F, 1>(),
                    2 => block.rows::<V, F, 2>(),
                    3 => block.rows::<V, F, 3>(),
                    4 => block.rows::<V, F, 4>(),
                    5 => block.rows::<V, F, 5>(),
                    _ => block.rows::<V, F, 6>(),
                }
            }
        }
    }
}

impl Block {
    /// # Safety
    /// The tile has `k` lines; R rows of `k` values are at `x`, and as many of 16 values, `stride`
    /// apart, at `out`; the machine has the instructions of `V`.
    #[inline(always)]
    unsafe fn rows<V: Lanes, F: Float, const R: usize>(&self) {
        // SAFETY: by the caller.
        unsafe {
            let mut acc = [V::splat(0.0); R];
            for i in 0..self.k {
                let w = F::load::<V>(self.tile.add(i * TILE * F::BYTES));
                for (r, acc) in acc.iter_mut().enumerate() {
                    let x = V::splat(*self.x.add(r * self.k + i));
                    *acc = x.fma(w, *acc);
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                acc.store(self.out.add(r * self.stride));
            }
        }
    }
}
