//! Prompts in blocks of tokens.

/// Tokens of a block, as in other routers that know caches.
pub const BLOCK_TOKENS: usize = 16;

/// A number for each whole block of a text. Equal blocks have equal numbers, and others almost surely not; the number does not depend on
/// what is before the block, nor on the program that computes it.
pub fn blocks(ids: &[u32]) -> Vec<u64> {
    let number = |block: &[u32]| {
        let pairs = block.chunks_exact(2);
        let mixed = pairs.fold(0x9e37_79b9_7f4a_7c15_u64, |state, pair| {
            let pair = (u64::from(pair[0]) << 32) | u64::from(pair[1]);
            (state ^ pair).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
        });
        (mixed ^ (mixed >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
    };
    ids.chunks_exact(BLOCK_TOKENS).map(number).collect()
}
