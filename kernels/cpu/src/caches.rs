//! The data caches of this machine's cores, which matmuls are blocked for.

use crate::cpuid::amd_family;
use crate::simd::prefetch::PrefetchHint;
use std::path::Path;
use std::sync::OnceLock;

/// Sizes of data caches, as far as one thread can count on them.
///
/// They decide how matmuls are divided into blocks and tasks, never a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// First level: bytes per hardware thread, of the core with the smallest cache.
    pub l1: usize,
    /// Second level: bytes per hardware thread, of the core with the smallest cache.
    pub l2: usize,
    /// Bytes of the largest cache, shared or not; `None` if unknown.
    pub largest: Option<usize>,
    /// Whether the system reported the sizes; otherwise they are defaults that every core of the
    /// last ten years has at least.
    pub detected: bool,
    /// Which caches weights, keys and values are prefetched into.
    pub prefetch_hint: PrefetchHint,
}

/// A cache, as one hardware thread sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cache {
    level: u32,
    bytes: usize,
    /// Hardware threads that share it.
    sharers: usize,
}

impl Default for Caches {
    fn default() -> Caches {
        Caches {
            l1: 32 << 10,
            l2: 256 << 10,
            largest: None,
            detected: false,
            prefetch_hint: PrefetchHint::AllLevels,
        }
    }
}

impl Caches {
    /// The caches of this machine; read from the system once.
    pub fn of_machine() -> Caches {
        static MACHINE: OnceLock<Caches> = OnceLock::new();
        *MACHINE.get_or_init(|| Caches {
            prefetch_hint: PrefetchHint::on(amd_family()),
            ..Caches::below(Path::new("/sys/devices/system/cpu"))
        })
    }

    /// Bytes that a waiting thread may prefetch: a quarter of the second level, which keeps them
    /// until they are read. 0 if prefetches bypass the second level: the matmul's own prefetches
    /// already fill the first.
    pub(crate) fn idle_prefetch_bytes(&self) -> usize {
        match self.prefetch_hint {
            PrefetchHint::AllLevels | PrefetchHint::L2Only => self.l2 / 4,
            PrefetchHint::L1Only => 0,
        }
    }

    /// The caches that Linux describes in a folder of `cpuN/cache/indexN`.
    fn below(folder: &Path) -> Caches {
        let all: Vec<Cache> = entries(folder, "cpu")
            .into_iter()
            .flat_map(|cpu| entries(&cpu.join("cache"), "index"))
            .filter_map(|index| Cache::read(&index))
            .collect();
        let share =
            |level| all.iter().filter(|c| c.level == level).map(|c| c.bytes / c.sharers).min();
        let largest = all.iter().map(|cache| cache.bytes).max();
        let default = Caches { largest, ..Caches::default() };
        match (share(1), share(2)) {
            (Some(l1), Some(l2)) if l1 > 0 && l2 > 0 => {
                Caches { l1, l2, detected: true, ..default }
            }
            _ => default,
        }
    }
}

/// The numbered entries of a folder; none if it cannot be read.
fn entries(folder: &Path, prefix: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_numbered =
        |name: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<usize>().is_ok());
    entries.filter(|e| e.file_name().to_str().is_some_and(is_numbered)).map(|e| e.path()).collect()
}

impl Cache {
    /// The cache that a folder describes; `None` for an instruction cache, or if a file is missing.
    fn read(folder: &Path) -> Option<Cache> {
        let text = |name| std::fs::read_to_string(folder.join(name)).ok();
        if text("type")?.trim() == "Instruction" {
            return None;
        }
        let level = text("level")?.trim().parse().ok()?;
        let sharers = text("shared_cpu_list").and_then(|list| listed(list.trim())).unwrap_or(1);
        Some(Cache { level, bytes: bytes_of(&text("size")?)?, sharers })
    }
}

/// Bytes of a size in Linux's notation: `32768K`.
fn bytes_of(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |number| (number, 1 << 20)),
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

/// Count of the numbers in a list such as `0-3,8`; `None` if it is empty or malformed.
fn listed(list: &str) -> Option<usize> {
    let count = |part: &str| match part.split_once('-') {
        Some((from, to)) => {
            let (from, to) = (from.parse::<usize>().ok()?, to.parse::<usize>().ok()?);
            to.checked_sub(from)?.checked_add(1)
        }
        None => part.parse::<usize>().ok().map(|_| 1),
    };
    list.split(',').map(count).try_fold(0usize, |sum, count| sum.checked_add(count?))
}

#[cfg(test)]
mod tests;
