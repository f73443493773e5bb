//! IQ3_S: runs of 4 values of a grid of 512 entries with their signs, blocks of 8 groups of 32 whose scales have 4 bits;
//! value = d · (2 · s + 1) · ± magnitude.

use super::block::{BlockScales, Integers, Scales};
use super::grids::iq3_s::ENTRIES;
use super::grids::{Grid, Limits, codes, index, odd_scales, scaled, signed_table, signs};
use super::naive::{bit, half_at};
use super::{ActivationBlocks, Places, Quantised};

const MAGNITUDES: &[i8] = &[1, 3, 5, 7, 9, 11, 13, 15];

const TABLE: [i8; 16] = signed_table(MAGNITUDES, 4);

static GRID: Grid = Grid::new(&ENTRIES, MAGNITUDES, 4);

/// The format IQ3_S.
#[derive(Clone, Copy, Debug)]
pub struct Iq3S;

/// Run `r`: the low 8 bits of its index are a byte, the ninth is behind all of them.
#[inline(always)]
fn entry(b: &[u8], r: usize) -> u16 {
    let high = b[66 + r / 8] >> (r % 8) & 1;
    ENTRIES[usize::from(b[2 + r]) | usize::from(high) << 8]
}

impl Quantised for Iq3S {
    const NAME: &'static str = "IQ3_S";
    const GGUF_ID: u32 = 21;
    const LEN: usize = 256;
    const BYTES: usize = 110;
    const BITS: usize = 4;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Signed;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (r, q) in q.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            codes::<4>(entry(stored, r), stored[74 + r / 2] >> (4 * (r % 2)), q);
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::at(stored, 0);
        for g in 0..8 {
            all.factors[g] = 2 * (stored[106 + g / 2] >> (4 * (g % 2)) & 15) + 1;
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let at = usize::from(b[2 + i / 4]) + 256 * bit(&b[66..], i / 4) as usize;
        let magnitude = MAGNITUDES[usize::from(index(ENTRIES[at], 4, i % 4))];
        let both = b[106 + i / 64];
        let s = if i % 64 < 32 { both % 16 } else { both / 16 };
        let scale = half_at(b, 0) * f32::from(1 + 2 * s);
        scale * f32::from(magnitude) * if bit(&b[74..], i) == 1 { -1.0 } else { 1.0 }
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let limits = Limits { unit: Self::UNIT, s_max: 15, largest: 15.0 };
        let scales = odd_scales(x, 32, limits);
        let (mut low, mut high, mut all_signs) = (Vec::new(), vec![0u8; 8], Vec::new());
        for (g, x) in x.chunks(32).enumerate() {
            let x = scaled(x, scales.spans[g]);
            all_signs.extend(x.chunks(8).map(|x| signs(x, false)));
            let magnitudes: Vec<f32> = x.iter().map(|x| x.abs()).collect();
            for (r, x) in magnitudes.chunks(4).enumerate() {
                let at = GRID.nearest(x);
                low.push(at as u8);
                high[g] |= ((at >> 8) as u8) << r;
            }
        }
        let both = scales.s.chunks(2).map(|two| two[0] | two[1] << 4).collect();
        [scales.d.to_le_bytes().to_vec(), low, high, all_signs, both].concat()
    }
}
