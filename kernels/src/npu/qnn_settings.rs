//! Settings of a device of Qualcomm QNN, also where QNN is not compiled in.

use std::path::PathBuf;

use super::weight_form::WeightForm;

/// A processor of Qualcomm QNN, and how matrices are handed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QnnSettings {
    /// The library `libQnnHtp` or its folder. Without one, the variable `LAPWING_QNN` names it, or it is
    /// searched in Python packages. In the text of a device it has no `,` and no `+`.
    pub library: Option<PathBuf>,
    /// Qualcomm's number of the system on chip.
    pub soc: u32,
    /// Version of the Hexagon architecture.
    pub arch: u32,
    /// How matrices are represented; [`WeightForm::Stored`] is binary16, too.
    pub weights: WeightForm,
}

impl Default for QnnSettings {
    /// A Snapdragon 8 Gen 3 (57, 75), with weights in binary16.
    fn default() -> QnnSettings {
        QnnSettings { library: None, soc: 57, arch: 75, weights: WeightForm::F16 }
    }
}
