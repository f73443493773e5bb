//! QNN's processor, opened with its settings.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::abi::{DeviceOption, Handle, RawConfig};
use super::backend::QnnSettings;
use super::error::QnnError;
use super::library::{Loaded, find, version};

/// Only errors are reported, to a callback that drops them: they are written on standard output otherwise.
const LOG_LEVEL: u32 = 1;

/// One call at a time, except runs of graphs: building graphs from several threads is not known to be safe.
static CALLS: Mutex<()> = Mutex::new(());

/// What QNN says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QnnInfo {
    /// Its name of the processor.
    pub processor: String,
    /// Version of its interface.
    pub version: String,
    /// Its build.
    pub build: String,
    /// The loaded library.
    pub library: PathBuf,
    /// The processor is emulated by the cores of this machine.
    pub emulated: bool,
}

/// QNN's processor on this machine.
///
/// # Errors
/// [`QnnError`] without a library, or when it refuses.
pub fn qnn_device() -> Result<QnnInfo, QnnError> {
    Session::open(&QnnSettings::default()).map(|session| session.info.clone())
}

/// The library and its objects for everything else.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) loaded: Loaded,
    pub(super) info: QnnInfo,
    log: Handle,
    backend: Handle,
    device: Handle,
}

// SAFETY: the handles are bound to no thread. Calls that are not documented as safe beside each other take
// `CALLS`.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

/// Drops a message of the library.
unsafe extern "C" fn ignore(_: *const c_char, _: u32, _: u64, _: *mut c_void) {}

impl Session {
    /// Opens the processor.
    ///
    /// # Errors
    /// [`QnnError`].
    pub(super) fn open(settings: &QnnSettings) -> Result<Session, QnnError> {
        let path = find(settings.library.as_deref())?;
        // The library finds others relative to itself, which a link would hide.
        let path = path.canonicalize().unwrap_or(path);
        let (session, started) = {
            let _guard = exclusive();
            let loaded = Loaded::open(&path)?;
            let info = QnnInfo {
                processor: loaded.name.clone(),
                version: version(loaded.core),
                build: loaded.build().trim_start_matches('v').to_owned(),
                library: path,
                // No machine with such a processor runs the library for x86-64.
                emulated: cfg!(target_arch = "x86_64"),
            };
            let (log, backend, device) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            let mut session = Session { loaded, info, log, backend, device };
            let started = session.start(settings.soc, settings.arch);
            (session, started)
        };
        started.map(|()| session)
    }

    fn start(&mut self, soc: u32, arch: u32) -> Result<(), QnnError> {
        let functions = &self.loaded.functions;
        // Without both, the emulator is the oldest processor, whose results differ.
        let options = [DeviceOption::soc(soc), DeviceOption::arch(arch)];
        let configs = options.each_ref().map(|custom| RawConfig { option: 0, custom });
        let list = [&raw const configs[0], &raw const configs[1], ptr::null()];
        // SAFETY: all pointers are valid for the calls, lists end with null, and the library copies options.
        let code = unsafe {
            let code = (functions.log_create)(ignore, LOG_LEVEL, &raw mut self.log);
            self.loaded.check("opening its log", code)?;
            let code = (functions.backend_create)(self.log, ptr::null(), &raw mut self.backend);
            self.loaded.check("starting its back end", code)?;
            (functions.device_create)(self.log, list.as_ptr(), &raw mut self.device)
        };
        match code {
            0 => Ok(()),
            code => Err(QnnError::Refused { soc, arch, code, reason: self.loaded.message(code) }),
        }
    }

    /// A context for one graph, since a graph's memory is only freed with its context.
    pub(super) fn context(&self) -> Result<Handle, QnnError> {
        let mut context = ptr::null_mut();
        // SAFETY: both handles are valid, and the pointer is for the call.
        let code = unsafe {
            let create = self.loaded.functions.context_create;
            create(self.backend, self.device, ptr::null(), &raw mut context)
        };
        self.loaded.check("opening a context", code)?;
        Ok(context)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _guard = exclusive();
        let functions = &self.loaded.functions;
        let parts = [
            (self.device, functions.device_free),
            (self.backend, functions.backend_free),
            (self.log, functions.log_free),
        ];
        for (handle, free) in parts.into_iter().filter(|(handle, _)| !handle.is_null()) {
            // SAFETY: nothing that was made with it is left: graphs own the session.
            unsafe { free(handle) };
        }
    }
}

/// Waits until no other call is made.
pub(super) fn exclusive() -> MutexGuard<'static, ()> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}
