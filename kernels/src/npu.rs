//! Devices that run prepared, static graphs only: what such a device is to the runtime, a cache of
//! its graphs, and a back end in software.

pub mod array;
