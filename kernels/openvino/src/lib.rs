//! Intel OpenVINO as a back end: its NPU plug-in where there is such a processor, and its CPU plug-in
//! as a stand-in elsewhere.
//!
//! The C library is loaded when a device asks for it; nothing links it. Graphs are handed over as
//! OpenVINO's intermediate representation with static shapes. Quantised weights stay integers with a
//! scale and a zero point per group, so no value differs from that of the model file, and the plug-ins
//! recognise them as compressed weights.

mod backend;
mod buffers;
mod constants;
mod core;
mod error;
mod ir;
mod library;
mod lower;
mod ports;
mod request;
mod search;
mod session;

pub use backend::{OpenVino, OpenVinoSettings};
pub use core::{OpenVinoInfo, openvino_device, openvino_devices, openvino_library};
pub use error::OpenVinoError;
