//! How runs share memory bandwidth.

/// Minimum share of a run's full speed while other runs can be slowed instead.
const MIN_SPEED: f64 = 0.01;

/// Speeds of memory-bound runs and of other runs, as shares of their full speed. At full speed they
/// would use `bound` and `others` GB/s of the available `cap`.
///
/// If the sum exceeds `cap`, all memory-bound runs slow down by the same factor, to the bandwidth that
/// the others leave, but not below [`MIN_SPEED`]. Below that the other runs slow down too, to the same
/// minimum, and then all runs slow down by the same factor. The total never exceeds `cap`. A run with a
/// higher demand takes bandwidth from the others, so a faster device may make the whole slower.
pub(super) fn slowed(cap: f64, bound: f64, others: f64) -> (f64, f64) {
    if bound + others <= cap {
        return (1.0, 1.0);
    }
    let left = (cap - others) / bound;
    if bound > 0.0 && left >= MIN_SPEED {
        return (left.min(1.0), 1.0);
    }
    let left = (cap - MIN_SPEED * bound) / others;
    if others > 0.0 && left >= MIN_SPEED {
        return (MIN_SPEED, left);
    }
    let alike = cap / (bound + others);
    (alike, alike)
}
