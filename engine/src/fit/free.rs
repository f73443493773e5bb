//! The memory that programs can still take.

use std::path::{Path, PathBuf};

/// Bytes of memory that a program can still take without others being swapped out: what the system calls available, or what the
/// control groups of this process leave of their limits, if that is less. `None` where the system does not say: other systems
/// than Linux.
pub fn free_memory() -> Option<u64> {
    free_below(Path::new("/"))
}

/// With `/proc` and `/sys` below this folder.
fn free_below(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let available = kilobytes(&text, "MemAvailable:")?;
    let left = groups(root).into_iter().filter_map(|group| left_in(&group));
    Some(left.fold(available, u64::min))
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The folders of the control group of this process and of those above it, of both versions of the interface.
fn groups(root: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mount = match controllers {
            "" => "sys/fs/cgroup",
            some if some.split(',').any(|one| one == "memory") => "sys/fs/cgroup/memory",
            _ => continue,
        };
        let mount = root.join(mount);
        // Within a container the path may be that outside of it, of which only the mount itself is there.
        let inner = Path::new(path.trim_start_matches('/'));
        folders.extend(inner.ancestors().map(|part| mount.join(part)));
    }
    folders
}

/// Bytes that a control group leaves of its limit, of which pages of files count as free; `None` without a limit.
fn left_in(group: &Path) -> Option<u64> {
    let read = |file: &str| std::fs::read_to_string(group.join(file)).ok();
    let number = |names: [&str; 2]| {
        let text = names.into_iter().find_map(read)?;
        text.trim().parse::<u64>().ok()
    };
    let limit = number(["memory.max", "memory.limit_in_bytes"])?;
    let used = number(["memory.current", "memory.usage_in_bytes"])?;
    let stat = read("memory.stat").unwrap_or_default();
    let value = |key: &str| {
        let values = stat.lines().filter_map(|line| line.split_once(' '));
        values.into_iter().find(|(name, _)| *name == key)?.1.parse::<u64>().ok()
    };
    // The first version of the interface has the groups below in numbers of their own.
    let with_groups_below = |key: &str| value(&format!("total_{key}")).or_else(|| value(key));
    let of_files = ["inactive_file", "active_file"].into_iter().filter_map(with_groups_below);
    Some(limit.saturating_sub(used.saturating_sub(of_files.sum())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(files: &[(&str, &str)]) -> Option<u64> {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        free_below(folder.path())
    }

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   8000 kB\n");

    #[test]
    fn the_least_of_what_the_system_and_the_groups_leave_is_free() {
        let (v2, v1) = ("0::/a/b\n", "5:cpu:/x\n7:memory:/docker/1\n");
        let all = 8000 * 1024;
        assert_eq!(system(&[]), None);
        assert_eq!(system(&[MEMINFO]), Some(all));
        let group = ("proc/self/cgroup", v2);
        let unlimited = ("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(system(&[MEMINFO, group, unlimited]), Some(all));
        let above = [
            ("sys/fs/cgroup/a/memory.max", "5000000\n"),
            ("sys/fs/cgroup/a/memory.current", "4000000\n"),
            (
                "sys/fs/cgroup/a/memory.stat",
                "anon 1\ninactive_file 900000\nactive_file 600000\nfile 9\n",
            ),
        ];
        assert_eq!(system(&[&[MEMINFO, group, unlimited][..], &above].concat()), Some(2_500_000));
        // The path of the outside is not there, but the mount is.
        let inside = [
            ("proc/self/cgroup", v1),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "3500000"),
        ];
        assert_eq!(system(&[&[MEMINFO][..], &inside].concat()), Some(0));
        let stat =
            "active_file 5\ninactive_file 6\ntotal_inactive_file 700000\ntotal_active_file 8\n";
        let stat = ("sys/fs/cgroup/memory/memory.stat", stat);
        assert_eq!(system(&[&[MEMINFO, stat][..], &inside].concat()), Some(200_008));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_some_memory() {
        assert!(free_memory().is_some_and(|free| free > 0));
    }
}
