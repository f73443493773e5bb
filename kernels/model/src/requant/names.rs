//! Names of the forms.

use super::form::{Group, Integers, Requant};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

const ROW: &str = "row";
const MIN: &str = "min";

/// A text does not name a form to requantise weights to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownRequant {
    /// The name is unknown.
    #[error(
        "unknown format '{name}' to requantise weights to (expected one of q8_0, q4_1, q4_0, q6_k, \
         q5_k, q5_1, q5_0, q4_k, iq4_nl, iq4_xs, mxfp4, q3_k, q2_k, or int8[:GROUP], int4[:GROUP] \
         or int4[:GROUP]:min with GROUP a multiple of 32 or row, as in int4:128:min)"
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

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Group::Columns(columns) => columns.fmt(f),
            Group::Row => f.write_str(ROW),
        }
    }
}

impl Requant {
    /// The name that parses to the same form: that of the format in small letters for groups of 32, otherwise
    /// `int8:GROUP`, `int4:GROUP` or `int4:GROUP:min`.
    pub fn name(self) -> String {
        let group = self.group;
        match self.integers {
            _ if group == Group::BLOCK => self.dtype().to_string().to_lowercase(),
            Integers::Int8 => format!("int8:{group}"),
            Integers::Int4 => format!("int4:{group}"),
            Integers::Int4Min => format!("int4:{group}:{MIN}"),
            Integers::Searched(dtype) => unreachable!("{dtype} has one group"),
        }
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
    use crate::formats::DType;

    #[test]
    fn every_form_is_found_by_its_names() {
        let groups = [Group::BLOCK, Group::Columns(64), Group::Columns(4096), Group::Row];
        for format in Requant::GROUPED.iter().flat_map(|f| groups.map(|g| f.with_group(g))) {
            let format = format.expect("whole blocks");
            for name in [format.name(), format.name().to_uppercase(), format.to_string()] {
                assert_eq!(name.parse(), Ok(format), "{name}");
            }
        }
        for format in Requant::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(Requant::of(format.dtype()), Some(format));
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
            "q4_x",
            "q4_k:64",
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
