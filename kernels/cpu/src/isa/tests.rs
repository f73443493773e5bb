//! Loops that are tested on every instruction set of this machine.

mod quantize;
mod softmax;
