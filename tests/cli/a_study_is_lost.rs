//! `lapwing study`: the folder of a study, interruptions, and errors.

use std::collections::BTreeMap;
use std::path::Path;

use crate::a_json_form_changes::assert_documented;
use crate::support::{Ended, ended, json, lapwing};

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => _ = found.insert(name, std::fs::read(entry.path()).expect("a file")),
        }
    }
    found
}

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/studies");
    folder.join(name).display().to_string()
}

/// A study with that text.
fn study(folder: &Path, text: &str) -> String {
    let path = folder.join("s.toml");
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

#[test]
fn the_smallest_example_has_the_same_bytes_in_two_folders() {
    let scratch = tempfile::tempdir().expect("folder");
    let [one, other] = ["one", "other"].map(|name| scratch.path().join(name));
    let example = example("gpu_and_npu.toml");
    let run = |folder: &Path| -> Ended {
        let folder = folder.display().to_string();
        let ended = ended(lapwing(&["study", &example, "--out", &folder]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    };
    let (first, second) = (run(&one), run(&other));
    assert_eq!(first.stdout, second.stdout);
    assert!(first.stdout.contains("prefill_tokens_per_second"), "{first:?}");
    assert!(first.stderr.contains("run 1 of 45"), "progress is shown: {first:?}");
    let (one, other) = (files(&one), files(&other));
    assert!(one == other && one.len() >= 10, "{:?}", one.keys());
    assert!(one["index.html"].starts_with(b"<!doctype html>"));
    let csv = String::from_utf8_lossy(&one["prompt-length.csv"]).into_owned();
    assert_eq!(csv.lines().count(), 1 + 27, "{csv}");
}

#[test]
fn examples_are_studies_and_all_their_results_exist() {
    let scratch = tempfile::tempdir().expect("folder");
    for name in ["streams_and_servers.toml", "workers.toml"] {
        let folder = scratch.path().join(name).display().to_string();
        let found = json(&["study", &example(name), "--out", &folder, "--json"]);
        assert_eq!(found["failed"], 0, "{found}");
        let scenarios = found["scenarios"].as_array().expect("scenarios");
        assert_eq!(scenarios.len(), 3);
        for scenario in scenarios {
            let means = scenario["means"].as_array().expect("means");
            assert!(means.iter().all(|mean| mean["mean"].as_f64().is_some()), "{scenario}");
        }
    }
}

/// What `docs/agents.md` says of each rule.
#[test]
fn shapes_gain_most_in_the_study_of_retrieval_and_the_longest_chain_first_ends_drafts_sooner() {
    let scratch = tempfile::tempdir().expect("folder");
    let folder = scratch.path().join("out").display().to_string();
    let study = example("retrieval_on_a_phone.toml");
    let found = json(&["study", &study, "--out", &folder, "--json"]);
    assert_eq!(found["failed"], 0, "{found}");
    let mean = |scenario: usize, result: &str, values: [&str; 2]| {
        let means = found["scenarios"][scenario]["means"].as_array().expect("means");
        let is_meant = |mean: &&serde_json::Value| {
            mean["result"] == result && mean["values"] == serde_json::json!(values)
        };
        means.iter().find(is_meant).expect("a mean")["mean"].as_f64().expect("a time")
    };
    let time = |scenario, values| mean(scenario, "makespan_ms", values);
    let draft = |values| mean(0, "clients.draft.response_ms.mean", values);
    let best = time(0, ["on", "inf"]);
    assert!(time(1, ["on", "inf"]) > 2.0 * best, "{found}");
    assert!(draft(["off", "inf"]) > 1.1 * draft(["on", "inf"]), "{found}");
    assert!(time(0, ["off", "inf"]) > 0.95 * best, "the first draft costs little: {found}");
    assert!(time(0, ["on", "77"]) > best, "a limit costs: {found}");
}

#[test]
fn a_study_has_the_documented_fields() {
    let scratch = tempfile::tempdir().expect("folder");
    let text = "seeds = 2\n[[scenario]]\nname = \"a\"\nprompt = [8, 16]\nnoise.spread = 0.05\n";
    let path = study(scratch.path(), text);
    let out = scratch.path().join("out").display().to_string();
    assert_documented("study", &json(&["study", &path, "--out", &out, "--json"]), &[]);
}

#[test]
fn an_earlier_folder_stays_until_it_is_to_be_replaced() {
    let scratch = tempfile::tempdir().expect("folder");
    let path = study(scratch.path(), "[[scenario]]\nname = \"a\"\nprompt = [8, 16]\ndecode = 0\n");
    let out = scratch.path().join("out").display().to_string();
    let again = |more: &[&str]| ended(lapwing(&[&["study", &path, "--out", &out], more].concat()));
    assert_eq!(again(&[]).code, Some(0));
    let refused = again(&[]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--restart"), "{refused:?}");
    let ended_already = again(&["--resume"]);
    assert!(ended_already.code == Some(2), "{ended_already:?}");
    assert_eq!(again(&["--restart"]).code, Some(0));
    // As a run leaves it that was killed after its first line.
    let all = files(Path::new(&out));
    let line = "{\"scenario\":0,\"run\":0,\"numbers\":{},\"error\":\"killed\"}\n{\"scen";
    std::fs::write(Path::new(&out).join("unfinished.jsonl"), line).expect("a file");
    let refused = again(&[]);
    assert!(refused.stderr.contains("--resume"), "{refused:?}");
    let resumed = again(&["--resume"]);
    assert!(resumed.code == Some(0) && resumed.stderr.contains("1 of 2 runs"), "{resumed:?}");
    assert!(resumed.stderr.contains("killed"), "what has ended is kept: {resumed:?}");
    assert_eq!(again(&["--restart"]).code, Some(0));
    assert!(files(Path::new(&out)) == all);
}

#[test]
fn a_wrong_study_is_an_error_with_its_line() {
    let scratch = tempfile::tempdir().expect("folder");
    let path = study(scratch.path(), "[[scenario]]\nname = \"a\"\npromt = 8\n");
    let out = scratch.path().join("out");
    let wrong = ended(lapwing(&["study", &path, "--out", &out.display().to_string()]));
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    for says in ["s.toml, line 3", "'promt'", "'prompt'"] {
        assert!(wrong.stderr.contains(says), "{says}: {wrong:?}");
    }
    assert!(!out.exists(), "nothing is written");
    let missing = ended(lapwing(&["study", "nowhere.toml"]));
    assert!(missing.code == Some(1) && missing.stderr.contains("nowhere.toml"), "{missing:?}");
}

#[test]
fn a_scenario_without_a_run_that_ends_well_fails() {
    let scratch = tempfile::tempdir().expect("folder");
    let text =
        "[[scenario]]\nname = \"a\"\ndevice = \"npu\"\nstrategy = \"gpu-only\"\nprompt = [8, 16]\n";
    let out = scratch.path().join("out");
    let path = study(scratch.path(), text);
    let failed = ended(lapwing(&["study", &path, "--out", &out.display().to_string()]));
    assert!(failed.code == Some(1) && failed.stderr.contains("scenario 'a'"), "{failed:?}");
    assert!(out.join("a.csv").is_file(), "the errors of all runs are in the table");
}
