//! Names that checked templates have beside their own.

/// Name of the template.
pub(super) const NAME: &str = "tokenizer.chat_template";
/// Function that counts a pass: `lapwing_step(work, bytes)`.
pub(super) const STEP: &str = "lapwing_step";
/// Filter that measures the value of a variable.
pub(super) const BOUND: &str = "lapwing_bound";
/// Filter that measures the value of a namespace's attribute.
pub(super) const KEPT: &str = "lapwing_kept";
/// Functions for operators: `*`, `%`, `**`, and `+` and `~` of any number of values.
pub(super) const PRODUCT: &str = "lapwing_product";
pub(super) const REMAINDER: &str = "lapwing_remainder";
pub(super) const POWER: &str = "lapwing_power";
pub(super) const SUM: &str = "lapwing_sum";
pub(super) const SLICE: &str = "lapwing_slice";
pub(super) const CONCAT: &str = "lapwing_concat";
/// Prefix of the names above, and of the meter: no template may use it.
pub(super) const OWN: &str = "lapwing_";
