//! Weights as constants of OpenVINO: floats as they are, and quantised blocks as integers with a scale and
//! a zero point for each group, which represent the same values: `(q − zero point) · scale`.

use super::ir::Element;
use lapwing_model::formats::{Block, DType, QuantisedInfo};

/// How the constants of a matrix represent its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// As stored.
    Floats(Element),
    /// Integers in groups.
    Groups {
        /// Of the integers.
        element: Element,
        /// Values that share a scale.
        len: usize,
        /// The zero point of all groups; `None` if each has its own.
        zero_point: Option<f32>,
    },
}

impl Form {
    /// The form of a weight format.
    pub(super) fn of(dtype: DType) -> Form {
        match (dtype, dtype.quantised()) {
            (_, Some(format)) => Form::of_blocks(format),
            (DType::F16, _) => Form::Floats(Element::F16),
            (DType::Bf16, _) => Form::Floats(Element::Bf16),
            (DType::F32, _) => Form::Floats(Element::F32),
            _ => unreachable!("{dtype} has neither blocks nor an element type"),
        }
    }

    fn of_blocks(format: &QuantisedInfo) -> Form {
        let is_small = format.bits <= 4 && format.table.is_none();
        let element = if is_small { Element::U4 } else { Element::U8 };
        let zero_point = (!format.scales.has_minimum()).then_some(format.zero_point as f32);
        Form::Groups { element, len: format.scales.span(), zero_point }
    }
}

/// The constants of quantised rows.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Groups {
    /// Integers, `[rows, groups, len]`.
    pub(super) integers: Vec<u8>,
    /// `[rows, groups]`.
    pub(super) scales: Vec<f32>,
    /// `[rows, groups]`.
    pub(super) zero_points: Vec<f32>,
}

impl Groups {
    /// Adds stored rows of a quantised format.
    pub(super) fn push(&mut self, dtype: DType, stored: &[u8]) {
        let (Some(format), Form::Groups { element, len, zero_point: common }) =
            (dtype.quantised(), Form::of(dtype))
        else {
            return;
        };
        let mut block = Block::default();
        for stored in stored.chunks_exact(dtype.block_bytes()) {
            (format.unpack)(stored, &mut block);
            let groups = block.q[..dtype.block_len()].chunks_exact(len);
            for (q, (scale, min)) in groups.zip(block.scale.iter().zip(&block.min)) {
                let zero_point = -min / scale;
                // Without a scale, all values of a group with a minimum are that minimum.
                let is_flat = common.is_none() && (*scale == 0.0 || !zero_point.is_finite());
                let (scale, zero_point) = if is_flat { (1.0, -min) } else { (*scale, zero_point) };
                self.scales.push(scale);
                self.zero_points.push(zero_point);
                let q = |at: usize| if is_flat { 0 } else { q[at] };
                match element {
                    Element::U4 => {
                        let pair = |at: usize| q(2 * at) | q(2 * at + 1) << 4;
                        self.integers.extend((0..len / 2).map(pair));
                    }
                    _ => self.integers.extend((0..len).map(q)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_model::reference;

    fn values(dtype: DType, stored: &[u8]) -> Vec<f32> {
        let Form::Groups { element, len, zero_point } = Form::of(dtype) else { panic!() };
        let mut groups = Groups::default();
        groups.push(dtype, stored);
        let integers: Vec<u8> = match element {
            Element::U4 => groups.integers.iter().flat_map(|pair| [pair & 15, pair >> 4]).collect(),
            _ => groups.integers,
        };
        let value = |(at, q): (usize, &u8)| {
            let zero = zero_point.unwrap_or(groups.zero_points[at / len]);
            (f32::from(*q) - zero) * groups.scales[at / len]
        };
        integers.iter().enumerate().map(value).collect()
    }

    #[test]
    fn integers_scales_and_zero_points_represent_the_stored_values() {
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.block_len() > 1) {
            let mut state = 7u32;
            let mut x: Vec<f32> = (0..1024)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) as f32 / (1 << 23) as f32 - 1.0
                })
                .collect();
            // A group whose values are equal, and one of zeros.
            x[256..512].fill(-0.75);
            x[512..768].fill(0.0);
            let stored = reference::quantize(dtype, &x);
            let wanted = reference::dequantize(dtype, &stored);
            let found = values(dtype, &stored);
            assert_eq!(found.len(), wanted.len(), "{dtype}");
            for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                assert!((found - wanted).abs() <= 1e-6, "{dtype} {at}: {found} for {wanted}");
            }
        }
    }
}
