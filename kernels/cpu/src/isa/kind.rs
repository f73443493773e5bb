//! Which instruction sets there are, and what they need.

#[cfg(target_arch = "x86_64")]
use crate::cpuid::amd_family;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Generic,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx512Bf16,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "aarch64")]
    NeonDotprod,
    #[cfg(target_arch = "aarch64")]
    NeonI8mm,
}

/// Every kind that this architecture may have, slowest first except for kinds with a
/// [`slow_reason`](Kind::slow_reason).
pub(super) const KINDS: &[Kind] = &[
    Kind::Generic,
    #[cfg(target_arch = "x86_64")]
    Kind::Avx2,
    #[cfg(target_arch = "x86_64")]
    Kind::AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Kind::Avx512,
    #[cfg(target_arch = "x86_64")]
    Kind::Avx512Bf16,
    #[cfg(target_arch = "aarch64")]
    Kind::Neon,
    #[cfg(target_arch = "aarch64")]
    Kind::NeonDotprod,
    #[cfg(target_arch = "aarch64")]
    Kind::NeonI8mm,
];

impl Kind {
    /// Short name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Generic => "generic",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::AvxVnni => "avxvnni",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Bf16 => "avx512-bf16",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Kind::NeonDotprod => "neon-dotprod",
            #[cfg(target_arch = "aarch64")]
            Kind::NeonI8mm => "neon-i8mm",
        }
    }

    /// Why the kinds before this one are faster on this machine; `None` if they are not.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn slow_reason(self) -> Option<&'static str> {
        // vdpbf16ps has the throughput of a multiply-add on Zen 4 and 5, and a quarter of it on an
        // Intel server CPU.
        let is_slow = matches!(self, Kind::Avx512Bf16) && amd_family().is_none();
        is_slow.then_some("is slow here: vdpbf16ps is fast on AMD processors only")
    }

    /// Why the kinds before this one are faster on this machine; `None` if they are not.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn slow_reason(self) -> Option<&'static str> {
        None
    }

    /// CPU features that this machine lacks.
    pub(super) fn missing(self) -> Vec<&'static str> {
        let lacking = self.features().into_iter().filter(|(_, has)| !has);
        lacking.map(|(name, _)| name).collect()
    }

    /// CPU features that this kind requires, and whether this machine has them.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn features(self) -> Vec<(&'static str, bool)> {
        macro_rules! has { ($($f:tt),*) => { vec![$(($f, std::arch::is_x86_feature_detected!($f))),*] } }
        match self {
            Kind::Generic => Vec::new(),
            Kind::Avx2 => has!("avx2", "fma", "f16c"),
            Kind::AvxVnni => has!("avxvnni", "avx2", "fma", "f16c"),
            Kind::Avx512 => {
                has!(
                    "avx512f",
                    "avx512bw",
                    "avx512vl",
                    "avx512dq",
                    "avx512vnni",
                    "avx2",
                    "fma",
                    "f16c"
                )
            }
            Kind::Avx512Bf16 => [has!("avx512bf16"), Kind::Avx512.features()].concat(),
        }
    }

    /// CPU features that this kind requires, and whether this machine has them.
    #[cfg(target_arch = "aarch64")]
    pub(super) fn features(self) -> Vec<(&'static str, bool)> {
        macro_rules! has {
            ($($f:tt),*) => { vec![$(($f, std::arch::is_aarch64_feature_detected!($f))),*] }
        }
        match self {
            Kind::Generic => Vec::new(),
            Kind::Neon => has!("neon"),
            Kind::NeonDotprod => has!("neon", "dotprod"),
            Kind::NeonI8mm => has!("neon", "dotprod", "i8mm"),
        }
    }

    /// CPU features that this kind requires: none for this architecture.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) fn features(self) -> Vec<(&'static str, bool)> {
        Vec::new()
    }
}
