//! Functions of their own for the register blocks of a kernel.
#![expect(unsafe_code, reason = "the code needs the instructions that it is compiled for")]

/// Code that is compiled as a function of its own, for the instructions that it needs.
///
/// A kernel has many register blocks of constant size. As parts of one function they would make the
/// compiler's loop passes, whose time grows with the square of a function's size, the largest part of
/// a build.
pub(crate) trait Outlined {
    /// # Safety
    /// The machine has the instructions of the code, and its other conditions hold.
    unsafe fn run(self);
}

/// A method `outline` that runs an [`Outlined`] in a function compiled with `$features` (`()` for none).
macro_rules! outline {
    (()) => {
        #[inline(never)]
        unsafe fn outline<O: crate::simd::outline::Outlined>(code: O) {
            // SAFETY: by the caller.
            unsafe { code.run() }
        }
    };
    ($features:literal) => {
        #[inline(always)]
        unsafe fn outline<O: crate::simd::outline::Outlined>(code: O) {
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn inner<O: crate::simd::outline::Outlined>(code: O) {
                // SAFETY: by the caller.
                unsafe { code.run() }
            }
            // SAFETY: the machine has the features, by the caller.
            unsafe { inner(code) }
        }
    };
}
pub(crate) use outline;
