//! QNN's processor, opened with its settings.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::abi::{DeviceOption, Handle, RawConfig};
use super::error::QnnError;
use super::library::{Loaded, find, version};
use lapwing_model::signals;
use lapwing_npu::QnnSettings;

/// Only errors are reported, to a callback that drops them: they are written on standard output otherwise.
const LOG_LEVEL: u32 = 1;

/// Held by each call: shared by runs of graphs, and exclusively by all others, since building and freeing
/// graphs beside a run is not known to be safe.
static CALLS: RwLock<()> = RwLock::new(());

/// The sessions of this process. They are never closed, since the library stays loaded, too.
static SESSIONS: Mutex<Vec<Arc<Session>>> = Mutex::new(Vec::new());

/// The process ends, and no call may begin.
static ENDED: AtomicBool = AtomicBool::new(false);

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
    Session::shared(&QnnSettings::default()).map(|session| session.info.clone())
}

/// The library that is used, where no device names another one.
///
/// # Errors
/// [`QnnError::NoLibrary`].
pub fn qnn_library() -> Result<PathBuf, QnnError> {
    find(None)
}

/// The library and its objects for everything else.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) loaded: Loaded,
    pub(super) info: QnnInfo,
    /// Numbers of the system on chip and of the architecture.
    processor: [u32; 2],
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
    /// The session of this library and processor, opened if there is none.
    ///
    /// # Errors
    /// [`QnnError`].
    pub(super) fn shared(settings: &QnnSettings) -> Result<Arc<Session>, QnnError> {
        let path = find(settings.library.as_deref())?;
        // The library finds others relative to itself, which a link would hide.
        let path = path.canonicalize().unwrap_or(path);
        let processor = [settings.soc, settings.arch];
        let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |session: &&Arc<Session>| {
            session.info.library == path && session.processor == processor
        };
        if let Some(session) = sessions.iter().find(same) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(signals::keep(|| Session::open(&path, processor))?);
        wait_at_exit();
        sessions.push(Arc::clone(&session));
        Ok(session)
    }

    fn open(path: &Path, processor: [u32; 2]) -> Result<Session, QnnError> {
        let (session, started) = {
            let _guard = exclusive();
            let loaded = Loaded::open(path)?;
            let info = QnnInfo {
                processor: loaded.name.clone(),
                version: version(loaded.core),
                build: loaded.build().trim_start_matches('v').to_owned(),
                library: path.to_owned(),
                // No machine with such a processor runs the library for x86-64.
                emulated: cfg!(target_arch = "x86_64"),
            };
            let (log, backend, device) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            let mut session = Session { loaded, info, processor, log, backend, device };
            let started = session.start();
            (session, started)
        };
        started.map(|()| session)
    }

    fn start(&mut self) -> Result<(), QnnError> {
        let [soc, arch] = self.processor;
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

    /// The context of a graph that was prepared before.
    pub(super) fn context_of(&self, binary: &[u8]) -> Result<Handle, QnnError> {
        let mut context = ptr::null_mut();
        // SAFETY: both handles are valid, and the pointers are valid for the call. The last one, a profile, may be null.
        let code = unsafe {
            let create = self.loaded.functions.context_create_from_binary;
            create(
                self.backend,
                self.device,
                ptr::null(),
                binary.as_ptr().cast(),
                binary.len() as u64,
                &raw mut context,
                ptr::null_mut(),
            )
        };
        self.loaded.check("reading a graph", code)?;
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
            // SAFETY: it could not be opened entirely, so nothing was made with it.
            unsafe { free(handle) };
        }
    }
}

/// Waits until no other call is made.
pub(super) fn exclusive() -> RwLockWriteGuard<'static, ()> {
    CALLS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no call is made except runs.
pub(super) fn running() -> RwLockReadGuard<'static, ()> {
    CALLS.read().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> i32;
}

/// From now on, the end of the process waits for calls in flight, before the library destroys what it has
/// made so far. It is stated again after calls that make more, since what is made last is destroyed first.
pub(super) fn wait_at_exit() {
    // SAFETY: the function may be called at any time.
    unsafe { atexit(wait_for_calls) };
}

/// Lets no call run into the end of the process.
extern "C" fn wait_for_calls() {
    if !ENDED.swap(true, Ordering::AcqRel) {
        std::mem::forget(exclusive());
    }
}
