//! Limits that the system sets to a process: checked before anything depends on them, and named in errors.

use std::io;

use super::failure::Failure;

/// Threads that the async runtime needs: two workers and one for files.
const THREADS: usize = 3;
/// Files that the async runtime opens: its queue of events, its wakers and the pipe of signals.
const FILES: usize = 12;

/// Checks that the async runtime can start. It panics or waits for ever where a thread or a file is
/// refused.
///
/// # Errors
/// When a limit leaves too few threads or files.
pub(crate) fn check() -> Result<(), Failure> {
    check_threads(std::thread::Builder::new)?;
    #[cfg(unix)]
    {
        let files: io::Result<Vec<_>> =
            (0..FILES).map(|_| std::fs::File::open("/dev/null")).collect();
        files.map_err(|error| refused(format!("cannot open {FILES} files"), &error))?;
    }
    Ok(())
}

/// Starts [`THREADS`] threads at the same time, and ends them.
fn check_threads(builder: impl Fn() -> std::thread::Builder) -> Result<(), Failure> {
    let (all, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let gate = &gate;
    let started: io::Result<()> = std::thread::scope(|scope| {
        let mut result = Ok(());
        for _ in 0..THREADS {
            let wait = move || {
                // Returns when the sender is dropped, which is after the last thread has started.
                let _ = gate.lock().map(|gate| gate.recv());
            };
            result = builder().spawn_scoped(scope, wait).map(drop);
            if result.is_err() {
                break;
            }
        }
        drop(all);
        result
    });
    wait_for_ended_threads();
    started.map_err(|error| refused(format!("cannot start {THREADS} threads"), &error))
}

/// A thread counts until the system has removed it, shortly after it was joined.
fn wait_for_ended_threads() {
    const TRIES: usize = 10_000;
    let threads = || std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    for _ in 0..TRIES {
        if threads() <= 1 {
            return;
        }
        std::thread::yield_now();
    }
}

fn refused(message: String, error: &io::Error) -> Failure {
    let failure = Failure::failed(format!("{message}: {error}"));
    failure.hint(hint_of_io(error).unwrap_or(THREADS_HINT))
}

const THREADS_HINT: &str = "a limit on threads or processes is reached: raise it (`ulimit -u`, or the pids limit of the \
                            container), or end other programs";

/// What to do about a limit that caused an error, from the error's text: `… (os error NUMBER)`, as the
/// standard library writes errors of the system.
pub(crate) fn hint_in(message: &str) -> Option<&'static str> {
    let (_, number) = message.split_once("(os error ")?;
    let (number, _) = number.split_once(')')?;
    hint_of_io(&io::Error::from_raw_os_error(number.parse().ok()?))
}

fn hint_of_io(error: &io::Error) -> Option<&'static str> {
    // Not all of these have a stable kind of their own.
    #[cfg(unix)]
    const MFILE: i32 = rustix::io::Errno::MFILE.raw_os_error();
    #[cfg(unix)]
    const NFILE: i32 = rustix::io::Errno::NFILE.raw_os_error();
    #[cfg(unix)]
    if matches!(error.raw_os_error(), Some(MFILE | NFILE)) {
        return Some(
            "the limit on open files is reached: raise it (`ulimit -n`), or close other programs",
        );
    }
    match error.kind() {
        io::ErrorKind::FileTooLarge => Some(
            "the limit on the size of a file is reached: raise it (`ulimit -f`), or write less",
        ),
        _ => None,
    }
}

/// Makes writes beyond the limit on file size return an error, where a signal would end the process.
/// Must be called within the async runtime.
pub(crate) fn receive_file_size_signal() {
    #[cfg(unix)]
    {
        let kind = rustix::process::Signal::XFSZ.as_raw();
        // Where the signal cannot be received, it ends the process at such a write.
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_thread_is_an_error_that_names_the_limit() {
        // No system has an address space for such a stack.
        let huge = || std::thread::Builder::new().stack_size(1 << 60);
        let Err(Failure::Failed { message, hint: Some(hint) }) = check_threads(huge) else {
            panic!("threads with stacks of an exabyte")
        };
        assert!(message.starts_with("cannot start 3 threads: "), "{message}");
        assert!(hint.contains("ulimit -u"), "{hint}");
        assert!(check_threads(std::thread::Builder::new).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_message_of_the_system_tells_which_limit_is_reached() {
        for (error, limit) in [(24, "ulimit -n"), (23, "ulimit -n"), (27, "ulimit -f")] {
            let message = format!("cannot do it: {}; try", io::Error::from_raw_os_error(error));
            assert!(hint_in(&message).is_some_and(|hint| hint.contains(limit)), "{message}");
        }
        assert_eq!(hint_in("no such file (os error 2)"), None);
        assert_eq!(hint_in("wrong (os error x)"), None);
    }
}
