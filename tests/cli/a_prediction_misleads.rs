//! Predicted times: a plain CPU has one, and an unreliable profile does not rule them.

use std::path::Path;

use serde_json::Value;

use crate::support::{Ended, ended, json, lapwing, model};

pub(crate) const DEVICES: &str =
    "gpu=throttled:gflops=10,gbps=2+npu=systolic:gflops=20,gbps=2,sizes=1/32/64";

pub(crate) fn with_cache(cache: &Path, args: &[&str]) -> Ended {
    let mut command = lapwing(args);
    command.env("LAPWING_CACHE", cache);
    ended(command)
}

/// Measures a profile and changes what is stored.
pub(crate) fn profile(cache: &Path, change: impl Fn(&mut Value)) -> String {
    let llama = model("llama.gguf");
    let measure = ["profile", "-m", &llama, "--device", DEVICES, "--seconds", "2", "-r", "1"];
    let report = with_cache(cache, &[&measure[..], &["--json"]].concat()).json();
    let file = report["file"].as_str().expect("a path").to_owned();
    let text = std::fs::read_to_string(&file).expect("the profile");
    let mut profile: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut profile);
    std::fs::write(&file, profile.to_string()).expect("write");
    file
}

/// Times that follow a line, so that points left out of the fit are predicted well.
pub(crate) fn straight(profile: &mut Value) {
    for device in profile["devices"].as_array_mut().expect("devices") {
        let samples = device["samples"].as_array_mut().expect("samples");
        for sample in samples.iter_mut() {
            let ns = 10_000 + 100 * sample["m"].as_u64().expect("rows");
            for key in ["median_ns", "min_ns", "max_ns"] {
                sample["time"][key] = ns.into();
            }
        }
        device["asked"] = samples.len().into();
    }
}

/// Four of many points.
fn cut_short(profile: &mut Value) {
    straight(profile);
    for device in profile["devices"].as_array_mut().expect("devices") {
        device["samples"].as_array_mut().expect("samples").truncate(2);
    }
}

#[test]
fn a_profile_of_a_few_points_is_not_used_and_a_note_says_so() {
    let llama = model("llama.gguf");
    let plan = ["plan", "-m", &llama, "--device", DEVICES, "-p", "64", "--json"];
    for (change, used) in [(straight as fn(&mut Value), true), (cut_short, false)] {
        let cache = tempfile::tempdir().expect("a folder");
        profile(cache.path(), change);
        let planned = with_cache(cache.path(), &plan);
        let source = planned.json()["source"].as_str().expect("a text").to_owned();
        assert_eq!(source.starts_with("measured on"), used, "{source}");
        assert_eq!(planned.stderr.contains("profile is not used: only 4 of"), !used, "{planned:?}");
        // Another line says that the devices are emulated.
        let lines = planned.stderr.lines().count();
        assert_eq!(lines, if used { 1 } else { 2 }, "{planned:?}");
    }
}

#[test]
fn a_damaged_profile_does_not_stop_a_run() {
    let cache = tempfile::tempdir().expect("a folder");
    let file = profile(cache.path(), |_| ());
    std::fs::write(&file, "{").expect("write");
    let llama = model("llama.gguf");
    let run = ["run", "-m", &llama, "--device", DEVICES, "--raw", "-n", "2", "ab"];
    let answered = with_cache(cache.path(), &run);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(answered.stderr.contains("the stored profile is not used"), "{answered:?}");
}

#[test]
fn stored_profiles_can_be_listed_and_removed() {
    let cache = tempfile::tempdir().expect("a folder");
    let file = profile(cache.path(), cut_short);
    let list = || with_cache(cache.path(), &["profile", "--list", "--json"]).json();
    let listed = list();
    let [stored] = &listed["profiles"].as_array().expect("profiles")[..] else {
        panic!("{listed}");
    };
    assert_eq!(stored["points"], 4, "{stored}");
    assert!(stored["asked"].as_u64() > Some(4), "{stored}");
    let name = stored["name"].as_str().expect("a name");
    assert!(file.ends_with(&format!("{name}.json")));
    let text = with_cache(cache.path(), &["profile", "--list"]).stdout;
    assert!(text.contains(name) && text.contains("4 of"), "{text}");
    let wrong = with_cache(cache.path(), &["profile", "--remove", "another"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(Path::new(&file).exists() && wrong.stderr.contains("--list"), "{wrong:?}");
    let removed = with_cache(cache.path(), &["profile", "--remove", name, "--json"]).json();
    assert_eq!(removed["removed"][0], name);
    assert!(!Path::new(&file).exists());
    assert_eq!(list()["profiles"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_plain_cpu_has_a_predicted_time() {
    let llama = model("llama.gguf");
    let plan = json(&["plan", "-m", &llama, "-p", "64", "-t", "1", "--json"]);
    let ms = plan["predicted_ms"].as_f64().expect("a time");
    assert!(ms > 0.0, "{plan}");
    assert!(
        plan["source"].as_str().is_some_and(|source| source.contains("timed briefly")),
        "{plan}"
    );
    // The tiny model takes well below a second, even on a slow and busy machine.
    assert!(ms < 2000.0, "{ms} ms");
}

#[test]
fn a_plain_cpu_can_be_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cpu.toml").display().to_string();
    let made = ended(lapwing(&["calibrate", "--device", "cpu=cores:threads=1", "-o", &file]));
    assert_eq!(made.code, Some(0), "{made:?}");
    let text = std::fs::read_to_string(&file).expect("a preset");
    assert!(text.contains("roofline of 1 thread:"), "{text}");
    let llama = model("llama.gguf");
    let simulate = ["simulate", "--soc", &file, "--model", &llama, "--json"];
    let run = json(&[&simulate[..], &["--strategy", "cpu-only", "-p", "64"]].concat());
    assert!(run["prefill_ms"].as_f64() > Some(0.0), "{run}");
}
