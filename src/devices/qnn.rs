//! Settings of devices of Qualcomm QNN.

use std::path::PathBuf;

use lapwing_kernels::npu::WeightForm;

/// A processor of Qualcomm QNN, and how matrices are handed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QnnProcessor {
    /// The library `libQnnHtp` or its folder. Without one, the variable `LAPWING_QNN` names it, or it is
    /// searched in Python packages. As text it has no `,` and no `+`.
    pub library: Option<PathBuf>,
    /// Qualcomm's number of the system on chip.
    pub soc: u32,
    /// Version of the Hexagon architecture.
    pub arch: u32,
    /// How matrices are represented. [`WeightForm::Stored`] is refused: QNN has no such form.
    pub weights: WeightForm,
}

impl Default for QnnProcessor {
    /// A Snapdragon 8 Gen 3 (57, 75), with weights in binary16.
    fn default() -> QnnProcessor {
        QnnProcessor { library: None, soc: 57, arch: 75, weights: WeightForm::F16 }
    }
}
