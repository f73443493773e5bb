//! Blocking work beside the caller's runtime.

use std::io;
use std::thread;

/// Runs `work` on a thread of its own and returns its result, without blocking the task that
/// awaits it and without needing any particular runtime. Dropping the future does not stop the
/// work; its result is then lost.
///
/// # Errors
/// When the operating system gives no thread, or `work` panicked.
#[expect(clippy::disallowed_methods, reason = "drive owns the engine's threads")]
pub async fn off_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = flume::bounded(1);
    thread::Builder::new().name(format!("lapwing-{name}")).spawn(move || {
        let _ = sender.send(work());
    })?;
    receiver.recv_async().await.map_err(|_| io::Error::other(format!("'{name}' panicked")))
}
