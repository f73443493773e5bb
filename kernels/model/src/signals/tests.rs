//! A library that installs handlers, beside a program that has some.
#![expect(unsafe_code, reason = "installs handlers and loads a library")]

use std::ffi::{CString, c_int, c_void};
use std::mem::MaybeUninit;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Takes a signal, or has it ignored, when it is called.
const DRIVER: &str = "
#include <signal.h>
static void on_signal(int signal) { (void)signal; }
void take(int number) { signal(number, on_signal); }
void ignore(int number) { signal(number, SIG_IGN); }
";

static RECEIVED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: c_int) {
    RECEIVED.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn count_again(_: c_int) {
    RECEIVED.fetch_add(100, Ordering::Relaxed);
}

/// Installs a handler of the program. Returns the address that the system has now: a function may have several.
fn install(signal: c_int, function: extern "C" fn(c_int)) -> usize {
    // SAFETY: the handler only counts.
    unsafe { libc::signal(signal, function as *const () as libc::sighandler_t) };
    handler(signal)
}

/// The address of a signal's handler.
fn handler(signal: c_int) -> usize {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: nothing is set, and the system fills the value in.
    unsafe {
        assert_eq!(libc::sigaction(signal, ptr::null(), now.as_mut_ptr()), 0);
        now.assume_init().sa_sigaction
    }
}

/// A library of its own with the functions of [`DRIVER`], of which it takes one by its name. It stays loaded.
struct Driver(*mut c_void);

impl Driver {
    fn load() -> Driver {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, library) = (folder.path().join("d.c"), folder.path().join("libd.so"));
        std::fs::write(&source, DRIVER).expect("a source");
        let compiler = std::env::var("LAPWING_TEST_CC").unwrap_or_else(|_| "cc".to_owned());
        let compiled = Command::new(compiler)
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status()
            .expect("a C compiler");
        assert!(compiled.success());
        let path = CString::new(library.to_str().expect("a path")).expect("no zero");
        // SAFETY: the library does nothing when it is loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Driver(handle)
    }

    fn call(&self, function: &std::ffi::CStr, signal: c_int) {
        // SAFETY: both functions of the library have this type.
        unsafe {
            let at = libc::dlsym(self.0, function.as_ptr());
            assert!(!at.is_null());
            std::mem::transmute::<*mut c_void, extern "C" fn(c_int)>(at)(signal);
        }
    }
}

/// Everything is in one test, since the signals are those of the process.
#[test]
fn the_programs_handlers_stay_whatever_a_driver_installs() {
    let numbers =
        [libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH, libc::SIGURG, libc::SIGRTMIN() + 3];
    let [one, two, three, four, five] = numbers;
    install(one, count);
    install(two, count);
    let before = numbers.map(handler);
    let driver = keep(|| {
        let driver = Driver::load();
        [one, three, five].iter().for_each(|signal| driver.call(c"take", *signal));
        driver.call(c"ignore", four);
        // Calls of drivers may be nested, and run side by side.
        keep(|| driver.call(c"take", two));
        driver
    });
    assert_eq!(numbers.map(handler), before, "after the driver was loaded");
    // SAFETY: the handler only counts.
    unsafe { libc::raise(one) };
    assert_eq!(RECEIVED.load(Ordering::Relaxed), 1, "the program is told again");

    // A driver's own thread is not watched, but the next call finds what it did.
    [one, three].iter().for_each(|signal| driver.call(c"take", *signal));
    assert_ne!(handler(one), before[0]);
    keep(|| assert_eq!(numbers.map(handler), before, "when the next call begins"));
    assert_eq!(numbers.map(handler), before);

    // What the program installs while a driver is called is its own.
    let installed = keep(|| {
        driver.call(c"take", one);
        [install(one, count_again), install(three, count)]
    });
    assert_eq!([handler(one), handler(three)], installed);
    keep(|| driver.call(c"take", one));
    assert_eq!(handler(one), installed[0]);
}
