//! Random numbers that a seed and a device name determine.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// FNV-1a hash of a name.
pub(super) fn fnv(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A standard normal random number, approximated as the sum of twelve uniform ones minus six.
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| f64::from(rng.next_u32()) / f64::from(u32::MAX)).sum::<f64>() - 6.0
}
