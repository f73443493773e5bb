//! The loops of each instruction set of this machine.

mod quantize;
mod softmax;
