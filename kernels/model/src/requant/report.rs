//! Report of a requantisation.

use super::{Group, Requant};
use crate::formats::DType;
use crate::graph::WeightSpec;
use std::fmt;

/// Maximum number of kept matrices that a report names; the others are counted.
const NAMED_MAX: usize = 3;

/// Result of [`Graph::requantize`](crate::graph::Graph::requantize). Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requantized {
    /// Target form.
    pub format: Requant,
    /// Number of matrices of matmuls.
    pub matrices: usize,
    /// Number of matrices that were requantised.
    pub changed: usize,
    /// Number of those whose rows are not whole blocks of the target form, which have the one that takes its place.
    pub substituted: usize,
    /// Formats of the requantised matrices in the file, in graph order.
    pub from: Vec<DType>,
    /// Bytes of the requantised matrices in the file.
    pub stored_bytes: u64,
    /// Bytes of the requantised matrices in the target format.
    pub bytes: u64,
    /// Matrices that stay as stored.
    pub kept: Vec<KeptTensor>,
}

/// A matrix that stays as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTensor {
    /// Tensor name.
    pub tensor: String,
    /// Stored format.
    pub dtype: DType,
    /// Reason why it is not requantised.
    pub reason: KeptReason,
}

/// The reason why a matrix stays as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptReason {
    /// Its format has no more bits per weight than the target, or than the form that takes the target's place in such rows.
    NoMoreBits,
    /// Its rows are not whole groups of the target form.
    Columns {
        /// Values per row.
        cols: usize,
    },
}

impl Requantized {
    pub(super) fn new(format: Requant) -> Requantized {
        Requantized {
            format,
            matrices: 0,
            changed: 0,
            substituted: 0,
            from: Vec::new(),
            stored_bytes: 0,
            bytes: 0,
            kept: Vec::new(),
        }
    }

    pub(super) fn keep(&mut self, spec: &WeightSpec, reason: KeptReason) {
        self.matrices += 1;
        self.kept.push(KeptTensor { tensor: spec.name.clone(), dtype: spec.dtype, reason });
    }

    pub(super) fn change(&mut self, spec: &WeightSpec, form: Requant) {
        self.matrices += 1;
        self.changed += 1;
        self.substituted += usize::from(form != self.format);
        if !self.from.contains(&spec.dtype) {
            self.from.push(spec.dtype);
        }
        let bytes = |dtype: DType| {
            let row = dtype.row_bytes(spec.cols).unwrap_or(0) as u64;
            row.saturating_mul(spec.rows as u64)
        };
        self.stored_bytes = self.stored_bytes.saturating_add(bytes(spec.dtype));
        self.bytes = self.bytes.saturating_add(bytes(form.dtype()));
    }

    /// Reasons why matrices are kept, as text.
    fn reasons(&self) -> Vec<String> {
        let mut formats: Vec<(DType, usize)> = Vec::new();
        let mut columns = Vec::new();
        for kept in &self.kept {
            match kept.reason {
                KeptReason::Columns { cols } => {
                    let unit = self.format.group().unit();
                    let tensor = &kept.tensor;
                    columns.push(format!("{tensor} has {cols} columns, not a multiple of {unit}"));
                }
                KeptReason::NoMoreBits => {
                    match formats.iter_mut().find(|(dtype, _)| *dtype == kept.dtype) {
                        Some((_, count)) => *count += 1,
                        None => formats.push((kept.dtype, 1)),
                    }
                }
            }
        }
        let mut reasons = Vec::new();
        if !formats.is_empty() {
            let take = if formats.len() == 1 { "takes" } else { "take" };
            let of = formats.into_iter().map(|(dtype, count)| format!("{count} of {dtype}"));
            reasons.push(format!("{}, which {take} no more bits", list(of.collect())));
        }
        let more = columns.len().saturating_sub(NAMED_MAX);
        columns.truncate(NAMED_MAX);
        reasons.extend(columns);
        reasons.extend((more > 0).then(|| format!("and {more} more")));
        reasons
    }
}

impl fmt::Display for Requantized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requantized { format, matrices, changed, from, stored_bytes, bytes, kept, .. } = self;
        if *changed == 0 {
            write!(f, "requantised to {format}: nothing")?;
        } else {
            let from = list(from.iter().map(ToString::to_string).collect());
            write!(f, "requantised: {changed} of {matrices} matrices from {from} to {format}")?;
            if format.group() != Group::BLOCK {
                write!(f, ", stored as {}", format.dtype())?;
            }
            if let Some(other) = format.substitute().filter(|_| self.substituted > 0) {
                let (count, len) = (self.substituted, format.dtype().block_len());
                write!(
                    f,
                    ", {count} of them to {other} because rows are not whole blocks of {len}"
                )?;
            }
            write!(f, " ({})", sizes(*stored_bytes, *bytes))?;
        }
        match kept.len() {
            0 => Ok(()),
            kept => write!(f, "; {kept} kept as stored: {}", self.reasons().join("; ")),
        }
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(mut items: Vec<String>) -> String {
    let last = items.pop().unwrap_or_default();
    if items.is_empty() { last } else { format!("{} and {last}", items.join(", ")) }
}

fn sizes(before: u64, after: u64) -> String {
    let (unit, name) = if before < 1_000_000 { (1e3, "kB") } else { (1e6, "MB") };
    let number = |bytes: u64| {
        let size = bytes as f64 / unit;
        if size < 100.0 { format!("{size:.1}") } else { format!("{size:.0}") }
    };
    format!("{} → {} {name}", number(before), number(after))
}
