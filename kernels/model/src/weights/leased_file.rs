//! An open file that no other program changes unnoticed, so that it may be mapped.

use std::fs::File;
use std::io;
use std::ops::Deref;

use super::data_file::DataFile;
use super::lease;
use super::stamp::Stamp;

/// Least time in seconds that the system must leave between the wish of another program to change a file and the change: longer
/// than any op of a model takes.
const SECONDS_MIN: u64 = 10;

/// File systems whose files only programs of this machine change, by their numbers in `statfs(2)`: ext2 to ext4, XFS, Btrfs, F2FS and
/// tmpfs. A network, another machine or a layer below may change those of others.
#[cfg(target_os = "linux")]
const LOCAL: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

/// An open file with a lease: a program that opens it for writing or truncates it waits until [`release`](LeasedFile::release), or for the
/// system's longest time (45 s, `/proc/sys/fs/lease-break-time`). Nobody had it open for writing when the lease began, so it stays as it is as long as
/// [`is_held`](LeasedFile::is_held), and for some seconds after. Another file may take its name, and its name may be removed.
#[derive(Debug)]
pub struct LeasedFile {
    file: DataFile,
}

/// A file without a lease.
#[derive(Debug)]
pub struct Unleased {
    /// The file.
    pub file: DataFile,
    /// Why there is none.
    pub reason: NoLease,
}

/// Why there is no lease on a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoLease {
    /// The system has no leases.
    #[error("this system cannot hold back programs that change a file; Linux can")]
    System,
    /// Programs of this machine are not the only ones that may change the file.
    #[error(
        "its file system (type {kind:#x}) may be changed from elsewhere; keep it on ext4, XFS, Btrfs, F2FS or tmpfs"
    )]
    FileSystem {
        /// Number of the file system in `statfs(2)`.
        kind: u32,
    },
    /// The system does not wait long enough.
    #[error(
        "this system ends leases after {seconds} s, and {min} are needed; raise /proc/sys/fs/lease-break-time",
        min = SECONDS_MIN
    )]
    Short {
        /// Seconds after which it ends a lease.
        seconds: u64,
    },
    /// Another program has the file open for writing.
    #[error("another program has it open for writing")]
    Writer,
    /// It belongs to another user.
    #[error("it belongs to another user")]
    Owner,
    /// The system refuses for another reason.
    #[error("the system grants no lease on it: {0}")]
    Refused(#[source] io::Error),
}

impl DataFile {
    /// Takes a lease on the file. Its stamp is then that of this moment.
    ///
    /// # Errors
    /// [`Unleased`] with the file and the reason.
    pub fn leased(mut self) -> Result<LeasedFile, Unleased> {
        match take(&self.file) {
            Ok(stamp) => {
                self.stamp = stamp;
                Ok(LeasedFile { file: self })
            }
            Err(reason) => Err(Unleased { file: self, reason }),
        }
    }
}

/// Whether leases on files of the file system of `file` hold back every program long enough.
///
/// # Errors
/// Why they do not.
pub fn can_lease(file: &File) -> Result<(), NoLease> {
    is_possible(file)
}

/// Takes a lease and then the stamp.
fn take(file: &File) -> Result<Stamp, NoLease> {
    is_possible(file)?;
    lease::take(file).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => NoLease::System,
        io::ErrorKind::WouldBlock => NoLease::Writer,
        io::ErrorKind::PermissionDenied => NoLease::Owner,
        _ => NoLease::Refused(error),
    })?;
    let meta = file.metadata().inspect_err(|_| lease::end(file));
    Ok(Stamp::of(&meta.map_err(NoLease::Refused)?))
}

/// Whether a lease on the file would hold back every program long enough.
#[cfg(target_os = "linux")]
fn is_possible(file: &File) -> Result<(), NoLease> {
    let kind = rustix::fs::fstatfs(file).map_err(|error| NoLease::Refused(error.into()))?.f_type;
    // The numbers have 32 bits; the width and the sign of the field depend on the processor.
    let kind = kind as u32;
    if !LOCAL.contains(&kind) {
        return Err(NoLease::FileSystem { kind });
    }
    match lease::seconds().map_err(NoLease::Refused)? {
        seconds @ 1..SECONDS_MIN => Err(NoLease::Short { seconds }),
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn is_possible(_: &File) -> Result<(), NoLease> {
    match lease::seconds() {
        Ok(_) => Ok(()),
        Err(_) => Err(NoLease::System),
    }
}

impl LeasedFile {
    /// The open file.
    pub fn file(&self) -> &File {
        &self.file.file
    }

    /// Whether the file is as it was, and stays so for some seconds at least: nobody waits to change it. One system call.
    pub fn is_held(&self) -> bool {
        lease::holds(&self.file.file)
    }

    /// Ends the lease, if it is there: programs that wait may now change the file.
    pub fn release(&self) {
        lease::end(&self.file.file);
    }

    /// Writes what the system still holds of the file to its disk.
    ///
    /// # Errors
    /// When the system cannot write it.
    pub fn sync(&self) -> io::Result<()> {
        self.file.file.sync_all()
    }

    /// The file without its lease.
    pub fn into_file(self) -> DataFile {
        self.release();
        self.file
    }
}

impl Deref for LeasedFile {
    type Target = DataFile;

    fn deref(&self) -> &DataFile {
        &self.file
    }
}

#[cfg(test)]
mod tests;
