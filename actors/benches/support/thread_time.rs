//! The calling thread's CPU clock, timers and core.

/// CPU time of the calling thread in ns; 0 where the system does not tell.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn thread_cpu_ns() -> u64 {
    0
}

/// Lets the calling thread's timers fire when they are due.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn finest_timers() {
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn finest_timers() {}

/// Keeps the calling thread on the `index`-th of its cores, counted around.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn stay_on_core(index: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    let mut one = CpuSet::new();
    one.set(cores[index % cores.len()]);
    let _ = sched_setaffinity(None, &one);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn stay_on_core(_index: usize) {}
