//! Reductions over the logits of a vocabulary, on the fastest instruction set of the machine;
//! results are the same on all.

use crate::isa::Isa;
use crate::isa::kernels::Kernels;
use std::sync::OnceLock;

/// Logits whose exponentials are summed in f32 before they are added to an f64 sum.
const BLOCK: usize = 1024;

/// The kernels of this machine.
fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<&'static Kernels> = OnceLock::new();
    KERNELS.get_or_init(|| Isa::best().kernels())
}

/// Index of the largest finite logit, the first of equals; `None` if there is none.
pub fn argmax(logits: &[f32]) -> Option<usize> {
    argmax_with(kernels(), logits)
}

/// Natural logarithm of the softmax probability of `id`, from `logits` `[vocab]`. NaN logits have
/// probability 0.
///
/// # Panics
/// When there is no logit `id`.
pub fn logprob(logits: &[f32], id: u32) -> f32 {
    logprob_with(kernels(), logits, id)
}

fn argmax_with(kernels: &Kernels, logits: &[f32]) -> Option<usize> {
    let (mut max, mut first) = (f32::NEG_INFINITY, None);
    for (block, logits) in logits.chunks(BLOCK).enumerate() {
        let largest = (kernels.max_finite)(logits);
        if largest > max {
            (max, first) = (largest, Some(block * BLOCK));
        }
    }
    let first = first?;
    logits[first..].iter().position(|logit| *logit == max).map(|at| first + at)
}

fn logprob_with(kernels: &Kernels, logits: &[f32], id: u32) -> f32 {
    let max = (kernels.max)(logits);
    let sum: f64 = logits.chunks(BLOCK).map(|block| (kernels.sum_exp)(block, max)).sum();
    (f64::from(logits[id as usize] - max) - sum.ln()) as f32
}

#[cfg(test)]
mod tests;
