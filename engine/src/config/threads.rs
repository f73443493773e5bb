//! How the compute threads, and the cores they are pinned to, are divided among the devices.

use std::thread::available_parallelism;

use lapwing_kernels::cpu::{CoreSet, THREADS_MAX};

use super::{Settings, within};
use crate::devices::DeviceSpec;
use crate::error::Error;

/// The compute threads of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Threads {
    /// Number of threads, the one that owns the device included; of an NPU's library, those of the library.
    pub(crate) count: usize,
    /// The cores they are pinned to; `None` for any.
    pub(crate) cores: Option<CoreSet>,
}

/// Number of threads that the machine runs at once.
pub(crate) fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

impl Settings {
    /// The cores that threads are pinned to, if any were chosen.
    pub(crate) fn core_set(&self) -> Result<Option<CoreSet>, Error> {
        let set = self.cores.as_ref().map(|cores| CoreSet::new(cores.iter().copied()));
        let set = set.transpose()?;
        set.as_ref().map(CoreSet::check).transpose()?;
        Ok(set)
    }

    /// The devices with their threads: one for each, and for the CPU the requested number, or all
    /// that the other devices leave of the chosen cores or of the machine. The threads of an NPU's library take only chosen
    /// cores from the CPU: it computes alone until graphs are ready, and a real NPU needs no thread.
    pub(super) fn choose_devices(&self) -> Result<Vec<(DeviceSpec, Threads)>, Error> {
        let specs = match &self.devices[..] {
            [] => vec![DeviceSpec::cpu()],
            specs => specs.to_vec(),
        };
        DeviceSpec::check_names(&specs)?;
        // Settings of a program have the same limits as settings read from text.
        for spec in &specs {
            spec.check()?;
            spec.to_string().parse::<DeviceSpec>()?;
        }
        let set = self.core_set()?;
        let all = set.as_ref().map_or_else(cores, |set| set.cores().len());
        let native = |spec: &DeviceSpec| !spec.is_throttled() && spec.has_threads();
        let has_pinned = |spec: &DeviceSpec| spec.has_library() && set.is_some();
        let takes_own = |spec: &&DeviceSpec| spec.is_throttled() || has_pinned(spec);
        let others = specs.iter().filter(takes_own);
        let fixed: usize = others.map(|spec| spec.threads.unwrap_or(1)).sum();
        let cpus = specs.iter().filter(|spec| native(spec)).count().max(1);
        let left = (all.saturating_sub(fixed) / cpus).max(1);
        let of_native = within("threads", self.threads.unwrap_or(left), 1..=THREADS_MAX)?;
        let threads = |spec: &DeviceSpec| match spec.has_threads() || spec.has_library() {
            true => spec.threads.unwrap_or(if native(spec) { of_native } else { 1 }),
            false => 0,
        };
        let counts: Vec<usize> = specs.iter().map(threads).collect();
        let threads = divide(&counts, set.as_ref());
        Ok(specs.into_iter().zip(threads).collect())
    }
}

/// Divides cores among devices with these numbers of threads: if there are as many threads as cores,
/// each device has cores of its own; otherwise all devices share all cores.
fn divide(counts: &[usize], set: Option<&CoreSet>) -> Vec<Threads> {
    let total: usize = counts.iter().sum();
    let mut first = 0;
    let of_device = |&count: &usize| {
        let own = first..first + count;
        first += count;
        let cores = set.map(|set| match set.cores().get(own) {
            Some(own) if total == set.cores().len() => CoreSet::new(own.iter().copied()),
            _ => Ok(set.clone()),
        });
        Threads { count, cores: cores.and_then(Result::ok) }
    };
    counts.iter().map(of_device).collect()
}

#[cfg(test)]
mod tests {
    use super::{CoreSet, divide};

    #[test]
    fn devices_have_cores_of_their_own_if_there_are_as_many_as_threads() {
        for (counts, set, expected) in [
            (&[4][..], "0-3", &["0-3"][..]),
            (&[2, 1, 1], "0,2-4", &["0,2", "3", "4"]),
            (&[2, 1], "0-3", &["0-3", "0-3"]),
            (&[2, 2, 1], "0-3", &["0-3", "0-3", "0-3"]),
            (&[2], "5", &["5"]),
        ] {
            let cores: CoreSet = set.parse().expect(set);
            let divided = divide(counts, Some(&cores));
            let divided: Vec<String> =
                divided.iter().filter_map(|t| Some(t.cores.as_ref()?.to_string())).collect();
            assert_eq!(divided, expected, "{counts:?} threads on cores {set}");
        }
        assert!(divide(&[2, 1], None).iter().all(|threads| threads.cores.is_none()));
    }
}
