//! IQ3_XXS: runs of 4 values of a grid of 256 entries, two of which have an even number of signs, blocks of 8 groups of 32 whose
//! scales have 4 bits; value = d · (2 · s + 1) / 4 · ± magnitude.

use super::block::{BlockScales, Integers, Scales};
use super::grids::iq3_xxs::ENTRIES;
use super::grids::{
    Grid, Limits, codes, even_signs, index, odd_scales, scaled, signed_table, signs,
};
use super::naive::half_at;
use super::{ActivationBlocks, Places, Quantised};

const MAGNITUDES: &[i8] = &[4, 12, 20, 28, 36, 44, 52, 62];

const TABLE: [i8; 16] = signed_table(MAGNITUDES, 4);

static GRID: Grid = Grid::new(&ENTRIES, MAGNITUDES, 4);

/// The format IQ3_XXS.
#[derive(Clone, Copy, Debug)]
pub struct Iq3Xxs;

/// 4 times 7 signs of group `g`, and its scale in the upper 4 bits. They are behind the indices.
#[inline(always)]
fn upper(b: &[u8], g: usize) -> u32 {
    let at = 66 + 4 * g;
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

impl Quantised for Iq3Xxs {
    const NAME: &'static str = "IQ3_XXS";
    const GGUF_ID: u32 = 18;
    const LEN: usize = 256;
    const BYTES: usize = 98;
    const BITS: usize = 4;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Signed;
    const UNIT: f32 = 0.25;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        for (r, q) in q.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let signs = even_signs(upper(stored, r / 4) >> (7 * (r % 4)));
            let (first, second) = q.split_at_mut(4);
            codes::<4>(ENTRIES[usize::from(stored[2 + 2 * r])], signs, first);
            codes::<4>(ENTRIES[usize::from(stored[3 + 2 * r])], signs >> 4, second);
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::at(stored, 0);
        for g in 0..8 {
            all.factors[g] = 2 * (upper(stored, g) >> 28) as u8 + 1;
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let magnitude =
            MAGNITUDES[usize::from(index(ENTRIES[usize::from(b[2 + i / 4])], 4, i % 4))];
        let at = 66 + i / 32 * 4;
        let bits = u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let seven = bits >> (i % 32 / 8 * 7) & 127;
        let is_negative = match i % 8 {
            7 => seven.count_ones() % 2 == 1,
            bit => seven >> bit & 1 == 1,
        };
        let scale = half_at(b, 0) * (0.5 + (bits >> 28) as f32) * 0.5;
        scale * f32::from(magnitude) * if is_negative { -1.0 } else { 1.0 }
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let limits = Limits { unit: Self::UNIT, s_max: 15, largest: 62.0 };
        let scales = odd_scales(x, 32, limits);
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (g, x) in x.chunks(32).enumerate() {
            let x = scaled(x, scales.spans[g]);
            let mut bits = u32::from(scales.s[g]) << 28;
            for (r, x) in x.chunks(8).enumerate() {
                bits |= u32::from(signs(x, true) & 127) << (7 * r);
            }
            let magnitudes: Vec<f32> = x.iter().map(|x| x.abs()).collect();
            low.extend(magnitudes.chunks(4).map(|x| GRID.nearest(x) as u8));
            high.extend(bits.to_le_bytes());
        }
        [scales.d.to_le_bytes().to_vec(), low, high].concat()
    }
}
