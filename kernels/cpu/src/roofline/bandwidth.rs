//! Measures read bandwidth.

use std::hint::black_box;
use std::time::Duration;

use super::error::RooflineError;
use super::timing::Rounds;
use crate::context::Cpu;
use crate::packed::memory::Memory;
use crate::simd::prefetch::PrefetchOffset;

/// Most bytes of a task: enough that the cost of tasks is negligible.
const TASK_BYTES: usize = 16 << 20;
/// Fewest tasks per thread.
const TASKS_PER_THREAD: usize = 2;
/// Bytes that a task fills.
const FILL_BYTES: usize = 1 << 20;
/// Prefetch distance, when the loop prefetches.
const PREFETCH_BYTES: usize = 8192;

/// Memory that is read as weights are: in huge pages if the system has them, each thread a
/// contiguous part. Its read time is a lower bound for anything that reads as much.
#[derive(Debug)]
pub struct BandwidthProbe {
    memory: Memory,
    bytes: usize,
}

impl BandwidthProbe {
    /// Allocates this many bytes.
    ///
    /// # Errors
    /// [`RooflineError::Memory`].
    pub fn new(cpu: &Cpu, bytes: usize) -> Result<BandwidthProbe, RooflineError> {
        // Unwritten pages are all mapped to the same zero page.
        let fill = |to: &mut [u8]| {
            cpu.pool().chunks_mut(to, FILL_BYTES, |task, part| part.fill(task as u8 & 0x3F));
        };
        let memory = Memory::filled(bytes, fill).map_err(|_| RooflineError::Memory { bytes })?;
        Ok(BandwidthProbe { memory, bytes })
    }

    /// Bytes per second: reads all of it `rounds` times (at least once) with hardware prefetch
    /// only, and as often with software prefetch; returns the median of the faster way. `now` is a
    /// monotonic clock with any origin.
    pub fn median(&self, cpu: &Cpu, rounds: usize, now: &dyn Fn() -> Duration) -> f64 {
        let clock = Rounds { rounds: rounds.max(1), now };
        self.rate(cpu, |read| {
            let mut times: Vec<Duration> = (0..clock.rounds).map(|_| clock.time(read)).collect();
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64()
        })
    }

    /// As [`BandwidthProbe::median`], but the fastest round of both ways.
    pub(super) fn fastest(&self, cpu: &Cpu, clock: &Rounds<'_>) -> f64 {
        self.rate(cpu, |read| clock.fastest(read))
    }

    fn rate(&self, cpu: &Cpu, seconds: impl Fn(&dyn Fn()) -> f64) -> f64 {
        let of_thread = self.bytes.div_ceil(cpu.pool().threads() * TASKS_PER_THREAD);
        let of_task = of_thread.clamp(1, TASK_BYTES).next_multiple_of(64);
        let read = |prefetch: Option<usize>| {
            let prefetch =
                prefetch.map(|bytes| PrefetchOffset { bytes, hint: cpu.caches().prefetch_hint });
            cpu.pool().run(self.bytes.div_ceil(of_task), &|task| {
                let end = self.bytes.min((task + 1) * of_task);
                let part = &self.memory.bytes()[task * of_task..end];
                black_box((cpu.kernels().stream_read)(part, prefetch));
            });
        };
        let ways = [None, Some(PREFETCH_BYTES)].map(|prefetch| {
            read(prefetch);
            seconds(&|| read(prefetch))
        });
        self.bytes as f64 / ways[0].min(ways[1])
    }
}
