//! Kernels, and their launches.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use cl3::kernel;

use super::{Buffer, Handle, Lane, Session};
use crate::error::OpenClError;

/// A kernel of a program.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(super) kernel: Handle,
    /// Largest work-group that it can run with on the device.
    pub(crate) group_max: usize,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg<'a> {
    Buffer(&'a Buffer),
    Int(i32),
    Float(f32),
}

/// Work-items of a launch, in up to three dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Work-groups in each dimension.
    pub(crate) groups: [usize; 3],
    /// Work-items of a group in each dimension.
    pub(crate) local: [usize; 3],
}

impl Range {
    /// Groups in two dimensions.
    pub(crate) fn plane(groups: [usize; 2], local: [usize; 2]) -> Range {
        Range { groups: [groups[0], groups[1], 1], local: [local[0], local[1], 1] }
    }
}

impl Session {
    /// Adds a kernel to the compute queue.
    ///
    /// # Safety
    /// The arguments must be those of the kernel, in number and type, and every item of the range
    /// must stay within the buffers.
    pub(crate) unsafe fn launch(
        &self,
        kernel: &mut Kernel,
        args: &[Arg<'_>],
        range: Range,
    ) -> Result<(), OpenClError> {
        self.settle()?;
        // SAFETY: the caller's promise.
        unsafe { self.launch_now(Lane::Compute, kernel, args, range) }
    }

    /// As [`launch`](Session::launch), before the ops that wait for the persistent kernel.
    ///
    /// # Safety
    /// As that.
    pub(super) unsafe fn launch_now(
        &self,
        lane: Lane,
        kernel: &mut Kernel,
        args: &[Arg<'_>],
        range: Range,
    ) -> Result<(), OpenClError> {
        if range.groups.contains(&0) {
            return Ok(());
        }
        let object = kernel.kernel.object;
        for (at, arg) in args.iter().enumerate() {
            let (size, value): (usize, *const c_void) = match arg {
                Arg::Buffer(buffer) => {
                    (size_of::<*mut c_void>(), (&raw const buffer.memory.object).cast())
                }
                Arg::Int(value) => (4, (&raw const *value).cast()),
                Arg::Float(value) => (4, (&raw const *value).cast()),
            };
            // SAFETY: `value` points to `size` bytes.
            unsafe { kernel::set_kernel_arg(object, at as u32, size, value) }
                .map_err(|code| self.error("clSetKernelArg", code))?;
        }
        let global = [0, 1, 2].map(|at| range.groups[at] * range.local[at]);
        let code = self.library.clEnqueueNDRangeKernel(
            self.queue(lane),
            object,
            3,
            null(),
            global.as_ptr(),
            range.local.as_ptr(),
            0,
            null(),
            null_mut(),
        );
        self.checked("clEnqueueNDRangeKernel", code)
    }
}
