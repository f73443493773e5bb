//! IQ1_S: runs of 8 values of a grid of 2048 entries, blocks of 8 groups of 32 whose scales have 3 bits and which are moved up or
//! down by an eighth; value = d · (2 · s + 1) · (g ± 1/8), where g is −1, 0 or 1.

use super::block::{BlockScales, Integers, Scales, half_bits};
use super::grids::iq1::ENTRIES;
use super::grids::{Grid, Limits, codes, index, odd_scales, scaled};
use super::naive::half_at;
use super::{ActivationBlocks, Places, Quantised};

/// Eight times g + 1/8, and from code 4 on g − 1/8.
pub(super) const TABLE: [i8; 16] = [-7, 1, 9, 0, -9, -1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0];

pub(super) static GRID: Grid = Grid::new(&ENTRIES, &[-1, 0, 1], 8);

/// The format IQ1_S.
#[derive(Clone, Copy, Debug)]
pub struct Iq1S;

/// Of group `g`: the upper 3 bits of 4 indices, 3 bits of the scale, and whether it is moved down.
#[inline(always)]
fn upper(b: &[u8], g: usize) -> u16 {
    half_bits(b, 34 + 2 * g)
}

/// The entry whose index has these low and high bits.
#[inline(always)]
pub(super) fn entry(low: u8, high: u16) -> u16 {
    ENTRIES[usize::from(low) | usize::from(high & 7) << 8]
}

/// The value of index `i` of an entry, moved by an eighth.
pub(super) fn moved(entry: u16, i: usize, is_down: bool) -> f32 {
    f32::from(index(entry, 8, i)) - 1.0 + if is_down { -0.125 } else { 0.125 }
}

/// Squared distance of `x`, in units of the scale, from the entry with this index, moved by an eighth.
pub(super) fn distance(x: &[f32], at: usize, is_down: bool) -> f32 {
    let error = |(i, x): (usize, &f32)| (moved(ENTRIES[at], i, is_down) - x).powi(2);
    x.iter().enumerate().map(error).sum()
}

/// The index of the entry nearest to `x`, in units of the scale, if it is moved by an eighth.
pub(super) fn nearest(x: &[f32], is_down: bool) -> usize {
    let by = if is_down { 0.125 } else { -0.125 };
    GRID.nearest(&x.iter().map(|x| x + by).collect::<Vec<f32>>())
}

impl Quantised for Iq1S {
    const NAME: &'static str = "IQ1_S";
    const GGUF_ID: u32 = 19;
    const LEN: usize = 256;
    const BYTES: usize = 50;
    const BITS: usize = 3;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Signed;
    const UNIT: f32 = 0.125;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (r, q) in q.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let upper = upper(stored, r / 4);
            let down = if upper >> 15 == 1 { 0xff } else { 0 };
            codes::<8>(entry(stored[2 + r], upper >> (3 * (r % 4))), down, q);
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::at(stored, 0);
        for g in 0..8 {
            all.factors[g] = 2 * (upper(stored, g) >> 12 & 7) as u8 + 1;
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let at = 34 + i / 32 * 2;
        let upper = u16::from_le_bytes([b[at], b[at + 1]]);
        let high = usize::from(upper >> (i % 32 / 8 * 3)) % 8;
        let entry = ENTRIES[usize::from(b[2 + i / 8]) + 256 * high];
        let scale = half_at(b, 0) * f32::from(2 * (upper >> 12 & 7) + 1);
        scale * moved(entry, i % 8, upper >= 0x8000)
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let scales = odd_scales(x, 32, Limits { unit: 1.0, s_max: 7, largest: 1.125 });
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (g, x) in x.chunks(32).enumerate() {
            let x = scaled(x, scales.spans[g]);
            let runs = |is_down| x.chunks(8).map(move |x| nearest(x, is_down));
            let error = |is_down| -> f32 {
                let runs = x.chunks(8).zip(runs(is_down));
                runs.map(|(x, at)| distance(x, at, is_down)).sum()
            };
            let is_down = error(true) < error(false);
            let mut bits = u16::from(scales.s[g]) << 12 | u16::from(is_down) << 15;
            for (r, at) in runs(is_down).enumerate() {
                low.push(at as u8);
                bits |= ((at >> 8) as u16) << (3 * r);
            }
            high.extend(bits.to_le_bytes());
        }
        [scales.d.to_le_bytes().to_vec(), low, high].concat()
    }
}
