//! Settings of a device of Qualcomm QNN, also where QNN is not compiled in.

use std::path::PathBuf;

use super::weight_form::WeightForm;

/// A processor of Qualcomm QNN, and how matrices and the inputs of products are handed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QnnSettings {
    /// The library `libQnnHtp` or its folder. Without one, the variable `LAPWING_QNN` names it, or it is
    /// searched in Python packages. In the text of a device it has no `,` and no `+`.
    pub library: Option<PathBuf>,
    /// Qualcomm's number of the system on chip.
    pub soc: u32,
    /// Version of the Hexagon architecture.
    pub arch: u32,
    /// What inputs and outputs of products are rounded to. Everything else of a graph is in binary16.
    pub activations: QnnActivations,
    /// How matrices are represented; [`WeightForm::Stored`] is binary16, too. Binary16 is for activations in
    /// binary16, blocks are for activations in integers, and the others are for both.
    pub weights: WeightForm,
}

impl Default for QnnSettings {
    /// A Snapdragon 8 Gen 3 (57, 75), with activations and weights in binary16.
    fn default() -> QnnSettings {
        let (activations, weights) = (QnnActivations::F16, WeightForm::F16);
        QnnSettings { library: None, soc: 57, arch: 75, activations, weights }
    }
}

/// What QNN rounds the inputs and outputs of products to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QnnActivations {
    /// Binary16.
    #[default]
    F16,
    /// Unsigned 16-bit integers, with one scale for each input and output that follows from measured ranges.
    U16,
    /// As [`U16`](QnnActivations::U16), with 8 bits.
    U8,
}

impl QnnActivations {
    /// All, by name.
    pub const NAMED: [(QnnActivations, &'static str); 3] =
        [(QnnActivations::F16, "f16"), (QnnActivations::U16, "u16"), (QnnActivations::U8, "u8")];

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = QnnActivations::NAMED.iter().find(|(activations, _)| *activations == self);
        named.map_or("", |(_, name)| name)
    }

    /// Bits of an integer; `None` for binary16.
    pub fn bits(self) -> Option<u32> {
        match self {
            QnnActivations::F16 => None,
            QnnActivations::U16 => Some(16),
            QnnActivations::U8 => Some(8),
        }
    }
}

impl QnnSettings {
    /// Checks that activations and weights fit each other.
    ///
    /// # Errors
    /// What has to be different.
    pub fn check(&self) -> Result<(), &'static str> {
        match (self.activations, self.weights) {
            (QnnActivations::F16, weights) if weights.block().is_some() => Err(
                "QNN multiplies weights in blocks (int4:16 to int4:128) with activations in integers only; give \
                     activations=u16 or activations=u8, too, or weights=int4",
            ),
            (QnnActivations::U16 | QnnActivations::U8, WeightForm::Stored | WeightForm::F16) => {
                Err(
                    "activations in integers are for weights in integers; give weights=int8, int4 or int4:32, \
                     too, or leave out activations",
                )
            }
            _ => Ok(()),
        }
    }
}
