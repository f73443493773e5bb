//! Leases on open files, as Linux grants them (`fcntl(2)`, "Leases"): a program that opens the file for writing, or truncates it,
//! waits until the lease ends.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "calls C's fcntl with commands for leases")
)]

use std::fs::File;
use std::io;

/// Takes a lease on a file that is open for reading only, in which nobody may write.
///
/// # Errors
/// Of the system: another program has the file open for writing, another user owns it, or there are no leases.
#[cfg(target_os = "linux")]
pub(super) fn take(file: &File) -> io::Result<()> {
    /// Chooses the signal; its number is the same on all processors that Rust knows.
    const F_SETSIG: libc::c_int = 10;
    // Programs ignore SIGURG unless they ask for it; SIGIO, which the system sends otherwise, would end most of them.
    control(file, F_SETSIG, libc::SIGURG)?;
    control(file, libc::F_SETLEASE, libc::F_RDLCK)?;
    // The lease has made this process the one that gets the signal; from now on nobody gets any.
    control(file, libc::F_SETOWN, 0).map(|_| ()).inspect_err(|_| end(file))
}

/// Whether the lease is there, and nobody waits for its end.
#[cfg(target_os = "linux")]
pub(super) fn holds(file: &File) -> bool {
    control(file, libc::F_GETLEASE, 0).is_ok_and(|kind| kind == libc::F_RDLCK)
}

/// Ends the lease, if it is there.
#[cfg(target_os = "linux")]
pub(super) fn end(file: &File) {
    _ = control(file, libc::F_SETLEASE, libc::F_UNLCK);
}

/// Seconds after which the system ends a lease that another program waits for; 0 for never.
///
/// # Errors
/// When the system does not say.
#[cfg(target_os = "linux")]
pub(super) fn seconds() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/sys/fs/lease-break-time")?;
    text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(target_os = "linux")]
fn control(file: &File, command: libc::c_int, value: libc::c_int) -> io::Result<libc::c_int> {
    use std::os::fd::AsRawFd as _;
    // SAFETY: each of the commands takes one number and no pointer, and the file stays open during the call.
    let code = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    if code == -1 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

/// This system has no leases.
#[cfg(not(target_os = "linux"))]
pub(super) fn take(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn holds(_: &File) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end(_: &File) {}

#[cfg(not(target_os = "linux"))]
pub(super) fn seconds() -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}
