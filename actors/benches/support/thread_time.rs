//! The calling thread's CPU clock, timers and core.

/// CPU time of the calling thread in ns; 0 where the system does not tell.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn thread_cpu_ns() -> u64 {
    0
}

/// Lets the calling thread's timers fire when they are due.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn finest_timers() {
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn finest_timers() {}

/// The cores that this process was given, as its first thread to ask sees them.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn given() -> &'static [usize] {
    use rustix::thread::{CpuSet, sched_getaffinity};
    static GIVEN: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();
    GIVEN.get_or_init(|| {
        let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
    })
}

/// Keeps the calling thread on the `index`-th of the process's cores, counted around; threads that
/// it makes begin there.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn stay_on_core(index: usize) {
    if let Some(core) = given().get(index % given().len().max(1)) {
        let mut one = rustix::thread::CpuSet::new();
        one.set(*core);
        let _ = rustix::thread::sched_setaffinity(None, &one);
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn stay_on_core(_index: usize) {}
