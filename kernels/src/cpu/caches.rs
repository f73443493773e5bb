//! The data caches of this machine's cores: what products are blocked for.

use crate::cpu::cpuid::amd_family;
use crate::cpu::simd::prefetch::PrefetchHint;
use std::path::Path;
use std::sync::OnceLock;

/// Sizes of data caches, as far as a thread may count on them.
///
/// They decide how products are cut into blocks and tasks, never a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Bytes of a thread in the first level: the smallest of all cores, divided among the hardware
    /// threads that share it.
    pub l1: usize,
    /// Bytes of a thread in the second level, in the same way.
    pub l2: usize,
    /// Bytes of the largest cache, whoever shares it; `None` where it is not known.
    pub largest: Option<usize>,
    /// Whether the system told the sizes; otherwise they are those that every core of the last ten
    /// years has at least.
    pub detected: bool,
    /// Into which of them weights, keys and values are asked for, which are read once.
    pub prefetch_hint: PrefetchHint,
}

/// A cache of one hardware thread.
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
    /// Those of this machine, asked for once.
    pub fn of_machine() -> Caches {
        static MACHINE: OnceLock<Caches> = OnceLock::new();
        *MACHINE.get_or_init(|| Caches {
            prefetch_hint: PrefetchHint::on(amd_family()),
            ..Caches::below(Path::new("/sys/devices/system/cpu"))
        })
    }

    /// Bytes of them that what a waiting thread asks for may take: a part of the second level, which
    /// keeps what it has read and will read again; nothing where that is passed by, since the first is
    /// full of what has been asked for at once.
    pub(crate) fn idle_prefetch_bytes(&self) -> usize {
        match self.prefetch_hint {
            PrefetchHint::AllLevels | PrefetchHint::L2Only => self.l2 / 4,
            PrefetchHint::L1Only => 0,
        }
    }

    /// Those that Linux describes in a folder of `cpuN/cache/indexN`.
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

/// The numbered entries of a folder; none where it cannot be read.
fn entries(folder: &Path, prefix: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_numbered =
        |name: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<usize>().is_ok());
    entries.filter(|e| e.file_name().to_str().is_some_and(is_numbered)).map(|e| e.path()).collect()
}

impl Cache {
    /// What a folder describes; `None` for a cache of instructions, or where something is missing.
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

/// Bytes of a size as Linux writes it: `32768K`.
fn bytes_of(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |number| (number, 1 << 20)),
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

/// How many numbers a list such as `0-3,8` has; `None` for none, or what is no list.
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
