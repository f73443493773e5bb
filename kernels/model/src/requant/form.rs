//! Target forms of a requantisation and their names.

use super::blocks::{BLOCK, quantize};
use crate::formats::DType;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Target form for matrices that the weight file stores in more bits per weight: bits, columns that share
/// a scale, and whether they also have a minimum.
///
/// Values are stored in GGUF's blocks of 32 columns ([`dtype`](Requant::dtype)). The blocks of a larger
/// group repeat its scale (and minimum), so every kernel and every GGUF reader takes them, and the stored
/// size does not depend on the group. The scale of a group depends on its extremes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Requant {
    /// Bits of an integer, and whether the values of a group also have a minimum.
    pub integers: Integers,
    group: Group,
}

/// Integers that stand for a value x, given the scale d of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Integers {
    /// Symmetric, 8 bits.
    Int8,
    /// With a minimum, 4 bits.
    Int4Min,
    /// Symmetric, 4 bits.
    Int4,
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

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Group::Columns(columns) => columns.fmt(f),
            Group::Row => f.write_str(ROW),
        }
    }
}

const ROW: &str = "row";
const MIN: &str = "min";

/// A text does not name a form to requantise weights to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownRequant {
    /// The name is unknown.
    #[error(
        "unknown format '{name}' to requantise weights to (expected one of q8_0, q4_1, q4_0, or \
         int8[:GROUP], int4[:GROUP] or int4[:GROUP]:min with GROUP a multiple of 32 or row, as in \
         int4:128:min)"
    )]
    Name {
        /// The given name.
        name: String,
    },
    /// The group is not whole blocks.
    #[error(
        "'{name}': a group of {group} columns is not whole blocks of 32 (expected a multiple of 32, or \
         row)"
    )]
    Group {
        /// The given name.
        name: String,
        /// The given group.
        group: u32,
    },
    /// 8 bits with a minimum.
    #[error(
        "'{name}': GGUF has no blocks of 8-bit integers with a minimum (expected int8 without :min, or \
         int4 with it)"
    )]
    Int8Min {
        /// The given name.
        name: String,
    },
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

    /// The forms with groups of 32, which are GGUF's formats; the most precise first.
    pub const ALL: [Requant; 3] = [Requant::Q8_0, Requant::Q4_1, Requant::Q4_0];

    /// The same integers with another group; `None` if it is not whole blocks of 32.
    #[must_use]
    pub fn with_group(self, group: Group) -> Option<Requant> {
        let is_whole = group.unit() > 0 && group.unit().is_multiple_of(BLOCK);
        is_whole.then_some(Requant { group, ..self })
    }

    /// Columns that share a scale.
    pub fn group(self) -> Group {
        self.group
    }

    /// The storage format.
    pub fn dtype(self) -> DType {
        match self.integers {
            Integers::Int8 => DType::Q8_0,
            Integers::Int4Min => DType::Q4_1,
            Integers::Int4 => DType::Q4_0,
        }
    }

    /// The name that parses to the same form: `q8_0`, `q4_1` or `q4_0` for groups of 32, otherwise
    /// `int8:GROUP`, `int4:GROUP` or `int4:GROUP:min`.
    pub fn name(self) -> String {
        let group = self.group;
        match self.integers {
            _ if group == Group::BLOCK => self.dtype().to_string().to_lowercase(),
            Integers::Int8 => format!("int8:{group}"),
            Integers::Int4 => format!("int4:{group}"),
            Integers::Int4Min => format!("int4:{group}:{MIN}"),
        }
    }

    /// Bits per weight in rows of `cols` values, with the scale and minimum of a group counted once;
    /// `None` if a row is not whole groups. Stored blocks take more if groups are larger than 32.
    pub fn bits(self, cols: usize) -> Option<f64> {
        let (integer, of_group) = match self.integers {
            Integers::Int8 => (8.0, 16.0),
            Integers::Int4Min => (4.0, 32.0),
            Integers::Int4 => (4.0, 16.0),
        };
        Some(integer + of_group / self.group_len(cols)? as f64)
    }

    /// Values of a group in rows of `cols` values; `None` if a row is not whole groups.
    pub(super) fn group_len(self, cols: usize) -> Option<usize> {
        let unit = self.group.unit();
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

impl fmt::Display for Requant {
    /// GGUF's name of the format for groups of 32, otherwise [`name`](Requant::name).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            Group::BLOCK => self.dtype().fmt(f),
            _ => f.write_str(&self.name()),
        }
    }
}

impl FromStr for Requant {
    type Err = UnknownRequant;

    /// The name of a form, as [`name`](Requant::name) writes it, in letters of either case. `int8` is
    /// `q8_0`, `int4` is `q4_0` and `int4:min` is `q4_1`.
    fn from_str(name: &str) -> Result<Requant, UnknownRequant> {
        let lower = name.to_ascii_lowercase();
        if let Some(format) = Requant::ALL.into_iter().find(|format| format.name() == lower) {
            return Ok(format);
        }
        let name = || name.to_owned();
        let unknown = || UnknownRequant::Name { name: name() };
        let mut parts = lower.split(':').peekable();
        let bits = parts.next().unwrap_or_default();
        let group = match parts.next_if(|part| *part != MIN) {
            None => Group::BLOCK,
            Some(ROW) => Group::Row,
            Some(columns) => Group::Columns(columns.parse().map_err(|_| unknown())?),
        };
        let with_min = parts.next_if_eq(&MIN).is_some();
        let symmetric = match bits {
            _ if parts.next().is_some() => return Err(unknown()),
            "int8" if with_min => return Err(UnknownRequant::Int8Min { name: name() }),
            "int4" if with_min => Requant::Q4_1,
            "int8" => Requant::Q8_0,
            "int4" => Requant::Q4_0,
            _ => return Err(unknown()),
        };
        let columns = group.unit();
        let whole = symmetric.with_group(group);
        whole.ok_or_else(|| UnknownRequant::Group { name: name(), group: columns as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_found_by_its_names() {
        let groups = [Group::BLOCK, Group::Columns(64), Group::Columns(4096), Group::Row];
        for format in Requant::ALL.iter().flat_map(|f| groups.map(|g| f.with_group(g))) {
            let format = format.expect("whole blocks");
            for name in [format.name(), format.name().to_uppercase(), format.to_string()] {
                assert_eq!(name.parse(), Ok(format), "{name}");
            }
        }
        for (name, format) in [
            ("int8", Requant::Q8_0),
            ("int8:32", Requant::Q8_0),
            ("int4", Requant::Q4_0),
            ("int4:min", Requant::Q4_1),
            ("int4:32:min", Requant::Q4_1),
        ] {
            assert_eq!(name.parse(), Ok(format), "{name}");
        }
        let row: Requant = "INT4:Row:MIN".parse().expect("a form");
        assert_eq!(
            (row.dtype(), row.group(), &*row.name()),
            (DType::Q4_1, Group::Row, "int4:row:min")
        );
    }

    #[test]
    fn other_names_are_refused_with_what_is_expected() {
        let wrong = [
            "",
            "q8",
            "q4_k",
            "f16",
            "q8_0 ",
            "q4_0:64",
            "int2",
            "int8:",
            "int4:x",
            "int4:-32",
            "int4:min:64",
            "int4:64:max",
            "int4:64:min:",
            "int4:4294967328",
        ];
        for name in wrong {
            let error = name.parse::<Requant>().expect_err(name).to_string();
            let named = error.contains(&format!("'{name}'"));
            assert!(named && error.contains("q8_0, q4_1, q4_0"), "{error}");
        }
        for name in ["int4:0", "int8:33", "int4:16:min"] {
            let error = name.parse::<Requant>().expect_err(name).to_string();
            assert!(error.contains(&format!("'{name}'")) && error.contains("a multiple of 32"));
        }
        for name in ["int8:min", "int8:row:min", "int8:64:min"] {
            let error = name.parse::<Requant>().expect_err(name);
            assert_eq!(error, UnknownRequant::Int8Min { name: name.to_owned() });
            assert!(error.to_string().contains("GGUF has no blocks"), "{error}");
        }
    }
}
