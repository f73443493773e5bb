//! Instruction sets as tokens: an [`Isa`] exists only if this machine has the instructions,
//! so whoever holds one may call its kernels.

use crate::cpu::packed::TileBytes;
use crate::cpu::tile::{self, GemmF32, GemmQ8, GemmScratch, Q8Block, StoredRows};
use crate::cpu::{elementwise, logits, norm, quantize, rope, softmax};
use attn_matmul::AttnMatmul;
use kind::{KINDS, Kind};
use panel::KvConvert;
use prefetch::PrefetchOffset;

pub(crate) mod attn_bf16;
pub(crate) mod attn_matmul;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512bf16;
#[cfg(target_arch = "x86_64")]
mod avxvnni;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod blocks;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod floats;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod formats;
pub(crate) mod gates;
mod generic;
mod kind;
pub(crate) mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod panel;
pub(crate) mod peak;
pub(crate) mod prefetch;
#[cfg(target_arch = "x86_64")]
mod rounding;
mod shape;
pub(crate) mod widen;

pub(crate) use kind::amd_family;
pub use shape::TileShape;

/// The inner loops of one instruction set. All are safe to call with any lengths; which
/// table is used is decided once, by the [`Isa`].
#[derive(Debug)]
pub(crate) struct Kernels {
    /// The register blocks of products.
    pub(crate) shape: TileShape,
    /// Unpacks up to 16 rows of a quantised matrix, a byte per value, `[k/4][16 rows][4]`.
    pub(crate) unpack: fn(&StoredRows<'_>, &mut [u8]),
    /// Rows of quantised activations times some tiles: `[rows][16 per tile]`.
    pub(crate) gemm_q8: fn(&GemmQ8<'_>, &mut [f32], &mut GemmScratch),
    /// The values of a quantised tile in f32, `[k][16]`, little-endian.
    pub(crate) dequantize_tile: fn(&TileBytes<'_>, &mut [u8]),
    /// Rows of activations times some tiles of floats: `[rows][16 per tile]`.
    pub(crate) gemm_f32: fn(&GemmF32<'_>, &mut [f32]),
    /// Quantises one row of activations.
    pub(crate) quantize: fn(&[f32], quantize::QuantScheme, &mut [Q8Block]),
    /// RMS norm of one row.
    pub(crate) rms_norm: fn(&[f32], &norm::RmsWeight<'_>, &mut [f32]),
    /// Rotates the heads of one row.
    pub(crate) rotate: fn(&[f32], &rope::RowAngles<'_>, &mut [f32]),
    /// `act(gate) · up`.
    pub(crate) gated: fn(crate::op::Activation, &[f32], &[f32], &mut [f32]),
    /// `cap · tanh(x / cap)` in place.
    pub(crate) soft_cap: fn(&mut [f32], f32),
    /// `c = a · b` or `c += a · b`, b being keys or values as stored.
    pub(crate) attn_matmul: fn(&AttnMatmul<'_>, &mut [f32]),
    /// Products of pairs, where they are faster.
    pub(crate) attn_bf16: Option<&'static attn_bf16::AttnBf16Kernels>,
    /// The largest number of f32.
    pub(crate) stream_read: fn(&[u8], Option<PrefetchOffset>) -> f32,
    /// Keys or values to f32.
    pub(crate) widen: fn(&KvConvert<'_>, &mut [f32]),
    /// f32 to binary16.
    pub(crate) f32_to_f16: fn(&[f32], &mut [u16]),
    /// One step of online softmax for some lines.
    pub(crate) online_softmax_step:
        fn(&mut [f32], &softmax::SoftmaxStep<'_>, &mut [softmax::RunningSoftmax], &mut [f32]),
    /// `x = x · factor + y · factor`.
    pub(crate) join: fn(&mut [f32], &[f32], (f32, f32)),
    /// Most lines of a product whose keys and values are read as they are stored: with more, each would
    /// be converted more than once. 0 where converting costs more than reading f32.
    pub(crate) direct_queries: usize,
    /// `x *= factor`.
    pub(crate) scale: fn(&mut [f32], f32),
    /// `out = x · factor`.
    pub(crate) scaled: fn(&[f32], f32, &mut [f32]),
    /// `out = a + b`.
    pub(crate) add: fn(&[f32], &[f32], &mut [f32]),
    /// The largest logit that is finite, and the largest that is a number.
    pub(crate) max_finite: fn(&[f32]) -> f32,
    pub(crate) largest: fn(&[f32]) -> f32,
    /// Σ exp(logit − max).
    pub(crate) sum_exp: fn(&[f32], f32) -> f64,
}

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Kind);

impl Isa {
    /// The fastest instruction set of this machine.
    pub fn best() -> Isa {
        let fast = |isa: &&Isa| isa.0.slow_reason().is_none();
        *Isa::available().iter().rfind(fast).unwrap_or(&Isa(Kind::Generic))
    }

    /// Every instruction set that this machine has, slowest first, but for one that is slow on it
    /// although it has the features ([`explain`](Isa::explain) says so). Never empty.
    pub fn available() -> Vec<Isa> {
        KINDS.iter().filter(|kind| kind.missing().is_empty()).map(|kind| Isa(*kind)).collect()
    }

    /// Short name: `generic`, `avx2`, `avxvnni`, `avx512`, `avx512-bf16`, `neon`, `neon-dotprod`
    /// or `neon-i8mm`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// What this instruction set needs and, for each faster one, what the machine lacks.
    pub fn explain(self) -> String {
        let needs: Vec<_> = self.0.features().into_iter().map(|(name, _)| name).collect();
        let mut why = match needs.as_slice() {
            [] => format!("{}: needs nothing special", self.name()),
            needs => format!("{}: has {}", self.name(), needs.join(", ")),
        };
        for kind in KINDS {
            let lacks = kind.missing();
            if !lacks.is_empty() {
                why += &format!("; {} lacks {}", kind.name(), lacks.join(", "));
            } else if let Some(slow_reason) = kind.slow_reason() {
                why += &format!("; {} {slow_reason}", kind.name());
            }
        }
        why
    }

    /// The register blocks of its products.
    pub fn shape(self) -> TileShape {
        self.kernels().shape
    }

    /// The inner loops for this instruction set.
    pub(crate) fn kernels(self) -> &'static Kernels {
        // Fuzzers and the model checker compute nothing, and the others are most of what is compiled.
        if cfg!(any(fuzzing, loom)) {
            return &generic::KERNELS;
        }
        match self.0 {
            Kind::Generic => &generic::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => &avx2::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Kind::AvxVnni => &avxvnni::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => &avx512::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Bf16 => &avx512bf16::KERNELS,
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => &neon::KERNELS,
            #[cfg(target_arch = "aarch64")]
            Kind::NeonDotprod => &neon::DOTPROD,
            #[cfg(target_arch = "aarch64")]
            Kind::NeonI8mm => &neon::I8MM,
        }
    }
}

/// Makes a [`Kernels`] table: the bodies that are written once in plain Rust, compiled
/// with `$features`, beside the intrinsics of the instruction set (`$own`).
macro_rules! kernels {
    ($features:tt, fma = $fma:literal, lanes = $lanes:ty, $($field:ident = $own:expr),+ $(,)?) => {
        crate::cpu::isa::simd_fns!($features,
            rms_norm(x: &[f32], w: &norm::RmsWeight<'_>, out: &mut [f32]) = norm::row::<$fma>;
            rotate(x: &[f32], angles: &rope::RowAngles<'_>, out: &mut [f32]) = rope::row::<$fma>;
            soft_cap(x: &mut [f32], cap: f32) = elementwise::soft_cap_body::<$fma>;
            join(x: &mut [f32], y: &[f32], factors: (f32, f32)) = softmax::join::<$fma>;
            scale(x: &mut [f32], factor: f32) = elementwise::scale_body;
            scaled(x: &[f32], factor: f32, out: &mut [f32]) = elementwise::scaled_body;
            add(a: &[f32], b: &[f32], out: &mut [f32]) = elementwise::add_body;
            max_finite(logits: &[f32]) -> f32 = logits::max_finite;
            largest(logits: &[f32]) -> f32 = logits::largest;
            sum_exp(block: &[f32], max: f32) -> f64 = logits::sum_exp;
        );
        crate::cpu::isa::simd_unsafe_fns!($features,
            attn_matmul(p: &AttnMatmul<'_>, c: &mut [f32]) = crate::cpu::isa::attn_matmul::attn_matmul::<$lanes>;
            dequantize_tile(tile: &TileBytes<'_>, to: &mut [u8]) = crate::cpu::isa::widen::widen::<$lanes>;
            stream_read(bytes: &[u8], ahead: Option<crate::cpu::isa::prefetch::PrefetchOffset>) -> f32 = crate::cpu::isa::panel::stream_read::<$lanes>;
            widen(w: &KvConvert<'_>, out: &mut [f32]) = crate::cpu::isa::panel::widen::<$lanes>;
            gated(k: crate::op::Activation, g: &[f32], u: &[f32], out: &mut [f32]) = crate::cpu::isa::gates::gated::<$lanes>;
            f32_to_f16(x: &[f32], out: &mut [u16]) = crate::cpu::isa::panel::f32_to_f16::<$lanes>;
            online_softmax_step(s: &mut [f32], w: &softmax::SoftmaxStep<'_>, o: &mut [softmax::RunningSoftmax], f: &mut [f32]) = softmax::online_softmax_step::<$lanes>;
        );
        pub(super) static KERNELS: Kernels = Kernels {
            rms_norm, rotate, gated, soft_cap, join, dequantize_tile,
            attn_matmul, attn_bf16: None, stream_read, widen, f32_to_f16, online_softmax_step, scale, scaled, add, max_finite, largest, sum_exp, $($field: $own),+
        };
    };
}

/// A safe function per body, compiled with `$features` (`()` for none).
macro_rules! simd_fns {
    (() , $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:path;)*) => {
        $(fn $name($($arg: $ty),*) $(-> $ret)? { $body($($arg),*) })*
    };
    ($features:literal, $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:path;)*) => {
        $(fn $name($($arg: $ty),*) $(-> $ret)? {
            #[target_feature(enable = $features)]
            fn inner($($arg: $ty),*) $(-> $ret)? { $body($($arg),*) }
            // SAFETY: reached only through this module's table, which `Isa` hands out only
            // when the machine has the features.
            unsafe { inner($($arg),*) }
        })*
    };
}

/// As `simd_fns!`, for bodies that are unsafe because they use intrinsics.
macro_rules! simd_unsafe_fns {
    (() , $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:path;)*) => {
        $(fn $name($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: plain Rust needs no instructions.
            unsafe { $body($($arg),*) }
        })*
    };
    ($features:literal, $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:path;)*) => {
        $(fn $name($($arg: $ty),*) $(-> $ret)? {
            #[target_feature(enable = $features)]
            fn inner($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: this function is compiled for the features of the vectors.
                unsafe { $body($($arg),*) }
            }
            // SAFETY: reached only through this module's table, which `Isa` hands out only
            // when the machine has the features.
            unsafe { inner($($arg),*) }
        })*
    };
}
use {kernels, simd_fns, simd_unsafe_fns};

/// A `gemm_q8` of the [`blocks`], compiled with `$features` for sums of kind `$dots`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! gemm_q8_fn {
    ($name:ident, $features:literal, $dots:ty) => {
        fn $name(job: &GemmQ8<'_>, out: &mut [f32], scratch: &mut GemmScratch) {
            /// # Safety
            /// The machine has the features, and lengths are as [`GemmQ8::check`] demands.
            #[target_feature(enable = $features)]
            unsafe fn tiles<F: formats::Format>(
                job: &GemmQ8<'_>,
                out: &mut [f32],
                scratch: &mut GemmScratch,
            ) {
                // SAFETY: by the caller; this function is compiled for the sums' features.
                unsafe { blocks::tiles::<$dots, F>(job, out, scratch) }
            }
            job.check(out);
            if job.rows == 0 || out.is_empty() {
                return;
            }
            // SAFETY: reached only through this module's tables, which `Isa` hands out only when
            // the machine has the features; `check` has compared all lengths.
            unsafe { formats::with_format!(job.weight.dtype(), tiles(job, out, scratch)) }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use gemm_q8_fn;
