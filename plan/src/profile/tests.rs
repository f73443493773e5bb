//! Which profiles are accepted.

use super::*;
use crate::shape::OpShape;

fn profile() -> Profile {
    let time = Spread { median_ns: 5, min_ns: 4, max_ns: 9, runs: 3 };
    let (op, n, k) = ("add".into(), 4, 0);
    let shape =
        OpShape { op, n, k, dtype: None, window: None, mask: None, swapped: false, experts: None };
    let device = DeviceProfile {
        name: "cpu".into(),
        kind: "cpu".into(),
        description: "2 threads".into(),
        submit_idle_ns: 1,
        submit_queued_ns: 1,
        crossing_ns: 0,
        convert_ns_per_byte: 0.0,
        prepares: vec![PrepareSample { rows: 32, weights: 64, ns: 7 }],
        asked: 1,
        samples: vec![Sample { shape, m: 1, context: 0, time }],
    };
    let machine = Machine { cpu: "a".into(), cores: 2, isa: "avx2".into(), os: "linux".into() };
    Profile {
        version: VERSION,
        program: "1.0".into(),
        machine,
        model: "m".into(),
        chunk_rows: 512,
        devices: vec![device],
        sync: time,
        copy_bytes_per_second: 1e9,
    }
}

fn load(text: &str) -> Result<Profile, ProfileError> {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("lapwing-profile-{}-{number}.json", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("a file");
    let loaded = Profile::load(&path);
    std::fs::remove_file(&path).expect("is there");
    loaded
}

#[test]
fn a_saved_profile_loads_unchanged() {
    let text = serde_json::to_string(&profile()).expect("text");
    assert_eq!(load(&text).expect("a profile"), profile());
}

#[test]
fn the_profile_in_a_report_loads_and_its_fields_are_named_from_the_report() {
    let report = |inner: &str| format!("{{\"lapwing_report\":1,\"profile\":{inner}}}");
    let text = serde_json::to_string(&profile()).expect("text");
    assert_eq!(load(&report(&text)).expect("a profile"), profile());
    let wrong = report(&text.replace("\"cores\":2", "\"cores\":\"two\""));
    let error = load(&wrong).expect_err("no number").to_string();
    assert!(error.contains("'profile.machine.cores'"), "{error}");
    assert!(matches!(load(&report("null")), Err(ProfileError::NotInReport { .. })));
    assert!(matches!(load("{\"lapwing_report\":1}"), Err(ProfileError::NotInReport { .. })));
    let version = load(&report(&text.replace("\"version\":2", "\"version\":3")));
    assert!(matches!(version, Err(ProfileError::Version { found: 3, .. })), "{version:?}");
}

#[test]
fn an_invalid_file_is_refused_with_the_field_named() {
    let text = serde_json::to_string(&profile()).expect("text");
    let cases = [
        ("\"cores\":2", "\"cores\":\"two\"", "machine.cores"),
        ("\"m\":1", "\"m\":-1", "devices[0].samples[0].m"),
        ("\"m\":1", "\"m\":0", "devices[0].samples[0].m"),
        ("\"min_ns\":4", "\"min_ns\":7", "time"),
        ("\"kind\":\"cpu\"", "\"kind\":\"tpu\"", "devices[0].kind"),
        ("1000000000.0", "0.0", "copy_bytes_per_second"),
        ("1000000000.0", "1e-300", "copy_bytes_per_second"),
        ("1000000000.0", "1e300", "copy_bytes_per_second"),
        ("\"m\":1", "\"m\":18446744073709551615", "devices[0].samples[0].m"),
        ("\"rows\":32", "\"rows\":18446744073709551615", "devices[0].prepares[0].rows"),
        ("\"convert_ns_per_byte\":0.0", "\"convert_ns_per_byte\":-1.0", "convert_ns_per_byte"),
        ("\"n\":4", "\"n\":18446744073709551615", "devices[0].samples[0].shape.n"),
        ("\"k\":0", "\"k\":16777217", "devices[0].samples[0].shape.k"),
        ("\"context\":0", "\"context\":18446744073709551615", "devices[0].samples[0].context"),
        ("\"max_ns\":9", "\"max_ns\":18446744073709551615", "devices[0].samples[0].time.max_ns"),
        ("\"submit_idle_ns\":1", "\"submit_idle_ns\":3600000000001", "devices[0].submit_idle_ns"),
        ("\"version\":2", "\"version\":99", "version is 99"),
        ("\"model\":\"m\",", "", "model"),
        ("\"asked\":1", "\"asked\":0", "devices[0].asked"),
    ];
    for (old, new, field) in cases {
        assert!(text.contains(old), "{old} in {text}");
        let error = load(&text.replacen(old, new, 1)).expect_err(new).to_string();
        assert!(error.contains(field), "{new}: {error}");
        assert!(error.contains("lapwing-profile-"), "the file is not named: {error}");
    }
    assert!(load("").is_err() && load("[]").is_err());
}

#[test]
fn a_profile_of_another_machine_or_device_is_refused() {
    let here = |cpu: &str, what: &str| Identity {
        program: "1.0".into(),
        chunk_rows: 512,
        machine: Machine { cpu: cpu.into(), ..profile().machine },
        model: "m".into(),
        devices: vec![("cpu".into(), what.into())],
    };
    let same = here("a", "2 threads");
    profile().check_identity(&same).expect("is the same");
    for (other, field) in [(here("b", "2 threads"), "cpu"), (here("a", "4 threads"), "devices")] {
        let error = profile().check_identity(&other).expect_err(field).to_string();
        assert!(error.contains(field), "{error}");
        assert_ne!(other.file_name(), same.file_name());
    }
}

#[test]
fn a_profile_of_another_version_or_chunk_size_is_refused() {
    let Profile { program, machine, model, chunk_rows, .. } = profile();
    let devices = vec![("cpu".to_owned(), "2 threads".to_owned())];
    let same = Identity { program, machine, model, chunk_rows, devices };
    profile().check_identity(&same).expect("is the same");
    let newer = Identity { program: "1.1".into(), ..same.clone() };
    let longer = Identity { chunk_rows: 1024, ..same.clone() };
    // A stale profile has the same file name; a profile for another chunk size has another.
    assert_eq!(newer.file_name(), same.file_name());
    assert_ne!(longer.file_name(), same.file_name());
    for (other, field) in [(newer, "program"), (longer, "chunk_rows")] {
        let error = profile().check_identity(&other).expect_err(field).to_string();
        assert!(error.contains(field) && error.contains("measure again"), "{error}");
    }
}
