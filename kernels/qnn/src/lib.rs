//! Qualcomm QNN as a back end: the Hexagon processor (HTP) of a Snapdragon, and on x86-64 the emulator in
//! the same library.
//!
//! The library is loaded when a device asks for it; nothing links it. Graphs are built through its C
//! interface with static shapes and binary16 values. A product is a convolution of one by one pixel, whose
//! weights are binary16, or integers with a scale for each output channel. Its input and output may be integers, too.

mod abi;
mod backend;
mod constants;
mod error;
mod executable;
mod fixed;
mod graph;
mod kept;
mod library;
mod lower;
mod session;
mod tensor;

pub use backend::Qnn;
pub use error::QnnError;
pub use session::{QnnInfo, qnn_device, qnn_library};
