//! The data caches of this machine's cores: what products are blocked for.

use crate::cpu::isa;
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

/// Caches that what is read once is asked for into. Which is fastest, only measuring says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefetchHint {
    /// All of them.
    #[default]
    AllLevels,
    /// The second level and not the first, which waits for fewer lines at a time: on Zen 4, one token
    /// is 15 to 28 % faster than with the first, and after 4000, 25 to 37 % faster than into all.
    L2Only,
    /// The first level and not the second, where weights take the place of what is used again. Zen 5
    /// fetches them as fast in this way; an Intel server CPU at a fifth to a third of the speed.
    L1Only,
}

impl PrefetchHint {
    /// On an AMD processor of that family, or on another.
    fn on(amd_family: Option<u32>) -> PrefetchHint {
        /// And Zen 3; of those before them, none was measured.
        const ZEN_4: u32 = 0x19;
        match amd_family {
            Some(..=ZEN_4) => PrefetchHint::L2Only,
            Some(_) => PrefetchHint::L1Only,
            None => PrefetchHint::AllLevels,
        }
    }
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
            prefetch_hint: PrefetchHint::on(isa::amd_family()),
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
mod tests {
    use super::*;

    /// A folder as Linux has it: per core (level, type, size, sharers).
    fn machine(cores: &[&[(&str, &str, &str, &str)]]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("cpufreq")).expect("a folder");
        for (cpu, caches) in cores.iter().enumerate() {
            for (index, (level, kind, size, sharers)) in caches.iter().enumerate() {
                let to = folder.path().join(format!("cpu{cpu}/cache/index{index}"));
                std::fs::create_dir_all(&to).expect("a folder");
                let files = [
                    ("level", level),
                    ("type", kind),
                    ("size", size),
                    ("shared_cpu_list", sharers),
                ];
                for (name, text) in files {
                    if !text.is_empty() {
                        std::fs::write(to.join(name), format!("{text}\n")).expect("a file");
                    }
                }
            }
        }
        folder
    }

    #[test]
    fn caches_are_misread() {
        let big = [
            ("1", "Data", "48K", "0"),
            ("1", "Instruction", "16K", "0"),
            ("2", "Unified", "2048K", "0"),
            ("3", "Unified", "32M", "0-7"),
        ];
        let small = [
            ("1", "Data", "32K", "1"),
            ("2", "Unified", "2M", "1-4"),
            ("3", "Unified", "32768K", ""),
        ];
        let threads = [("1", "Data", "32K", "0-1"), ("2", "Unified", "1024K", "0,1")];
        let unknown = Caches::default();
        let of = |l1, l2, largest| Caches {
            l1,
            l2,
            largest: Some(largest),
            detected: true,
            prefetch_hint: PrefetchHint::AllLevels,
        };
        let cases: [(&str, &[&[_]], Caches); 7] = [
            ("the smallest core counts", &[&big, &small], of(32 << 10, 512 << 10, 32 << 20)),
            ("one core", &[&big], of(48 << 10, 2 << 20, 32 << 20)),
            ("threads share", &[&threads], of(16 << 10, 512 << 10, 1 << 20)),
            ("nothing is told", &[], unknown),
            ("no second level", &[&big[..1]], Caches { largest: Some(48 << 10), ..unknown }),
            ("no size", &[&[("1", "Data", "", "0"), ("2", "Unified", "x", "0")]], unknown),
            (
                "a size of nothing",
                &[&[("1", "Data", "0K", "0"), ("2", "Unified", "1M", "0")]],
                Caches { largest: Some(1 << 20), ..unknown },
            ),
        ];
        for (what, cores, want) in cases {
            assert_eq!(Caches::below(machine(cores).path()), want, "{what}");
        }
    }

    #[test]
    fn a_processor_is_asked_as_another() {
        let cases = [
            ("Zen 4", Some(25), PrefetchHint::L2Only),
            ("Zen 5", Some(26), PrefetchHint::L1Only),
            ("not of AMD", None, PrefetchHint::AllLevels),
        ];
        for (what, family, want) in cases {
            assert_eq!(PrefetchHint::on(family), want, "{what}");
        }
    }

    #[test]
    fn a_list_is_miscounted() {
        let cases = [("0", Some(1)), ("0-3,8", Some(5)), ("", None), ("3-1", None), ("0-x", None)];
        for (list, want) in cases {
            assert_eq!(listed(list), want, "{list}");
        }
        for (text, want) in [("512", Some(512)), ("32K", Some(32 << 10)), ("-1K", None)] {
            assert_eq!(bytes_of(text), want, "{text}");
        }
    }
}
