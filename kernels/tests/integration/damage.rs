//! Damage to files, the same on every run, and the peak memory of a test.

/// Largest peak of memory in KiB.
pub(crate) const RSS_MAX_KB: u64 = 200 * 1024;

/// Replacement values for lengths, counts and offsets.
pub(crate) const EXTREMES: [u64; 12] = [
    0,
    1,
    0x7f,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 32,
    1 << 40,
    1_000_000_000_000_000_000,
    i64::MAX as u64,
    u64::MAX - 31,
    u64::MAX,
];

/// Pseudo-random numbers (xorshift), the same on every run.
pub(crate) struct Random(u64);

impl Random {
    /// Random numbers of a case.
    pub(crate) fn of_case(n: u64) -> Random {
        Random(0x9e37_79b9_7f4a_7c15 ^ (n + 1).wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 11) % end.max(1) as u64) as usize
    }
}

pub(crate) fn flip(random: &mut Random, file: &mut [u8], at: usize) {
    if let Some(byte) = file.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

pub(crate) fn overwrite(file: &mut [u8], at: usize, value: &[u8]) {
    for (byte, value) in file.iter_mut().skip(at).zip(value) {
        *byte = *value;
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn peak_rss_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a peak of memory");
    Some(line.trim().trim_end_matches(" kB").parse().expect("a number"))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn peak_rss_kb() -> Option<u64> {
    None
}
