//! Ops with a state: the values of the reference, and the same bits in any chunks, beside any sequences, and on from what is kept.

mod linear_attention;
mod short_conv;

use std::ops::Range;

use super::{Bench, grouped, ints, plain};
use crate::inputs::push_spans;
use crate::ops::{Ints, Spans};
use crate::session::Buffer;
use lapwing_model::device::{Batch, SpanStates};

/// Places of states.
const PLACES: usize = 24;

/// Some rows of a sequence.
#[derive(Clone, Debug)]
struct Piece {
    rows: Range<usize>,
    states: SpanStates,
}

impl Piece {
    /// Rows of a sequence with a place of its own.
    fn own(own: u32, rows: Range<usize>) -> Piece {
        let states = SpanStates::own(own, rows.start);
        Piece { rows, states }
    }

    fn kept_at(mut self, keep: &[(usize, u32)]) -> Piece {
        self.states.keep = keep.to_vec();
        self
    }

    /// The rows, on from a state that is kept.
    fn from(from: u32, to: u32, rows: Range<usize>) -> Piece {
        Piece { rows, states: SpanStates { from: Some(from), to, keep: Vec::new() } }
    }
}

/// A batch of pieces on the device.
struct OnDevice {
    numbers: Buffer,
    pieces: usize,
    rows: usize,
}

impl OnDevice {
    fn new(bench: &Bench, pieces: &[Piece]) -> OnDevice {
        let mut batch = Batch::default();
        for Piece { rows, states } in pieces {
            batch.push(&vec![0; rows.len()], rows.start, [0], 0..0);
            batch.spans.last_mut().expect("a span").states = states.clone();
        }
        let mut numbers = Vec::new();
        push_spans(&batch.spans, &mut numbers);
        let numbers: Vec<i32> = numbers.iter().map(|number| number.cast_signed()).collect();
        OnDevice { numbers: bench.ints(&numbers), pieces: pieces.len(), rows: batch.rows() }
    }

    fn spans(&self) -> Spans<'_> {
        let row_spans = ints(&self.numbers);
        let spans = Ints { at: self.rows, ..row_spans };
        Spans { row_spans, spans, count: self.pieces }
    }
}

/// The rows of pieces of a value `[rows][width]`, one piece after another.
fn of_pieces(x: &[f32], width: usize, pieces: &[Piece]) -> Vec<f32> {
    let rows = |piece: &Piece| x[piece.rows.start * width..piece.rows.end * width].to_vec();
    pieces.iter().flat_map(rows).collect()
}

/// States of which nothing is known.
fn unknown(bench: &Bench, values: usize) -> Buffer {
    bench.floats(&vec![f32::NAN; PLACES * values])
}

/// Divisions of a sequence of 17 rows, each of which a run computes: also beside others, and on from what is kept.
fn divisions() -> Vec<Vec<Vec<Piece>>> {
    let own = Piece::own;
    let in_chunks = [0, 1, 2, 5, 6, 13, 17].windows(2).map(|cut| vec![own(3, cut[0]..cut[1])]);
    vec![
        in_chunks.collect(),
        // Three sequences at different rows, of different lengths.
        vec![
            vec![own(3, 0..4), own(9, 0..17), own(5, 0..1)],
            vec![own(5, 1..2), own(3, 4..17)],
            vec![own(5, 2..17)],
        ],
        // What is kept after each row, also at two places; later ones begin there, two at once.
        vec![
            vec![own(4, 0..6).kept_at(&[(1, 10), (2, 11), (2, 12), (6, 13)])],
            vec![
                Piece::from(11, 2, 2..5).kept_at(&[(3, 14), (4, 15)]),
                own(4, 6..7),
                Piece::from(11, 6, 2..17),
            ],
            vec![Piece::from(13, 13, 6..17), Piece::from(15, 8, 4..17), own(2, 5..17)],
            vec![Piece::from(12, 7, 2..17), Piece::from(10, 1, 1..17)],
        ],
    ]
}

/// Rows of the sequence.
const ROWS: usize = 17;
