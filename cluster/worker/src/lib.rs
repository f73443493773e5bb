//! Lapwing as a worker of NVIDIA Dynamo: the engine behind Dynamo's trait `LLMEngine`, without HTTP between them. Dynamo's frontend turns
//! text into token ids and back, and finds stop texts; its router chooses the worker. docs/cluster.md describes both.

mod answer;
mod asked;
mod fault;
mod options;
mod speed;
mod state;
mod worker;

pub use options::{Options, StartError};
pub use worker::LapwingWorker;
