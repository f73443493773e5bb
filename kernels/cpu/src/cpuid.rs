//! Which processor this is.

/// Family of the processor if AMD made it: 25 (0x19) is Zen 3 and 4, 26 is Zen 5.
pub(crate) fn amd_family() -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    {
        let id = std::arch::x86_64::__cpuid(0);
        let is_amd =
            [id.ebx, id.edx, id.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD";
        // AMD64 Architecture Programmer's Manual, volume 3, CPUID Fn0000_0001_EAX.
        let version = std::arch::x86_64::__cpuid(1).eax;
        is_amd.then_some(((version >> 8) & 0xF) + ((version >> 20) & 0xFF))
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}
