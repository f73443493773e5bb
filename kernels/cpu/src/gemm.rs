//! Matmuls `out[m, n] = x[m, k] · W[n, k]ᵀ` for every weight format: one or several, each with an
//! epilogue, in one dispatch on the pool.

mod blocking;
mod dispatch;
mod groups;
mod inputs;
mod matmul;
mod op;
mod run;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use blocking::BlockingInput;
pub use dispatch::Dispatch;
pub(crate) use dispatch::{FirstRead, GemvPlan, NextDispatch};
pub(crate) use groups::{GroupDispatch, GroupPlan};
pub(crate) use inputs::{GatheredRows, QuantizedInputs};
pub use matmul::matmul;
pub(crate) use op::MATMULS_MAX;
pub use op::{Epilogue, GemmInput, Matmul, Product};
pub use run::matmuls;
