//! The end of a process whose libraries may still compute.
#![cfg_attr(unix, expect(unsafe_code, reason = "calls C's _exit"))]

/// Ends the process at once with an exit code. Unlike [`std::process::exit`], it leaves out what C libraries do at the end of
/// a process: they may free what another thread of theirs still uses. Whatever must be written has to be flushed before.
pub fn leave(code: u8) -> ! {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            #[link_name = "_exit"]
            fn exit_at_once(code: i32) -> !;
        }
        // SAFETY: POSIX's `_exit` takes any number, and does not return.
        unsafe { exit_at_once(code.into()) }
    }
    #[cfg(not(unix))]
    std::process::exit(code.into())
}
