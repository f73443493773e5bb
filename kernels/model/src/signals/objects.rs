//! Libraries of this process.

use std::ops::Range;

/// Addresses of the code of the program and of each library that is loaded; none where the system does not tell.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[expect(unsafe_code, reason = "asks the loader")]
pub(super) fn code() -> Vec<Range<usize>> {
    use std::ffi::{c_int, c_void};
    use std::slice;

    /// Adds the code of one library.
    unsafe extern "C" fn add(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid description, and the pointer that it was given below.
        let (info, found) = unsafe { (&*info, &mut *found.cast::<Vec<Range<usize>>>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the description has so many headers.
        let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        for header in headers {
            if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_X == 0 {
                continue;
            }
            let from = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            found.push(from..from.wrapping_add(header.p_memsz as usize));
        }
        0
    }

    let mut found: Vec<Range<usize>> = Vec::new();
    // SAFETY: the function is called during the call only, with a pointer that is valid that long.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut found).cast()) };
    found
}

/// Addresses of the code of the program and of each library that is loaded; none where the system does not tell.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn code() -> Vec<Range<usize>> {
    Vec::new()
}
