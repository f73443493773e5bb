//! IQ2_XS: runs of 8 values of a grid of 512 entries, with an even number of signs, blocks of 16 halves of groups whose scales have
//! 4 bits; value = d · (2 · s + 1) / 8 · ± magnitude.

use super::block::{BlockScales, Integers, Scales, half_bits};
use super::grids::iq2_xs::ENTRIES;
use super::grids::{
    Grid, Limits, OF_IQ2, codes, even_signs, index, odd_scales, scaled, signed_table, signs,
};
use super::naive::half_at;
use super::{ActivationBlocks, Places, Quantised};

const TABLE: [i8; 16] = signed_table(OF_IQ2, 8);

static GRID: Grid = Grid::new(&ENTRIES, OF_IQ2, 8);

/// The format IQ2_XS.
#[derive(Clone, Copy, Debug)]
pub struct Iq2Xs;

impl Quantised for Iq2Xs {
    const NAME: &'static str = "IQ2_XS";
    const GGUF_ID: u32 = 17;
    const LEN: usize = 256;
    const BYTES: usize = 74;
    const BITS: usize = 3;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Halves;
    const UNIT: f32 = 0.125;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    /// A run is a word: 9 bits of the index, 7 signs.
    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (r, q) in q.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let run = half_bits(stored, 2 + 2 * r);
            let signs = even_signs(u32::from(run >> 9));
            codes::<8>(ENTRIES[usize::from(run & 511)], signs, q);
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::at(stored, 0);
        for (j, to) in all.factors.iter_mut().enumerate() {
            *to = 2 * (stored[66 + j / 2] >> (4 * (j % 2)) & 15) + 1;
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let run = u16::from_le_bytes([b[2 + i / 8 * 2], b[3 + i / 8 * 2]]);
        let magnitude = OF_IQ2[usize::from(index(ENTRIES[usize::from(run % 512)], 8, i % 8))];
        let seven = run / 512;
        let is_negative = match i % 8 {
            7 => seven.count_ones() % 2 == 1,
            bit => seven >> bit & 1 == 1,
        };
        let both = b[66 + i / 32];
        let s = if i % 32 < 16 { both % 16 } else { both / 16 };
        let scale = half_at(b, 0) * (0.5 + f32::from(s)) * 0.25;
        scale * f32::from(magnitude) * if is_negative { -1.0 } else { 1.0 }
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let limits = Limits { unit: Self::UNIT, s_max: 15, largest: 43.0 };
        let scales = odd_scales(x, 16, limits);
        let mut bytes = scales.d.to_le_bytes().to_vec();
        for (r, x) in x.chunks(8).enumerate() {
            let x = scaled(x, scales.spans[r / 2]);
            let magnitudes: Vec<f32> = x.iter().map(|x| x.abs()).collect();
            let run = GRID.nearest(&magnitudes) as u16 | u16::from(signs(&x, true)) << 9;
            bytes.extend(run.to_le_bytes());
        }
        bytes.extend(scales.s.chunks(2).map(|two| two[0] | two[1] << 4));
        bytes
    }
}
