//! Kernels of ops with a state in the simulator.

use super::*;

/// Two spans, of three and two rows, with a state before the second one and states kept in the first; and numbers that are out of
/// range.
fn spans() -> [Vec<i32>; 2] {
    let known = [0, 3, 0, -1, 1, 14, 2, 3, 2, 4, 2, 3, 18, 0, 1, 0, 2, 4];
    let wild = [-7, 99, -3, 88, 1234, 4_000, 3, i32::MAX, i32::MIN, -1, -9, -3, -5, 2, 0, 0, 0, 3];
    [known, wild].map(|numbers| numbers.to_vec())
}

/// SPAN_PARAMETERS of five rows, and five places.
fn span_args(numbers: &[i32]) -> Vec<Arg> {
    let sizes = [0, 2, numbers.len(), 5, 5].map(Int);
    [Numbers(numbers.to_vec())].into_iter().chain(sizes).collect()
}

#[test]
fn convolutions_do_not_race() {
    let (rows, width, taps) = (5, 70, 4);
    let states = || Floats(5 * (taps - 1) * width);
    for numbers in spans() {
        let row_spans = Numbers(vec![0, 0, 0, 1, 9]);
        let of = view(rows, width).into_iter().chain([Floats(taps * width), Floats(width)]);
        let of = of.chain([states()]).chain(view(rows, width)).chain([row_spans, Int(0)]);
        let of = of.chain(span_args(&numbers)).chain([width, taps, 1, 1].map(Int));
        let convolve = Launch::new("short_conv", [2, rows, 1], [64, 1], of);
        let of = view(rows, width).into_iter().chain([states()]).chain(span_args(&numbers));
        let of = of.chain([width, taps - 1].map(Int));
        let keep = Launch::new("keep_rows", [2, 2, 1], [64, 1], of);
        check(Family::ShortConv, KvDtype::F32, [convolve, keep]);
    }
}

#[test]
fn linear_attention_does_not_race() {
    let (rows, heads, key_heads, values) = (5, 4, 2, 20);
    for key_dim in cases(&[24][..], &[24, 5, 128][..]).iter().copied() {
        let keys = || view(rows, key_heads * key_dim);
        let wide = || view(rows, heads * values);
        for (numbers, flags) in spans().into_iter().zip([1 + 4 + 8, 2 + 4 + 16]) {
            let rates = if flags & 16 > 0 { values } else { 1 };
            let factors = if flags & 8 > 0 { key_dim } else { rates };
            let inputs = keys().into_iter().chain(keys()).chain(wide());
            let inputs = inputs.chain(view(rows, heads * factors)).chain(view(rows, heads * rates));
            let [decays, states] =
                [heads * values * key_dim, 5 * heads * 2 * key_dim * 16].map(Floats);
            let of = inputs
                .chain([Floats(heads * rates), decays, states])
                .chain(wide())
                .chain(span_args(&numbers));
            let of = of.chain([heads, key_heads, values, flags].map(Int)).chain([Float(0.3)]);
            let launch = Launch::new("linear_attention_group", [2 * heads, 2, 1], [256, 1], of);
            check(Family::LinearAttention(key_dim), KvDtype::F32, [launch]);
        }
    }
}
