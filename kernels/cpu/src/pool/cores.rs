//! Choice of cores: sets of logical cores, and threads pinned to them.

use std::fmt;
use std::str::FromStr;

mod affinity;
mod numa;

pub use affinity::PinnedThread;

/// Highest core number that a set may contain, plus one: what the system's interface can name.
const CORES_MAX: usize = 1024;

/// A set of logical cores, by the operating system's numbers; never empty. As text, numbers and
/// ranges joined by commas, as in `0,2-3`; `node1` stands for the cores of NUMA node 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoreSet {
    /// Ascending and distinct.
    cores: Vec<usize>,
}

/// Why threads cannot be pinned to cores.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoresError {
    /// The set is empty.
    #[error("the set of cores is empty; name at least one core, as in 0-3")]
    Empty,
    /// The text is not a set of cores.
    #[error(
        "'{found}' is not a set of cores below {CORES_MAX}; use numbers and ascending ranges, as in 0,2-3, or a NUMA node, as in node0"
    )]
    Syntax {
        /// The part of the text that is wrong.
        found: String,
    },
    /// Some cores do not exist, or this process may not use them.
    #[error("there is no core {absent} for this process; it may use {available}")]
    Absent {
        /// The cores that were named and are not available.
        absent: CoreSet,
        /// The cores that this process may use.
        available: CoreSet,
    },
    /// There is no such NUMA node.
    #[error("this machine has no NUMA node {node}; it has {known}")]
    Node {
        /// The node that was named.
        node: usize,
        /// The nodes of the machine, as text.
        known: String,
    },
    /// The operating system has no affinity of threads, or none that this program knows.
    #[error("this operating system cannot pin threads to cores; leave out the choice of cores")]
    Unsupported,
    /// The operating system refused.
    #[error("cannot pin threads to cores {cores}: {source}")]
    System {
        /// The cores.
        cores: String,
        /// The cause.
        source: std::io::Error,
    },
}

impl CoreSet {
    /// A set of these cores, in any order.
    ///
    /// # Errors
    /// [`CoresError::Empty`], and [`CoresError::Syntax`] for a number that no system has.
    pub fn new(cores: impl IntoIterator<Item = usize>) -> Result<CoreSet, CoresError> {
        // One beyond the limit is enough to refuse a range without an end.
        let mut cores: Vec<usize> = cores.into_iter().take(CORES_MAX + 1).collect();
        cores.sort_unstable();
        cores.dedup();
        match cores.last() {
            None => Err(CoresError::Empty),
            Some(&last) if last >= CORES_MAX => Err(CoresError::Syntax { found: last.to_string() }),
            Some(_) => Ok(CoreSet { cores }),
        }
    }

    /// The cores that this process may use.
    ///
    /// # Errors
    /// [`CoresError::Unsupported`], or [`CoresError::System`].
    pub fn available() -> Result<CoreSet, CoresError> {
        affinity::of_process()
    }

    /// Checks that this process may use every core.
    ///
    /// # Errors
    /// [`CoresError::Absent`], which names the absent cores and the available ones, or an error of
    /// [`available`](CoreSet::available).
    pub fn check(&self) -> Result<(), CoresError> {
        let available = CoreSet::available()?;
        let absent = self.cores.iter().filter(|core| !available.cores.contains(core));
        match CoreSet::new(absent.copied()) {
            Err(_) => Ok(()),
            Ok(absent) => Err(CoresError::Absent { absent, available }),
        }
    }

    /// The cores, ascending.
    pub fn cores(&self) -> &[usize] {
        &self.cores
    }

    /// The set that thread `thread` of a pool of `threads` is pinned to: a core of its own if there are as
    /// many threads as cores, otherwise all of them.
    pub fn of_thread(&self, thread: usize, threads: usize) -> CoreSet {
        match self.cores.get(thread) {
            Some(&own) if threads == self.cores.len() => CoreSet { cores: vec![own] },
            _ => self.clone(),
        }
    }
}

impl FromStr for CoreSet {
    type Err = CoresError;

    fn from_str(text: &str) -> Result<CoreSet, CoresError> {
        let mut cores = Vec::new();
        for part in text.split(',').map(str::trim) {
            let wrong = || CoresError::Syntax { found: part.to_owned() };
            if let Some(node) = part.strip_prefix("node") {
                cores.extend(CoreSet::of_node(node.parse().map_err(|_| wrong())?)?.cores);
                continue;
            }
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n < CORES_MAX);
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = number(first).zip(number(last)).ok_or_else(wrong)?;
            if first > last {
                return Err(wrong());
            }
            cores.extend(first..=last);
        }
        CoreSet::new(cores)
    }
}

impl fmt::Display for CoreSet {
    /// In the shortest form that parses to the same set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.cores.chunk_by(|a, b| a + 1 == *b);
        let runs = runs.filter_map(|run| Some((*run.first()?, *run.last()?)));
        for (at, (first, last)) in runs.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
