//! GPUs and other processors with an OpenCL driver.
//!
//! The library is opened when a program asks for devices, so a program starts without one. A
//! session owns a context and two in-order queues: one for kernels, one for copies that must not
//! wait behind them. Commands have no event of their own; one event marks the end of a run.
//! Weights are packed for the kernels when they are copied to the device. Kernels sum the
//! products of one output in one order for any number of rows, so the result of a row depends neither
//! on the rows beside it nor on the division of a prompt into chunks.

mod argmax;
mod commands;
mod device;
mod discovery;
mod encode;
mod error;
mod inputs;
mod kv;
mod matmul_report;
mod memory;
mod model;
mod ops;
mod overhead;
mod pack;
mod pool;
mod program;
mod session;
mod shared;
mod timed_work;
mod values;
mod watch;
mod weights;

pub use device::{OpenClDevice, QUEUE_DEPTH, device_info};
pub use discovery::{OpenClInfo, OpenClKind, SharedKind, devices, find};
pub use error::OpenClError;
pub use matmul_report::{MatMulKernels, matmul_kernels};
pub use model::{OpenClBindError, OpenClDeviceParts};
pub use overhead::{FlagTrial, StageTrial};
pub use pack::PACKING;
pub use shared::SharedMemory;
pub use timed_work::{MatMulShape, Trial};

/// Ends the test if no OpenCL driver is installed, and says so; where LAPWING_TEST is set, that is an
/// error. Without an argument, the test then runs alone.
#[cfg(test)]
macro_rules! needs_driver {
    () => {
        needs_driver!(());
        let _alone = $crate::alone();
    };
    ($without:expr) => {
        if let Err(error) = $crate::devices() {
            assert!(std::env::var_os("LAPWING_TEST").is_none(), "{error}");
            // Written past the test harness, which hides what a passing test prints.
            let line = format!("SKIPPED a test of OpenCL devices: {error}\n");
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            return $without;
        }
    };
}

/// Lets one test of a device run at a time. PoCL before version 6 keeps a library of each kernel for each size of a
/// launch, and releases them without regard to that size: two queues with the same kernel can end the process.
#[cfg(test)]
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(|failed| failed.into_inner())
}

#[cfg(test)]
mod opencl_device_tests;
#[cfg(test)]
mod opencl_tests;
