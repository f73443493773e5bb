//! Causal convolutions over a few rows.

use super::super::rows::of_both_kinds;
use super::super::{assert_near, bits, cases, noise};
use super::{Bench, OnDevice, Piece, ROWS, divisions, of_pieces, unknown};
use crate::ops::{ShortConv, StateRows};
use crate::session::Buffer;
use lapwing_model::reference;

of_both_kinds! {
    convolutions_agree_with_the_reference_in_any_chunks_and_company
    convolutions_of_gpus_agree_with_the_reference_in_any_chunks_and_company
    check
}

/// The columns of a sequence.
struct Columns {
    x: Vec<f32>,
    width: usize,
    taps: usize,
    /// `[width][taps]`.
    weights: Vec<f32>,
    bias: Option<Vec<f32>>,
    is_silu: bool,
}

impl Columns {
    /// The outputs of pieces in a batch.
    fn run(&self, bench: &mut Bench, pieces: &[Piece], states: &Buffer) -> Vec<f32> {
        let Columns { width, taps, is_silu, .. } = *self;
        let batch = OnDevice::new(bench, pieces);
        let x = bench.guarded(&of_pieces(&self.x, width, pieces), width);
        let transposed: Vec<f32> = (0..taps)
            .flat_map(|tap| (0..width).map(move |column| (column, tap)))
            .map(|at| self.weights[at.0 * taps + at.1])
            .collect();
        let (weights, out) = (bench.floats(&transposed), bench.room(batch.rows, width));
        let bias = self.bias.as_ref().map(|bias| bench.floats(bias));
        let job = ShortConv {
            x: x.view(),
            width,
            weights: &weights,
            taps,
            bias: bias.as_ref(),
            is_silu,
            state: StateRows { states, spans: batch.spans(), rows: batch.rows },
            out: out.view(),
        };
        bench.kernels.short_conv(&job).unwrap();
        bench.rows(&out)
    }
}

fn check(mut bench: Bench) {
    let widths = [1, 17, 300, 16, 256];
    for &width in &widths[..cases(3, widths.len())] {
        for (taps, has_bias) in [(4, true), (3, false), (2, true), (1, false)] {
            let is_silu = has_bias;
            let (x, weights) = (noise(5, ROWS * width), noise(6, width * taps));
            let bias = has_bias.then(|| noise(7, width));
            let of = Columns { x, width, taps, weights, bias, is_silu };
            let what = format!("{width} columns, {taps} rows");
            let values = ((taps - 1) * width).max(1);
            let states = unknown(&bench, values);
            let whole = of.run(&mut bench, &[Piece::own(0, 0..ROWS)], &states);
            let bias = of.bias.as_deref();
            let wanted = reference::short_conv(&of.x, width, &of.weights, bias, is_silu);
            assert_near(&whole, &wanted, 2e-6, &what);
            for batches in divisions() {
                let states = unknown(&bench, values);
                for pieces in batches {
                    let found = of.run(&mut bench, &pieces, &states);
                    let wanted = of_pieces(&whole, width, &pieces);
                    assert!(bits(&found) == bits(&wanted), "{what}: {pieces:?}");
                    let states = bench.read(&states);
                    for Piece { rows, states: of_piece } in &pieces {
                        let kept = (taps - 1).min(rows.end);
                        let last = &of.x[(rows.end - kept) * width..rows.end * width];
                        let at = of_piece.to as usize * values;
                        let zeros = (taps - 1 - kept) * width;
                        let found = &states[at..at + (taps - 1) * width];
                        assert!(found[..zeros].iter().all(|x| *x == 0.0), "{what}: {rows:?}");
                        assert!(bits(&found[zeros..]) == bits(last), "{what}: {rows:?}");
                    }
                }
            }
        }
    }
}
