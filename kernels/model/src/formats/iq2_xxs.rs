//! IQ2_XXS: runs of 8 values of a grid of 256 entries, with an even number of signs, blocks of 8 groups of 32 whose scales have 4
//! bits; value = d · (2 · s + 1) / 8 · ± magnitude.

use super::block::{BlockScales, Integers, Scales};
use super::grids::iq2_xxs::ENTRIES;
use super::grids::{
    Grid, Limits, OF_IQ2, codes, even_signs, index, odd_scales, scaled, signed_table, signs,
};
use super::naive::half_at;
use super::{ActivationBlocks, Places, Quantised};

const TABLE: [i8; 16] = signed_table(OF_IQ2, 8);

static GRID: Grid = Grid::new(&ENTRIES, OF_IQ2, 8);

/// The format IQ2_XXS.
#[derive(Clone, Copy, Debug)]
pub struct Iq2Xxs;

/// 4 times 7 signs, and the scale in the upper 4 bits, behind the 4 indices of a group.
#[inline(always)]
fn upper(group: &[u8; 8]) -> u32 {
    u32::from_le_bytes([group[4], group[5], group[6], group[7]])
}

impl Quantised for Iq2Xxs {
    const NAME: &'static str = "IQ2_XXS";
    const GGUF_ID: u32 = 16;
    const LEN: usize = 256;
    const BYTES: usize = 66;
    const BITS: usize = 3;
    const TABLE: Option<&'static [i8; 16]> = Some(&TABLE);
    const SCALES: Scales = Scales::Signed;
    const UNIT: f32 = 0.125;
    const ACTIVATIONS: ActivationBlocks = ActivationBlocks::Q8K;
    const PLACES: Places = Places::Scattered { values: 256 };

    #[inline(always)]
    fn integers(stored: &[u8], q: &mut Integers) {
        let groups = stored[2..].as_chunks::<8>().0;
        for (group, q) in groups.iter().zip(q.as_chunks_mut::<32>().0) {
            for (r, q) in q.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let signs = even_signs(upper(group) >> (7 * r));
                codes::<8>(ENTRIES[usize::from(group[r])], signs, q);
            }
        }
    }

    #[inline(always)]
    fn scales(stored: &[u8]) -> BlockScales {
        let mut all = BlockScales::at(stored, 0);
        for (to, group) in all.factors.iter_mut().zip(stored[2..].as_chunks::<8>().0) {
            *to = 2 * (group[7] >> 4) + 1;
        }
        all
    }

    fn value(b: &[u8], i: usize) -> f32 {
        let (group, r) = (&b[2 + i / 32 * 8..], i % 32 / 8);
        let bits = u32::from_le_bytes([group[4], group[5], group[6], group[7]]);
        let magnitude = OF_IQ2[usize::from(index(ENTRIES[usize::from(group[r])], 8, i % 8))];
        let seven = bits >> (7 * r) & 127;
        let is_negative = match i % 8 {
            7 => seven.count_ones() % 2 == 1,
            bit => seven >> bit & 1 == 1,
        };
        let scale = half_at(b, 0) * (0.5 + (bits >> 28) as f32) * 0.25;
        scale * f32::from(magnitude) * if is_negative { -1.0 } else { 1.0 }
    }

    fn quantize(x: &[f32]) -> Vec<u8> {
        let limits = Limits { unit: Self::UNIT, s_max: 15, largest: 43.0 };
        let scales = odd_scales(x, 32, limits);
        let mut bytes = scales.d.to_le_bytes().to_vec();
        for (g, x) in x.chunks(32).enumerate() {
            let x = scaled(x, scales.spans[g]);
            let mut bits = u32::from(scales.s[g]) << 28;
            for (r, x) in x.chunks(8).enumerate() {
                bits |= u32::from(signs(x, true) & 127) << (7 * r);
                let magnitudes: Vec<f32> = x.iter().map(|x| x.abs()).collect();
                bytes.push(GRID.nearest(&magnitudes) as u8);
            }
            bytes.extend(bits.to_le_bytes());
        }
        bytes
    }
}
