use super::*;

/// A folder with these files.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, format!("{text}\n")).expect("a file");
    }
    folder
}

fn write(folder: &tempfile::TempDir, path: &str, text: &str) {
    std::fs::write(folder.path().join(path), text).expect("a file");
}

fn meter(folder: &tempfile::TempDir) -> EnergyMeter {
    EnergyMeter::of(&folder.path().join("cap"), &folder.path().join("supply"))
}

fn domains(energy: &Energy) -> Vec<(&str, f64)> {
    let rounded = |joules: f64| (joules * 1e6).round() / 1e6;
    energy.domains.iter().map(|domain| (&*domain.name, rounded(domain.joules))).collect()
}

#[test]
fn counters_of_packages_and_memory_are_added_and_parts_are_not() {
    let folder = tree(&[
        ("cap/intel-rapl/enabled", "1"),
        ("cap/intel-rapl:0/name", "package-0"),
        ("cap/intel-rapl:0/energy_uj", "1000000"),
        ("cap/intel-rapl:0/max_energy_range_uj", "5000000"),
        ("cap/intel-rapl:0:0/name", "core"),
        ("cap/intel-rapl:0:0/energy_uj", "400000"),
        ("cap/intel-rapl:0:1/name", "dram"),
        ("cap/intel-rapl:0:1/energy_uj", "200000"),
        ("cap/intel-rapl-mmio:0/name", "package-0"),
        ("cap/intel-rapl-mmio:0/energy_uj", "1000000"),
    ]);
    let meter = meter(&folder);
    write(&folder, "cap/intel-rapl:0/energy_uj", "3500000");
    write(&folder, "cap/intel-rapl:0:0/energy_uj", "900000");
    write(&folder, "cap/intel-rapl:0:1/energy_uj", "700000");
    let energy = meter.stop(Duration::from_secs(1));
    assert_eq!(domains(&energy), [("package-0", 2.5), ("dram", 0.5)]);
    assert_eq!(energy.joules(), Some(3.0));
    assert!(energy.unavailable.is_empty(), "{energy:?}");

    write(&folder, "cap/intel-rapl:0/energy_uj", "250000");
    assert_eq!(domains(&meter.stop(Duration::ZERO))[0], ("package-0", 4.25), "wrapped around");
}

#[test]
fn the_counter_of_the_board_includes_the_others() {
    let folder = tree(&[
        ("cap/intel-rapl:0/name", "package-0"),
        ("cap/intel-rapl:0/energy_uj", "0"),
        ("cap/intel-rapl:1/name", "psys"),
        ("cap/intel-rapl:1/energy_uj", "0"),
    ]);
    let meter = meter(&folder);
    write(&folder, "cap/intel-rapl:0/energy_uj", "1000000");
    write(&folder, "cap/intel-rapl:1/energy_uj", "9000000");
    assert_eq!(meter.stop(Duration::from_secs(1)).joules(), Some(9.0));
}

#[test]
fn a_battery_counts_only_while_it_supplies_the_machine() {
    type Row<'a> = (&'a [(&'a str, &'a str)], Option<f64>);
    let rows: [Row<'_>; 5] = [
        (&[("status", "Discharging"), ("power_now", "6000000")], Some(12.0)),
        (
            &[("status", "Discharging"), ("current_now", "2000000"), ("voltage_now", "4000000")],
            Some(16.0),
        ),
        (&[("status", "Charging"), ("power_now", "6000000")], None),
        (&[("status", "Discharging"), ("scope", "Device"), ("power_now", "6000000")], None),
        (&[("status", "Discharging"), ("power_now", "many")], None),
    ];
    for (files, joules) in rows {
        let folder = tree(&[("supply/BAT0/type", "Battery"), ("supply/AC/type", "Mains")]);
        files.iter().for_each(|(file, text)| write(&folder, &format!("supply/BAT0/{file}"), text));
        let energy = meter(&folder).stop(Duration::from_secs(2));
        assert_eq!(energy.joules(), joules, "{files:?}");
        assert_eq!(energy.unavailable.is_empty(), joules.is_some(), "{energy:?}");
    }
}

#[test]
fn a_system_without_sources_says_so_and_an_unreadable_one_is_named() {
    let nothing = meter(&tree(&[])).stop(Duration::from_secs(1));
    assert_eq!(nothing.joules(), None);
    assert!(nothing.unavailable[0].contains("no energy counter"), "{nothing:?}");

    let folder = tree(&[("cap/a:0/name", "package-0"), ("cap/a:0/energy_uj", "-")]);
    let unreadable = meter(&folder).stop(Duration::from_secs(1));
    assert_eq!(unreadable.joules(), None);
    assert!(unreadable.unavailable[0].contains("energy_uj"), "{unreadable:?}");

    let folder = tree(&[("cap/a:0/name", "package-0"), ("cap/a:0/energy_uj", "7")]);
    let meter = meter(&folder);
    std::fs::remove_file(folder.path().join("cap/a:0/energy_uj")).expect("removed");
    let gone = meter.stop(Duration::from_secs(1));
    assert!(gone.domains.is_empty() && gone.unavailable.len() == 1, "{gone:?}");
}
