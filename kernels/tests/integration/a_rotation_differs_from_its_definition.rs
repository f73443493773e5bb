//! Rotary embeddings on every instruction set against their definition.

use crate::support::{assert_close, cpus, noise};
use lapwing_kernels::cpu::{self, Cpu, Isa, RopeFreqs, RopeShape};
use lapwing_kernels::op::{RopePairs, RopeScaling};

/// ggml's rotation angle of a pair, in f64, by its definition.
fn angle(base: f64, dims: usize, pair: usize, position: f64) -> f64 {
    position * base.powf(-2.0 * pair as f64 / dims as f64)
}

#[test]
fn rope_matches_the_reference_in_both_pairings() {
    let (heads, head_dim, dims) = (3, 20, 16);
    let positions = [0, 1, 77, 1023];
    let freqs = RopeFreqs::new(10_000.0, dims, RopeScaling::None, None);
    for cpu in cpus(2) {
        for style in [RopePairs::Adjacent, RopePairs::Halves] {
            let x = noise(8, positions.len() * heads * head_dim);
            let mut got = vec![f32::NAN; x.len()];
            let shape = RopeShape { heads, head_dim, pairs: style };
            cpu::rope(&cpu, &x, shape, &freqs.angles(&positions), &mut got);
            let mut want: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            for (i, head) in want.chunks_mut(head_dim).enumerate() {
                for pair in 0..dims / 2 {
                    let (a, b) = match style {
                        RopePairs::Adjacent => (2 * pair, 2 * pair + 1),
                        RopePairs::Halves => (pair, pair + dims / 2),
                    };
                    let turn = angle(1e4, dims, pair, f64::from(positions[i / heads]));
                    let (sin, cos) = turn.sin_cos();
                    (head[a], head[b]) =
                        (head[a] * cos - head[b] * sin, head[a] * sin + head[b] * cos);
                }
            }
            assert_close(&got, &want, 1e-4, 1.0, &format!("{style:?}"));
        }
    }
}

#[test]
fn rope_scaling_and_factors_match_their_definition() {
    let (dims, position) = (8, 300);
    let first = |scaling, factors: Option<&[f32]>| {
        let freqs = RopeFreqs::new(10_000.0, dims, scaling, factors);
        let x = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0];
        let mut out = [f32::NAN; 8];
        let shape = RopeShape { heads: 1, head_dim: dims, pairs: RopePairs::Adjacent };
        cpu::rope(&Cpu::new(1, Isa::best()), &x, shape, &freqs.angles(&[position]), &mut out);
        out
    };
    let want = |angles: [f64; 4], magnitude: f64| {
        let pairs = angles.iter().flat_map(|a| [a.cos() * magnitude, a.sin() * magnitude]);
        pairs.collect::<Vec<f64>>()
    };
    let plain = [0, 1, 2, 3].map(|i| angle(1e4, dims, i, f64::from(position)));
    assert_close(&first(RopeScaling::None, None), &want(plain, 1.0), 1e-4, 1.0, "none");
    let linear = first(RopeScaling::Linear { factor: 4.0 }, None);
    assert_close(&linear, &want(plain.map(|a| a / 4.0), 1.0), 1e-4, 1.0, "linear");
    let factors = [1.0, 2.0, 4.0, 8.0];
    let divided = [0, 1, 2, 3].map(|i| plain[i] / f64::from(factors[i]));
    assert_close(
        &first(RopeScaling::None, Some(&factors)),
        &want(divided, 1.0),
        1e-4,
        1.0,
        "factors",
    );
    // base 10^4, 8 dims, context 4096: pair(n) = 8·ln(4096/2πn) / 2·ln 10^4 is 1.31 for 32
    // rotations and 2.81 for 1, so the ramp runs from pair 1 to pair 3.
    let yarn = RopeScaling::Yarn {
        factor: 4.0,
        original_context: 4096,
        attn_factor: 1.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
    };
    let kept = [1.0, 1.0, 0.5, 0.0];
    let mixed = [0, 1, 2, 3].map(|i| plain[i] / 4.0 * (1.0 - kept[i]) + plain[i] * kept[i]);
    let magnitude = 1.0 + 0.1 * 4f64.ln();
    assert_close(&first(yarn, None), &want(mixed, magnitude), 1e-4, 1.0, "yarn");
}
