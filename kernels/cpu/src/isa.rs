//! Instruction sets as tokens: an [`Isa`] exists only if this machine has the instructions, so its kernels
//! are safe to call.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512bf16;
#[cfg(target_arch = "x86_64")]
mod avxvnni;
mod generic;
pub(crate) mod kernels;
mod kind;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod peak;
#[cfg(target_arch = "x86_64")]
mod quantize_x86;
#[cfg(test)]
mod tests;

use crate::loops::tile_shape::TileShape;
use kernels::Kernels;
use kind::{KINDS, Kind};

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Kind);

impl Isa {
    /// The fastest instruction set of this machine.
    pub fn best() -> Isa {
        let fast = |isa: &&Isa| isa.0.slow_reason().is_none();
        *Isa::available().iter().rfind(fast).unwrap_or(&Isa(Kind::Generic))
    }

    /// Every instruction set of this machine, slowest first. An instruction set that is slow here
    /// although the machine has its features is included; [`explain`](Isa::explain) says so. Never
    /// empty.
    pub fn available() -> Vec<Isa> {
        KINDS.iter().filter(|kind| kind.missing().is_empty()).map(|kind| Isa(*kind)).collect()
    }

    /// Short name: `generic`, `avx2`, `avxvnni`, `avx512`, `avx512-bf16`, `neon`, `neon-dotprod`
    /// or `neon-i8mm`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// What this instruction set requires, what the machine lacks for the others, and which is slow
    /// here.
    pub fn explain(self) -> String {
        let needs: Vec<_> = self.0.features().into_iter().map(|(name, _)| name).collect();
        let mut text = match needs.as_slice() {
            [] => format!("{}: needs no CPU features", self.name()),
            needs => format!("{}: has {}", self.name(), needs.join(", ")),
        };
        for kind in KINDS {
            let lacks = kind.missing();
            if !lacks.is_empty() {
                text += &format!("; {} lacks {}", kind.name(), lacks.join(", "));
            } else if let Some(slow_reason) = kind.slow_reason() {
                text += &format!("; {} {slow_reason}", kind.name());
            }
        }
        text
    }

    /// The register blocks of its matmuls.
    pub fn shape(self) -> TileShape {
        self.kernels().shape
    }

    /// The inner loops for this instruction set.
    pub(crate) fn kernels(self) -> &'static Kernels {
        // Fuzzers and the model checker compute nothing, and the other tables are most of the code
        // to compile.
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
