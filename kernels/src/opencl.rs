//! GPUs and other processors with an OpenCL driver.
//!
//! The library is opened when a program asks for devices, so a program starts without one. A
//! [`session`] owns a context and two in-order queues: one for kernels, one for copies that must not
//! wait behind them. Commands have no event of their own; one event marks the end of a batch.
//! Weights are packed for the kernels when they are copied to the device ([`pack`]). Kernels sum the
//! products of one output in one order for any number of rows, so the result of a row depends neither
//! on the rows beside it nor on the division of a prompt into chunks.

mod error;
mod find;
mod ops;
mod pack;
mod program;
mod session;
mod trial;

pub use error::OpenClError;
pub use find::{OpenClInfo, OpenClKind, devices, find};
pub use trial::{MatMulShape, Trial};

#[cfg(test)]
mod tests;
