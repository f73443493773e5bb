//! Vectors of 16 `f32`, one implementation for each instruction set, and prefetch instructions.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod f32x16;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod outline;
pub(crate) mod prefetch;
pub(crate) mod scalar;
