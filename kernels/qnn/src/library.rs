//! The part of QNN's C interface that is used, loaded at run time.
#![expect(unsafe_code, reason = "calls a C library")]

use std::error::Error;
use std::ffi::{CStr, c_char, c_void};
use std::mem::{ManuallyDrop, offset_of};
use std::path::{Path, PathBuf};
use std::{ptr, slice};

use libloading::Library;

use super::abi::{Code, Handle, RawConfig, RawOp, RawTensor};
use super::error::QnnError;
use lapwing_npu::library_path::Wanted;

/// The variable with the path of the library or of its folder.
pub(super) const VARIABLE: &str = "LAPWING_QNN";

/// The version of the interface whose structures are those of [`abi`](super::abi).
pub(super) const MAJOR: u32 = 2;

/// Most interfaces that a library is believed to list.
const PROVIDERS_MAX: usize = 16;

/// Beginning of the library's file name.
#[cfg(windows)]
const FILE: &str = "QnnHtp.dll";
#[cfg(not(windows))]
const FILE: &str = "libQnnHtp.so";

/// Receives messages: format, level, time in nanoseconds, arguments.
pub(super) type LogCallback = unsafe extern "C" fn(*const c_char, u32, u64, *mut c_void);
type GetProviders = unsafe extern "C" fn(*mut *const *const Provider, *mut u32) -> Code;
type Configs = *const *const RawConfig;
type Free = unsafe extern "C" fn(Handle) -> Code;

/// An interface of a library.
#[repr(C)]
struct Provider {
    _id: u32,
    name: *const c_char,
    core: [u32; 3],
    _backend: [u32; 3],
    table: Table,
}

macro_rules! table {
    ($($name:ident: $signature:ty, $gap:ident: $count:literal;)*) => {
        /// The beginning of the table of functions, which later versions only extend. Gaps are functions
        /// that are not used.
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Table {
            _capability: usize,
            $($name: Option<$signature>, $gap: [usize; $count],)*
        }

        /// The functions.
        #[derive(Debug)]
        pub(super) struct Functions {
            $(pub(super) $name: $signature,)*
        }

        impl Functions {
            /// # Errors
            /// The name of a function that the library lacks.
            fn of(table: &Table) -> Result<Functions, &'static str> {
                Ok(Functions { $($name: table.$name.ok_or(stringify!($name))?,)* })
            }
        }
    };
}

table! {
    backend_create: unsafe extern "C" fn(Handle, Configs, *mut Handle) -> Code, _gap_2: 2;
    backend_get_build_id: unsafe extern "C" fn(*mut *const c_char) -> Code, _gap_5: 3;
    backend_free: Free, _gap_9: 0;
    context_create: unsafe extern "C" fn(Handle, Handle, Configs, *mut Handle) -> Code, _gap_10: 1;
    context_get_binary_size: unsafe extern "C" fn(Handle, *mut u64) -> Code, _gap_12: 0;
    context_get_binary: unsafe extern "C" fn(Handle, *mut c_void, u64, *mut u64) -> Code, _gap_13: 0;
    context_create_from_binary: unsafe extern "C" fn(
        Handle, Handle, Configs, *const c_void, u64, *mut Handle, Handle,
    ) -> Code, _gap_14: 0;
    context_free: unsafe extern "C" fn(Handle, Handle) -> Code, _gap_15: 0;
    graph_create: unsafe extern "C" fn(Handle, *const c_char, Configs, *mut Handle) -> Code, _gap_16: 2;
    graph_add_node: unsafe extern "C" fn(Handle, RawOp) -> Code, _gap_19: 0;
    graph_finalize: unsafe extern "C" fn(Handle, Handle, Handle) -> Code, _gap_20: 0;
    graph_retrieve: unsafe extern "C" fn(Handle, *const c_char, *mut Handle) -> Code, _gap_21: 0;
    graph_execute: unsafe extern "C" fn(
        Handle, *const RawTensor, u32, *mut RawTensor, u32, Handle, Handle,
    ) -> Code, _gap_22: 2;
    tensor_create_graph_tensor: unsafe extern "C" fn(Handle, *mut RawTensor) -> Code, _gap_25: 0;
    log_create: unsafe extern "C" fn(LogCallback, u32, *mut Handle) -> Code, _gap_26: 1;
    log_free: Free, _gap_28: 12;
    device_create: unsafe extern "C" fn(Handle, Configs, *mut Handle) -> Code, _gap_41: 2;
    device_free: Free, _gap_44: 4;
    error_get_message: unsafe extern "C" fn(Code, *mut *const c_char) -> Code, _gap_49: 2;
}

const _: () = {
    assert!(offset_of!(Provider, table) == 40 && size_of::<Table>() == 51 * 8);
    assert!(offset_of!(Table, backend_get_build_id) == 4 * 8);
    assert!(offset_of!(Table, context_create_from_binary) == 13 * 8);
    assert!(offset_of!(Table, context_free) == 14 * 8);
    assert!(offset_of!(Table, graph_retrieve) == 20 * 8);
    assert!(offset_of!(Table, graph_execute) == 21 * 8);
    assert!(offset_of!(Table, tensor_create_graph_tensor) == 24 * 8);
    assert!(offset_of!(Table, device_create) == 40 * 8);
    assert!(offset_of!(Table, error_get_message) == 48 * 8);
};

/// The loaded library. It stays loaded: its threads may outlive everything else.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) functions: Functions,
    /// Name of the processor's interface.
    pub(super) name: String,
    /// Version of the interface.
    pub(super) core: [u32; 3],
    _library: ManuallyDrop<Library>,
}

/// The path of the library: this file or folder, or where it is installed.
///
/// # Errors
/// [`QnnError::NoLibrary`] with the places.
pub(super) fn find(given: Option<&Path>) -> Result<PathBuf, QnnError> {
    let wanted = Wanted {
        variable: VARIABLE,
        file: FILE,
        package: "onnxruntime_qnn",
        folders: ["/usr/lib", "/usr/lib/aarch64-linux-gnu", "/vendor/lib64"]
            .map(PathBuf::from)
            .into(),
        others: "/usr/lib, /vendor/lib64",
    };
    let found = given.map_or_else(|| wanted.find(), |path| wanted.at(path));
    found.map_err(|searched| QnnError::NoLibrary { searched })
}

impl Loaded {
    /// Loads the library.
    ///
    /// # Errors
    /// [`QnnError::Load`], [`QnnError::NoFunction`] and [`QnnError::Version`].
    pub(super) fn open(path: &Path) -> Result<Loaded, QnnError> {
        let load = |error: libloading::Error| {
            // The system's message is the cause of the error.
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            QnnError::Load { path: path.to_owned(), reason }
        };
        let library = ManuallyDrop::new(load_quietly(path).map_err(load)?);
        let none = |function| QnnError::NoFunction { path: path.to_owned(), function };
        let function = "QnnInterface_getProviders";
        let (mut list, mut count) = (ptr::null(), 0);
        // SAFETY: the function has this type in every version of QNN, and the pointers are valid for the
        // call. The library keeps the list and its entries as long as it is loaded.
        let providers = unsafe {
            let get = library.get::<GetProviders>(function).map_err(|_| none(function))?;
            let code = get(&raw mut list, &raw mut count);
            let count = if list.is_null() || code != 0 { 0 } else { count as usize };
            let list = if count == 0 {
                &[]
            } else {
                slice::from_raw_parts(list, count.min(PROVIDERS_MAX))
            };
            list.iter().filter_map(|provider| provider.as_ref()).collect::<Vec<&Provider>>()
        };
        let Some(provider) = choose(providers.iter().map(|provider| provider.core)) else {
            let found = providers.iter().map(|provider| version(provider.core));
            let found = found.collect::<Vec<_>>().join(", ");
            return Err(QnnError::Version { path: path.to_owned(), found });
        };
        let provider = providers[provider];
        let functions = Functions::of(&provider.table).map_err(none)?;
        // SAFETY: the name is null or a text of the library.
        let name = unsafe { text(provider.name) };
        let core = provider.core;
        Ok(Loaded { functions, name, core, _library: library })
    }

    /// The library's message on a code.
    pub(super) fn message(&self, code: Code) -> String {
        let mut message = ptr::null();
        // SAFETY: the pointer is valid for the call; the library keeps the text.
        let text = unsafe {
            (self.functions.error_get_message)(code, &raw mut message);
            text(message)
        };
        if text.is_empty() { "no further message".to_owned() } else { text }
    }

    /// The library's build.
    pub(super) fn build(&self) -> String {
        let mut build = ptr::null();
        // SAFETY: as above.
        unsafe {
            (self.functions.backend_get_build_id)(&raw mut build);
            text(build)
        }
    }

    /// # Errors
    /// [`QnnError::Call`] for a code other than success, with the library's message.
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), QnnError> {
        match code {
            0 => Ok(()),
            code => Err(QnnError::Call { call, code, reason: self.message(code) }),
        }
    }
}

/// The first interface of the needed version.
fn choose(mut cores: impl Iterator<Item = [u32; 3]>) -> Option<usize> {
    cores.position(|[major, ..]| major == MAJOR)
}

/// A version as text.
pub(super) fn version([major, minor, patch]: [u32; 3]) -> String {
    format!("{major}.{minor}.{patch}")
}

/// A copy of a text.
///
/// # Safety
/// `text` is null, or points to a text that ends with a zero.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(text).to_string_lossy().into_owned() }
}

/// Loads the library. While it is loaded, C's standard output leads nowhere: the emulator prints a notice
/// there, which would follow the JSON of a program when it ends.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn load_quietly(path: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix::Library as Process;

    type Open = unsafe extern "C" fn(*const c_char, *const c_char) -> Handle;
    let process = Process::this();
    // SAFETY: `stdout` and `fopen` of glibc have these types, and glibc lets a program replace its `stdout`
    // by another stream. That stream is never closed, since the library may keep it. Rust's standard
    // output does not use either.
    unsafe {
        let streams =
            process.get::<*mut Handle>("stdout").ok().zip(process.get::<Open>("fopen").ok());
        let nowhere = streams.as_ref().map(|(_, open)| open(c"/dev/null".as_ptr(), c"w".as_ptr()));
        let stdout = streams.as_ref().map(|(stdout, _)| **stdout);
        let (Some(nowhere), Some(stdout)) = (nowhere.filter(|stream| !stream.is_null()), stdout)
        else {
            return Library::new(path);
        };
        let old = stdout.replace(nowhere);
        let library = Library::new(path);
        stdout.write(old);
        library
    }
}

/// Loads the library.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn load_quietly(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: QNN's libraries only register themselves when they are loaded.
    unsafe { Library::new(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_of_another_major_version_is_not_used() {
        assert_eq!(choose([[1, 9, 0], [2, 40, 0], [2, 10, 0]].into_iter()), Some(1));
        assert_eq!(choose([[3, 0, 0], [1, 99, 0]].into_iter()), None);
    }
}
