//! The examples of Lapwing; each file in `examples/` is a lesson of its own.
