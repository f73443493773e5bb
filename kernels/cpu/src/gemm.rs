//! Matmuls `out[m, n] = x[m, k] · W[n, k]ᵀ` for every weight format: one or several, each with an
//! epilogue, in one dispatch on the pool.

mod blocking;
mod dispatch;
mod inputs;
mod matmul;
mod op;
mod run;
mod task;
#[cfg(test)]
mod tests;

pub use dispatch::Dispatch;
pub(crate) use dispatch::{GemvPlan, NextDispatch};
pub(crate) use inputs::QuantizedInputs;
pub use matmul::matmul;
pub(crate) use op::MATMULS_MAX;
pub use op::{Epilogue, GemmInput, Matmul};
pub use run::matmuls;
