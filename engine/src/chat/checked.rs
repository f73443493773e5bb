//! Checked templates.

/// A template that may be compiled.
#[derive(Debug)]
pub(super) struct Checked {
    /// The source with the inserted calls.
    pub(super) source: String,
    /// The texts of its string literals.
    pub(super) literals: Vec<String>,
    /// Work of one pass through all tags, for values of 16 bytes.
    pub(super) work: u64,
}
