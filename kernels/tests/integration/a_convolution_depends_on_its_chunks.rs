//! A short convolution has the values of the reference, and the same bits in any chunks and batches, also where
//! it goes on from a state that another sequence has kept.

use crate::support::{assert_close, bits, cpus, noise};
use lapwing_kernels::cpu::{Cpu, Isa, ShortConv, short_conv};
use lapwing_kernels::device::{Batch, SpanStates};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvStore, PageId, StateLayout};
use lapwing_kernels::reference;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
struct Shape {
    width: usize,
    taps: usize,
    page_rows: usize,
    /// Whether it has a bias, and then x·sigmoid(x).
    is_silu: bool,
}

impl Shape {
    fn bias(self) -> Option<Vec<f32>> {
        self.is_silu.then(|| noise(9, self.width))
    }

    fn store(self, pages: usize) -> KvStore {
        let layout = KvLayout::uniform(0, KvHeads::new(0, 0), self.page_rows, KvDtype::default());
        let state = StateLayout { values: (self.taps - 1) * self.width };
        let layout = KvLayout { states: [state].into(), ..layout };
        KvStore::new(layout, pages as u32).expect("memory")
    }

    fn reference(self, x: &[f32]) -> Vec<f64> {
        let (weights, bias) = (&self.weights()[0], self.bias());
        reference::short_conv(x, self.width, weights, bias.as_deref(), self.is_silu)
    }

    /// Weights `[width][taps]`, and the same `[taps][width]`.
    fn weights(self) -> [Vec<f32>; 2] {
        let weights = noise(7, self.width * self.taps);
        let by_tap = (0..self.taps).flat_map(|tap| weights[tap..].iter().step_by(self.taps));
        let by_tap = by_tap.copied().collect();
        [weights, by_tap]
    }
}

/// A sequence: its rows, its pages, and where its chunks end.
struct Sequence {
    x: Vec<f32>,
    pages: Vec<PageId>,
    ends: Vec<usize>,
}

impl Sequence {
    fn new(shape: Shape, number: usize, ends: Vec<usize>, pages: Vec<PageId>) -> Sequence {
        let rows = ends.last().copied().unwrap_or(0);
        Sequence { x: noise(number as u64 + 1, rows * shape.width), pages, ends }
    }
}

/// Convolves the sequences: a batch has the next chunk of each that has one.
fn run(cpu: &Cpu, shape: Shape, store: &KvStore, sequences: &[Sequence]) -> Vec<Vec<f32>> {
    let (taps, bias) = (&shape.weights()[1], shape.bias());
    let (width, bias, is_silu) = (shape.width, bias.as_deref(), shape.is_silu);
    let mut outs = vec![Vec::new(); sequences.len()];
    let batches = sequences.iter().map(|sequence| sequence.ends.len()).max().unwrap_or(0);
    for number in 0..batches {
        let (mut batch, mut x, mut of) = (Batch::default(), Vec::new(), Vec::new());
        for (at, sequence) in sequences.iter().enumerate() {
            let Some(&end) = sequence.ends.get(number) else { continue };
            let start = number.checked_sub(1).map_or(0, |before| sequence.ends[before]);
            batch.push(&vec![0; end - start], start, sequence.pages.clone(), 0..0);
            x.extend(&sequence.x[start * width..end * width]);
            of.push(at);
        }
        let mut out = vec![f32::NAN; x.len()];
        let mut state = store.state(0);
        let conv = ShortConv { x: &x, width, taps, bias, is_silu };
        short_conv(cpu, &conv, &batch.spans, &state, &mut out);
        for (span, at) in batch.spans.iter().zip(of) {
            let rows = span.rows.start * width..span.rows.end * width;
            outs[at].extend(&out[rows.clone()]);
            state.keep_rows(span, &x[rows], width);
        }
    }
    outs
}

/// Ends of chunks of these lengths.
fn ends(lengths: &[usize]) -> Vec<usize> {
    let add = |end: &mut usize, rows: &usize| {
        *end += rows;
        Some(*end)
    };
    lengths.iter().scan(0, add).collect()
}

/// Pages for each sequence, by turns, from the last one on.
fn pages(shape: Shape, all: &[Vec<usize>]) -> Vec<Vec<PageId>> {
    let rows = all.iter().filter_map(|ends| ends.last().copied()).max().unwrap_or(0);
    let each = rows.div_ceil(shape.page_rows) * all.len();
    let of = |at: usize| (0..each).rev().skip(at).step_by(all.len()).map(|page| page as PageId);
    (0..all.len()).map(|at| of(at).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_chunks_of_any_sequences_have_the_bits_of_a_whole_one(
        (width, taps, page_rows) in (1usize..40, 2usize..6, 1usize..9),
        lengths in prop::collection::vec(prop::collection::vec(1usize..12, 1..7), 1..5),
        (threads, is_silu) in (1usize..4, any::<bool>()),
    ) {
        let shape = Shape { width, taps, page_rows, is_silu };
        let all: Vec<Vec<usize>> = lengths.iter().map(|lengths| ends(lengths)).collect();
        let pages = pages(shape, &all);
        let store = shape.store(pages.iter().flatten().count());
        let sequences = |whole: bool| -> Vec<Sequence> {
            let each = all.iter().zip(&pages).enumerate();
            let ends = |ends: &[usize]| ends[if whole { ends.len() - 1 } else { 0 }..].to_vec();
            each.map(|(at, (cuts, pages))| Sequence::new(shape, at, ends(cuts), pages.clone()))
                .collect()
        };
        for isa in Isa::available() {
            let whole = run(&Cpu::new(1, isa), shape, &store, &sequences(true));
            for (out, sequence) in whole.iter().zip(sequences(true)) {
                let want = shape.reference(&sequence.x);
                assert_close(out, &want, 2e-6, 1.0, isa.name());
            }
            // The places have states of other rows.
            let cut = run(&Cpu::new(threads, isa), shape, &store, &sequences(false));
            for (cut, whole) in cut.iter().zip(&whole) {
                prop_assert_eq!(bits(cut), bits(whole), "{}", isa.name());
            }
        }
    }
}

#[test]
fn a_sequence_goes_on_where_another_has_kept_its_state() {
    let shape = Shape { width: 17, taps: 4, page_rows: 3, is_silu: false };
    let (width, taps) = (shape.width, &shape.weights()[1][..]);
    for cpu in cpus(2) {
        let store = shape.store(20);
        let x = Sequence::new(shape, 0, vec![14], Vec::new()).x;
        let run = |batch: &Batch, x: &[f32]| {
            let mut out = vec![f32::NAN; x.len()];
            let mut state = store.state(0);
            let conv = ShortConv { x, width, taps, bias: None, is_silu: false };
            short_conv(&cpu, &conv, &batch.spans, &state, &mut out);
            state.keep_rows(&batch.spans[0], x, width);
            out
        };
        // In two chunks, of which the second goes on in place.
        let mut whole = Vec::new();
        for rows in [0..5, 5..14] {
            let mut batch = Batch::default();
            batch.push(&vec![0; rows.len()], rows.start, vec![0], 0..0);
            let inner = (rows.start + 1..rows.end).map(|end| (end, 1 + end as u32));
            batch.spans[0].states.keep = inner.collect();
            whole.extend(run(&batch, &x[rows.start * width..rows.end * width]));
        }
        for start in (1..14).filter(|start| *start != 5) {
            let mut batch = Batch::default();
            batch.push(&vec![0; 14 - start], start, vec![0], 0..0);
            let kept = 1 + start as u32;
            batch.spans[0].states = SpanStates { from: Some(kept), to: 16, keep: Vec::new() };
            let before = store.state(0).at(kept).to_vec();
            let out = run(&batch, &x[start * width..]);
            assert_eq!(bits(&out), bits(&whole[start * width..]), "from row {start}");
            assert_eq!(store.state(0).at(kept), before, "what is kept stays");
        }
        store.write_state(17, &store.read_state(16).expect("no device"));
        let state = store.state(0);
        assert_eq!(state.at(17), state.at(16));
    }
}
