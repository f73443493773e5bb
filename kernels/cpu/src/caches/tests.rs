use super::*;

/// A folder as Linux lays it out: per core (level, type, size, sharers).
fn machine(cores: &[&[(&str, &str, &str, &str)]]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("cpufreq")).expect("a folder");
    for (cpu, caches) in cores.iter().enumerate() {
        for (index, (level, kind, size, sharers)) in caches.iter().enumerate() {
            let to = folder.path().join(format!("cpu{cpu}/cache/index{index}"));
            std::fs::create_dir_all(&to).expect("a folder");
            let files =
                [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", sharers)];
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
fn caches_are_read_from_sysfs() {
    let big = [
        ("1", "Data", "48K", "0"),
        ("1", "Instruction", "16K", "0"),
        ("2", "Unified", "2048K", "0"),
        ("3", "Unified", "32M", "0-7"),
    ];
    let small =
        [("1", "Data", "32K", "1"), ("2", "Unified", "2M", "1-4"), ("3", "Unified", "32768K", "")];
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
        ("no description", &[], unknown),
        ("no second level", &[&big[..1]], Caches { largest: Some(48 << 10), ..unknown }),
        ("no size", &[&[("1", "Data", "", "0"), ("2", "Unified", "x", "0")]], unknown),
        (
            "a size of zero",
            &[&[("1", "Data", "0K", "0"), ("2", "Unified", "1M", "0")]],
            Caches { largest: Some(1 << 20), ..unknown },
        ),
    ];
    for (what, cores, want) in cases {
        assert_eq!(Caches::below(machine(cores).path()), want, "{what}");
    }
}

#[test]
fn lists_and_sizes_are_parsed() {
    let cases = [("0", Some(1)), ("0-3,8", Some(5)), ("", None), ("3-1", None), ("0-x", None)];
    for (list, want) in cases {
        assert_eq!(listed(list), want, "{list}");
    }
    for (text, want) in [("512", Some(512)), ("32K", Some(32 << 10)), ("-1K", None)] {
        assert_eq!(bytes_of(text), want, "{text}");
    }
}
