//! Instruction sets as tokens: an [`Isa`] exists only if this machine has the instructions,
//! so whoever holds one may call its kernels.

use crate::cpu::packed::TileBytes;
use crate::cpu::tile::{self, ActBlock, FloatJob, KernelScratch, QuantJob, RowsView};
use crate::cpu::{act, logits, norm, quantize, rope, softmax};
use asking::FurtherOn;
use kind::{KINDS, Kind};
use panel::Widen;
use product::Product;

pub(crate) mod asking;
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
pub(crate) mod paired;
pub(crate) mod panel;
pub(crate) mod peak;
pub(crate) mod product;
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
    pub(crate) unpack: fn(&RowsView<'_>, &mut [u8]),
    /// Rows of quantised activations times some tiles: `[rows][16 per tile]`.
    pub(crate) quant_tiles: fn(&QuantJob<'_>, &mut [f32], &mut KernelScratch),
    /// The values of a quantised tile in f32, `[k][16]`, little-endian.
    pub(crate) widen_tile: fn(&TileBytes<'_>, &mut [u8]),
    /// Rows of activations times some tiles of floats: `[rows][16 per tile]`.
    pub(crate) float_tiles: fn(&FloatJob<'_>, &mut [f32]),
    /// Quantises one row of activations.
    pub(crate) quantize: fn(&[f32], quantize::ActKind, &mut [ActBlock]),
    /// RMS norm of one row.
    pub(crate) rms_norm: fn(&[f32], &norm::RmsWeight<'_>, &mut [f32]),
    /// Rotates the heads of one row.
    pub(crate) rotate: fn(&[f32], &rope::RowAngles<'_>, &mut [f32]),
    /// `act(gate) · up`.
    pub(crate) gated: fn(crate::op::Activation, &[f32], &[f32], &mut [f32]),
    /// `cap · tanh(x / cap)` in place.
    pub(crate) soft_cap: fn(&mut [f32], f32),
    /// `c = a · b` or `c += a · b`, b being keys or values as stored.
    pub(crate) product: fn(&Product<'_>, &mut [f32]),
    /// Products of pairs, where they are faster.
    pub(crate) paired: Option<&'static paired::Paired>,
    /// The largest number of f32.
    pub(crate) read: fn(&[u8], Option<FurtherOn>) -> f32,
    /// Keys or values to f32.
    pub(crate) widen: fn(&Widen<'_>, &mut [f32]),
    /// f32 to binary16.
    pub(crate) narrow: fn(&[f32], &mut [u16]),
    /// One step of online softmax for some lines.
    pub(crate) weigh: fn(&mut [f32], &softmax::Weigh<'_>, &mut [softmax::Online], &mut [f32]),
    /// `x = x · factor + y · factor`.
    pub(crate) join: fn(&mut [f32], &[f32], (f32, f32)),
    /// Most lines of a product whose keys and values are read as they are stored: with more, each would
    /// be converted more than once. 0 where converting costs more than reading f32.
    pub(crate) direct_lines: usize,
    /// `x *= factor`.
    pub(crate) scale: fn(&mut [f32], f32),
    /// `out = x · factor`.
    pub(crate) scaled: fn(&[f32], f32, &mut [f32]),
    /// `out = a + b`.
    pub(crate) add: fn(&[f32], &[f32], &mut [f32]),
    /// The largest logit that is finite, and the largest that is a number.
    pub(crate) largest_finite: fn(&[f32]) -> f32,
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
        let fast = |isa: &&Isa| isa.0.drawback().is_none();
        *Isa::available().iter().rfind(fast).unwrap_or(&Isa(Kind::Generic))
    }

    /// Every instruction set that this machine has, slowest first, but for one that is slow on it
    /// although it has the features ([`why`](Isa::why) says so). Never empty.
    pub fn available() -> Vec<Isa> {
        KINDS.iter().filter(|kind| kind.missing().is_empty()).map(|kind| Isa(*kind)).collect()
    }

    /// Short name: `generic`, `avx2`, `avxvnni`, `avx512`, `avx512-bf16`, `neon`, `neon-dotprod`
    /// or `neon-i8mm`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// What this instruction set needs and, for each faster one, what the machine lacks.
    pub fn why(self) -> String {
        let needs: Vec<_> = self.0.features().into_iter().map(|(name, _)| name).collect();
        let mut why = match needs.as_slice() {
            [] => format!("{}: needs nothing special", self.name()),
            needs => format!("{}: has {}", self.name(), needs.join(", ")),
        };
        for kind in KINDS {
            let lacks = kind.missing();
            if !lacks.is_empty() {
                why += &format!("; {} lacks {}", kind.name(), lacks.join(", "));
            } else if let Some(drawback) = kind.drawback() {
                why += &format!("; {} {drawback}", kind.name());
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
        crate::cpu::isa::shared!($features,
            rms_norm(x: &[f32], w: &norm::RmsWeight<'_>, out: &mut [f32]) = norm::row::<$fma>;
            rotate(x: &[f32], angles: &rope::RowAngles<'_>, out: &mut [f32]) = rope::row::<$fma>;
            soft_cap(x: &mut [f32], cap: f32) = act::soft_cap_body::<$fma>;
            join(x: &mut [f32], y: &[f32], factors: (f32, f32)) = softmax::join::<$fma>;
            scale(x: &mut [f32], factor: f32) = act::scale_body;
            scaled(x: &[f32], factor: f32, out: &mut [f32]) = act::scaled_body;
            add(a: &[f32], b: &[f32], out: &mut [f32]) = act::add_body;
            largest_finite(logits: &[f32]) -> f32 = logits::largest_finite;
            largest(logits: &[f32]) -> f32 = logits::largest;
            sum_exp(block: &[f32], max: f32) -> f64 = logits::sum_exp;
        );
        crate::cpu::isa::attending!($features,
            product(p: &Product<'_>, c: &mut [f32]) = crate::cpu::isa::product::product::<$lanes>;
            widen_tile(tile: &TileBytes<'_>, to: &mut [u8]) = crate::cpu::isa::widen::widen::<$lanes>;
            read(bytes: &[u8], ahead: Option<crate::cpu::isa::asking::FurtherOn>) -> f32 = crate::cpu::isa::panel::read::<$lanes>;
            widen(w: &Widen<'_>, out: &mut [f32]) = crate::cpu::isa::panel::widen::<$lanes>;
            gated(k: crate::op::Activation, g: &[f32], u: &[f32], out: &mut [f32]) = crate::cpu::isa::gates::gated::<$lanes>;
            narrow(x: &[f32], out: &mut [u16]) = crate::cpu::isa::panel::narrow::<$lanes>;
            weigh(s: &mut [f32], w: &softmax::Weigh<'_>, o: &mut [softmax::Online], f: &mut [f32]) = softmax::weigh::<$lanes>;
        );
        pub(super) static KERNELS: Kernels = Kernels {
            rms_norm, rotate, gated, soft_cap, join, widen_tile,
            product, paired: None, read, widen, narrow, weigh, scale, scaled, add, largest_finite, largest, sum_exp, $($field: $own),+
        };
    };
}

/// A safe function per body, compiled with `$features` (`()` for none).
macro_rules! shared {
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

/// As `shared!`, for bodies that are unsafe because they use intrinsics.
macro_rules! attending {
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
use {attending, kernels, shared};

/// A `quant_tiles` of the [`blocks`], compiled with `$features` for sums of kind `$dots`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! products {
    ($name:ident, $features:literal, $dots:ty) => {
        fn $name(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
            /// # Safety
            /// The machine has the features, and lengths are as [`QuantJob::check`] demands.
            #[target_feature(enable = $features)]
            unsafe fn tiles<F: formats::Format>(
                job: &QuantJob<'_>,
                out: &mut [f32],
                scratch: &mut KernelScratch,
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
use products;
