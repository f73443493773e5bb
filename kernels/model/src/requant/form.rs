//! Target forms of a requantisation.

use super::blocks::{BLOCK, quantize};
use crate::formats::DType;

/// Target form for matrices that the weight file stores in more bits per weight: the blocks of a format; or bits, columns that share
/// a scale, and whether they also have a minimum.
///
/// Values of the latter are stored in GGUF's blocks of 32 columns ([`dtype`](Requant::dtype)). The blocks of a larger
/// group repeat its scale (and minimum), so every kernel and every GGUF reader takes them, and the stored
/// size does not depend on the group. The scale of a group depends on its extremes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Requant {
    /// Bits of an integer, and whether the values of a group also have a minimum.
    pub(super) integers: Integers,
    pub(super) group: Group,
}

/// Integers that stand for a value x, given the scale d of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Integers {
    /// Symmetric, 8 bits.
    Int8,
    /// With a minimum, 4 bits.
    Int4Min,
    /// Symmetric, 4 bits.
    Int4,
    /// Those of a format whose groups have one size, with the scales that a search finds.
    Searched(DType),
}

/// Consecutive columns of a row that share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// This many, a multiple of 32. A row whose columns are not a multiple of it stays as stored.
    Columns(u32),
    /// The whole row: one scale per output channel. The row must have a multiple of 32 columns.
    Row,
}

impl Group {
    /// A block of GGUF's formats: 32 columns.
    pub const BLOCK: Group = Group::Columns(BLOCK as u32);

    /// The number that a row's columns must be a multiple of.
    pub(super) fn unit(self) -> usize {
        match self {
            Group::Columns(columns) => columns as usize,
            Group::Row => BLOCK,
        }
    }
}

impl Requant {
    /// 8 bits, groups of 32: d = max |x| / 127, q = x / d to the nearest integer. 8.5 bits per weight.
    pub const Q8_0: Requant = Requant { integers: Integers::Int8, group: Group::BLOCK };

    /// 4 bits with a minimum, groups of 32: m = min x, d = (max x − m) / 15, q = (x − m) / d to the
    /// nearest integer. 5 bits per weight.
    pub const Q4_1: Requant = Requant { integers: Integers::Int4Min, group: Group::BLOCK };

    /// 4 bits, groups of 32: d = x / −8 for the x of largest magnitude, q = x / d + 8 to the nearest
    /// integer, at most 15. 4.5 bits per weight.
    pub const Q4_0: Requant = Requant { integers: Integers::Int4, group: Group::BLOCK };

    /// The forms whose groups may have other sizes, with groups of 32; the most precise first.
    pub const GROUPED: [Requant; 3] = [Requant::Q8_0, Requant::Q4_1, Requant::Q4_0];

    /// The forms that are GGUF's formats: those of [`GROUPED`](Requant::GROUPED), then those with searched scales.
    pub const ALL: [Requant; 13] = [
        Requant::Q8_0,
        Requant::Q4_1,
        Requant::Q4_0,
        Requant::searched(DType::Q6K),
        Requant::searched(DType::Q5K),
        Requant::searched(DType::Q5_1),
        Requant::searched(DType::Q5_0),
        Requant::searched(DType::Q4K),
        Requant::searched(DType::Iq4Nl),
        Requant::searched(DType::Iq4Xs),
        Requant::searched(DType::Mxfp4),
        Requant::searched(DType::Q3K),
        Requant::searched(DType::Q2K),
    ];

    const fn searched(dtype: DType) -> Requant {
        Requant { integers: Integers::Searched(dtype), group: Group::BLOCK }
    }

    /// The form of [`ALL`](Requant::ALL) that is stored in a format.
    pub fn of(dtype: DType) -> Option<Requant> {
        Requant::ALL.into_iter().find(|form| form.dtype() == dtype)
    }

    /// The same integers with another group; `None` if it is not whole blocks of 32, or the groups of the format have one size.
    #[must_use]
    pub fn with_group(self, group: Group) -> Option<Requant> {
        let is_whole = group.unit() > 0 && group.unit().is_multiple_of(BLOCK);
        let is_fixed = matches!(self.integers, Integers::Searched(_)) && group != self.group;
        (is_whole && !is_fixed).then_some(Requant { group, ..self })
    }

    /// The form for rows of `cols` values: this one, or where these are not whole blocks of 256 that which takes its place, as in
    /// llama.cpp; `None` if they are not whole groups of either.
    pub fn within(self, cols: usize) -> Option<Requant> {
        let is_whole = |form: &Requant| form.group_len(cols).is_some();
        Some(self).filter(is_whole).or_else(|| self.substitute().filter(is_whole))
    }

    /// The form that takes the place of one with blocks of 256.
    pub(super) fn substitute(self) -> Option<Requant> {
        let Integers::Searched(dtype) = self.integers else { return None };
        Requant::of(match dtype {
            DType::Q2K | DType::Q3K => DType::Q4_0,
            DType::Q4K => DType::Q5_0,
            DType::Q5K => DType::Q5_1,
            DType::Q6K => DType::Q8_0,
            DType::Iq4Xs => DType::Iq4Nl,
            _ => return None,
        })
    }

    /// Columns that share a scale; [`Group::BLOCK`] for formats whose groups have one size, whatever that is.
    pub fn group(self) -> Group {
        self.group
    }

    /// The storage format.
    pub fn dtype(self) -> DType {
        match self.integers {
            Integers::Int8 => DType::Q8_0,
            Integers::Int4Min => DType::Q4_1,
            Integers::Int4 => DType::Q4_0,
            Integers::Searched(dtype) => dtype,
        }
    }

    /// Bits per weight in rows of `cols` values, with the scale and minimum of a group counted once;
    /// `None` if a row is not whole groups. Stored blocks take more if groups are larger than 32.
    pub fn bits(self, cols: usize) -> Option<f64> {
        let group = self.group_len(cols)? as f64;
        Some(match self.integers {
            Integers::Int8 => 8.0 + 16.0 / group,
            Integers::Int4Min => 4.0 + 32.0 / group,
            Integers::Int4 => 4.0 + 16.0 / group,
            Integers::Searched(dtype) => 8.0 * dtype.block_bytes() as f64 / group,
        })
    }

    /// Values of a group in rows of `cols` values, or of a block of a format with searched scales; `None` if a row is not whole ones.
    pub(super) fn group_len(self, cols: usize) -> Option<usize> {
        let unit = match self.integers {
            Integers::Searched(dtype) => dtype.block_len(),
            _ => self.group.unit(),
        };
        let len = if self.group == Group::Row { cols } else { unit };
        (cols > 0 && cols.is_multiple_of(unit)).then_some(len)
    }

    /// Stored blocks of rows of `cols` values, `[rows][cols]`; `None` if rows are not whole groups, if a
    /// value is infinite or NaN, or if the scale or minimum of a group is too large for binary16.
    pub fn quantize(self, x: &[f32], cols: usize) -> Option<Vec<u8>> {
        self.group_len(cols)?;
        let row_bytes = self.dtype().row_bytes(cols)?;
        let rows = x.chunks_exact(cols);
        if !rows.remainder().is_empty() {
            return None;
        }
        let mut stored = vec![0; rows.len() * row_bytes];
        let all = rows.zip(stored.chunks_exact_mut(row_bytes));
        all.fold(true, |sound, (x, to)| quantize(self, x, to) & sound).then_some(stored)
    }
}
