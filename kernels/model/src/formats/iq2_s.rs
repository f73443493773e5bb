//! IQ2_S: runs of 8 values of a grid of 1024 entries with 8 signs, blocks of 16 halves of groups whose scales have 4 bits;
//! value = d · (2 · s + 1) / 8 · ± magnitude.

use super::block::{BlockScales, Integers, Scales};
use super::grids::iq2_s::ENTRIES;
use super::grids::{Grid, Limits, OF_IQ2, codes, index, odd_scales, scaled, signed_table, signs};
use super::naive::{bit, half_at};
use super::{ActivationBlocks, Places, Quantised};

const TABLE: [i8; 16] = signed_table(OF_IQ2, 8);

static GRID: Grid = Grid::new(&ENTRIES, OF_IQ2, 8);

/// The format IQ2_S.
#[derive(Clone, Copy, Debug)]
pub struct Iq2S;

/// The index of run `r`: the low 8 bits are a byte, the upper 2 are behind the signs.
#[inline(always)]
fn entry(b: &[u8], r: usize) -> u16 {
    let high = b[66 + r / 4] >> (2 * (r % 4)) & 3;
    ENTRIES[usize::from(b[2 + r]) | usize::from(high) << 8]
}

impl Quantised for Iq2S {
    const NAME: &'static str = "IQ2_S";
    const GGUF_ID: u32 = 22;
    const LEN: usize = 256;
    const BYTES: usize = 82;
    const BITS: usize = 3;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Halves;
    const UNIT: f32 = 0.125;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (r, q) in q.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            codes::<8>(entry(stored, r), stored[34 + r], q);
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::at(stored, 0);
        for (j, to) in all.factors.iter_mut().enumerate() {
            *to = 2 * (stored[74 + j / 2] >> (4 * (j % 2)) & 15) + 1;
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let high = usize::from(b[66 + i / 32]) >> (i % 32 / 8 * 2) & 3;
        let at = usize::from(b[2 + i / 8]) + 256 * high;
        let magnitude = OF_IQ2[usize::from(index(ENTRIES[at], 8, i % 8))];
        let both = b[74 + i / 32];
        let s = if i % 32 < 16 { both % 16 } else { both / 16 };
        let scale = half_at(b, 0) * (0.5 + f32::from(s)) * 0.25;
        scale * f32::from(magnitude) * if bit(&b[34..], i) == 1 { -1.0 } else { 1.0 }
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let limits = Limits { unit: Self::UNIT, s_max: 15, largest: 43.0 };
        let scales = odd_scales(x, 16, limits);
        let (mut low, mut all_signs, mut high) = (Vec::new(), Vec::new(), vec![0u8; 8]);
        for (r, x) in x.chunks(8).enumerate() {
            let x = scaled(x, scales.spans[r / 2]);
            let magnitudes: Vec<f32> = x.iter().map(|x| x.abs()).collect();
            let at = GRID.nearest(&magnitudes);
            low.push(at as u8);
            high[r / 4] |= ((at >> 8) as u8) << (2 * (r % 4));
            all_signs.push(signs(&x, false));
        }
        let both = scales.s.chunks(2).map(|two| two[0] | two[1] << 4).collect();
        [scales.d.to_le_bytes().to_vec(), low, all_signs, high, both].concat()
    }
}
