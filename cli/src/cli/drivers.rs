//! Drivers, which a process of this program lists for another one, since they may abort or hang.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lapwing_engine::drivers::{DriverKind, Lister};

use super::failure::Failure;

/// First argument of a process that lists drivers: `list-drivers KIND SECONDS FILE [DEVICE]`. It is not for users, so help
/// and completions do not have it.
const LIST_DRIVERS: &str = "list-drivers";

/// The program that this process runs.
pub(crate) fn itself() -> PathBuf {
    // The file of the program may have been replaced since it was started.
    let itself = Path::new("/proc/self/exe");
    let program = itself.exists().then(|| itself.to_owned());
    let program = program.or_else(|| std::env::current_exe().ok());
    program.unwrap_or_else(|| PathBuf::from("lapwing"))
}

/// A lister whose processes are this program.
pub(crate) fn lister() -> Lister {
    Lister::new(itself())
}

/// Checks that drivers of a kind can be listed.
pub(crate) fn check(kind: &DriverKind) -> Result<(), Failure> {
    match lister().list(kind).faults.first() {
        None => Ok(()),
        Some(fault) => Err(Failure::failed(fault.to_string())),
    }
}

/// A request of another process.
pub(crate) struct Request {
    /// The drivers, by the name of their kind.
    pub(crate) kind: String,
    /// The only device to look for.
    pub(crate) device: Option<String>,
    seconds: u32,
    file: PathBuf,
}

impl Request {
    /// The request that the program's arguments are, if they are one.
    pub(crate) fn of(arguments: impl Iterator<Item = OsString>) -> Option<Request> {
        let mut arguments = arguments.skip(1);
        if arguments.next()? != LIST_DRIVERS {
            return None;
        }
        let mut text = || arguments.next()?.into_string().ok();
        let (kind, seconds, file) = (text()?, text()?.parse().ok()?, text()?.into());
        Some(Request { kind, seconds, file, device: text() })
    }

    /// Writes the answer that `list` gives, and ends the process: without what drivers do at its end, and at the latest after
    /// the stated time. A crash leaves no dump of the memory.
    pub(crate) fn answer(self, list: impl FnOnce(&Request) -> serde_json::Value) -> ! {
        #[cfg(unix)]
        {
            use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
            let most = getrlimit(Resource::Core).maximum;
            // Where the system refuses, a dump is written as of any other crash.
            _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: most });
            nix::unistd::alarm::set(self.seconds);
        }
        let answer = list(&self).to_string();
        match std::fs::write(&self.file, answer) {
            Ok(()) => lapwing_kernels::leave(0),
            Err(error) => {
                eprintln!("cannot write {}: {error}", self.file.display());
                lapwing_kernels::leave(1)
            }
        }
    }
}
