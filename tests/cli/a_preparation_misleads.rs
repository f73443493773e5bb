//! `prepare` says what is prepared and what is not, a second one makes nothing, and a run says what is missing.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::a_prediction_misleads::{DEVICES, profile, straight, with_cache};
use crate::support::{Ended, ended, lapwing, model};

const OPENVINO: [&str; 4] =
    ["--device", "cpu=cores:threads=1", "--device", "npu=openvino:device=CPU"];

fn prepare(cache: &Path, devices: &[&str], more: &[&str]) -> Ended {
    let llama = model("llama.gguf");
    let lengths = ["prepare", "-m", &llama, "-p", "8,40", "--decode-rows", "2", "--seconds", "1"];
    with_cache(cache, &[&lengths[..], devices, more].concat())
}

fn run(cache: &Path, devices: &[&str]) -> Ended {
    let llama = model("llama.gguf");
    let prompt = "a".repeat(39);
    let args = ["run", "-m", &llama, "--raw", "--json", "--temp", "0", "-n", "8", &prompt];
    with_cache(cache, &[&args[..], devices].concat())
}

/// Whether OpenVINO is installed. If not, a line on stderr says so; where LAPWING_TEST is set, that is an error.
fn has_openvino() -> bool {
    let devices = ended(lapwing(&["devices", "--json"])).json();
    let found = devices["openvino"].as_array().is_some_and(|found| !found.is_empty());
    if !found {
        assert!(!crate::cases::needed(), "install it with: sh tests/openvino/install.sh FOLDER");
        _ = std::io::stderr().write_all(b"SKIPPED a test of OpenVINO: it is not installed\n");
    }
    found
}

/// Names of the kept graphs, with the times when they were written.
fn graphs(cache: &Path) -> BTreeMap<String, SystemTime> {
    let entries = std::fs::read_dir(cache.join("packed/graphs")).expect("a folder");
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let written = entry.metadata().and_then(|about| about.modified()).expect("a time");
        (entry.file_name().to_string_lossy().into_owned(), written)
    };
    entries.map(entry).collect()
}

#[test]
fn a_second_preparation_makes_nothing_and_stale_plans_are_not_used() {
    let cache = tempfile::tempdir().expect("a folder");
    let file = profile(cache.path(), straight);
    let devices = ["--device", DEVICES];
    let first = prepare(cache.path(), &devices, &["--json"]).json();
    assert_eq!(first["profile"], json!({ "file": file, "measured": false, "used": true }));
    assert_eq!(first["plans"]["prompts"], json!([8, 40]));
    let (routes, solved) = (&first["plans"]["routes"], &first["plans"]["solved"]);
    assert!(routes == solved && routes.as_u64() > Some(5), "{first}");
    assert_eq!(
        (&first["devices"][0]["device"], &first["was_there"]),
        (&json!("npu"), &json!(false))
    );
    // A device in software keeps no graphs.
    assert_eq!(first["devices"][0]["keeps"], false, "{first}");
    let second = prepare(cache.path(), &devices, &["--json"]).json();
    assert_eq!((&second["was_there"], &second["plans"]["solved"]), (&json!(true), &json!(0)));
    assert_eq!(&second["plans"]["routes"], routes);
    let text = prepare(cache.path(), &devices, &[]).stdout;
    assert!(text.contains("everything was there") && text.contains("cannot be kept"), "{text}");
    let answered = run(cache.path(), &devices);
    assert_eq!((answered.code, answered.stderr.lines().count()), (Some(0), 1), "{answered:?}");
    assert!(answered.stderr.contains("are emulated"), "{answered:?}");
    let plans = first["plans"]["file"].as_str().expect("a path");
    for damaged in ["{", ""] {
        std::fs::write(plans, damaged).expect("a file");
        let again = run(cache.path(), &devices);
        assert_eq!((again.code, &again.json()["ids"]), (Some(0), &answered.json()["ids"]));
        let said = ["the stored plans are not used", "solve them again with `lapwing prepare`"];
        assert!(said.iter().all(|said| again.stderr.contains(said)), "{again:?}");
    }
    prepare(cache.path(), &devices, &[]);
    // Another profile gives other plans.
    let text = std::fs::read_to_string(&file).expect("the profile");
    let mut changed: Value = serde_json::from_str(&text).expect("JSON");
    changed["copy_bytes_per_second"] = json!(1.5e9);
    std::fs::write(&file, changed.to_string()).expect("a file");
    let stale = run(cache.path(), &devices);
    assert!(stale.code == Some(0) && stale.stderr.contains("another profile"), "{stale:?}");
}

#[test]
fn a_preparation_without_an_npu_says_what_it_prepares() {
    let cache = tempfile::tempdir().expect("a folder");
    let first = prepare(cache.path(), &["-t", "1"], &[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let text = first.stdout;
    for part in ["profile: measured", "plans: ", "no NPU is among the devices", "profiles/"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let second = prepare(cache.path(), &["-t", "1"], &[]).stdout;
    assert!(second.contains("profile: was there") && second.contains("everything was there"));
    let wrong = with_cache(cache.path(), &["prepare", "-m", &model("llama.gguf"), "-p", "0"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn graphs_of_an_npu_are_prepared_once_and_a_run_compiles_none() {
    if !has_openvino() {
        return;
    }
    let (cache, other) = (tempfile::tempdir(), tempfile::tempdir());
    let (cache, other) = (cache.expect("a folder"), other.expect("a folder"));
    let strategy = ["--strategy", "chunk-graph"];
    let devices = [&OPENVINO[..], &strategy].concat();
    let cold = run(other.path(), &devices);
    for part in ["nothing was prepared for 'npu'", "lapwing prepare -m ", "--strategy chunk-graph"]
    {
        assert!(cold.stderr.contains(part), "{part}: {cold:?}");
    }
    let plan = |cache: &Path| {
        let llama = model("llama.gguf");
        let plan = ["plan", "-m", &llama, "-p", "40", "--json"];
        with_cache(cache, &[&plan[..], &devices].concat()).json()
    };
    let unprepared = plan(other.path());
    assert_eq!(unprepared["first_ms"], unprepared["cold_ms"], "{unprepared}");
    assert_eq!(unprepared["graphs"]["ready"], 0, "{unprepared}");
    assert!(unprepared["graphs"]["prepare_ms"].as_f64() > Some(0.0), "{unprepared}");
    let first = prepare(cache.path(), &devices, &["--json"]).json();
    let npu = &first["devices"][0];
    assert_eq!((&npu["keeps"], &npu["kept"]), (&json!(true), &npu["graphs"]), "{first}");
    assert!(npu["graphs"].as_u64() > Some(0), "{first}");
    let made = graphs(cache.path());
    let second = prepare(cache.path(), &devices, &["--json"]).json();
    assert_eq!(
        (&second["was_there"], &second["devices"][0]["prepared"]),
        (&json!(true), &json!(0))
    );
    // A short measurement may be too unreliable to plan with, which is noted.
    let warm = run(cache.path(), &devices);
    assert!(!warm.stderr.contains("nothing was prepared"), "{warm:?}");
    let planned = plan(cache.path());
    assert_eq!(planned["graphs"]["ready"], planned["graphs"]["needed"], "{planned}");
    assert_eq!(planned["first_ms"], planned["predicted_ms"], "{planned}");
    assert_eq!(warm.json()["ids"], cold.json()["ids"]);
    assert_eq!(graphs(cache.path()), made, "a graph was compiled again");
    for name in made.keys() {
        std::fs::write(cache.path().join("packed/graphs").join(name), "no graph").expect("a file");
    }
    let third = prepare(cache.path(), &devices, &["--json"]).json();
    let npu = &third["devices"][0];
    assert_eq!((&npu["prepared"], &npu["kept"]), (&npu["graphs"], &npu["graphs"]), "{third}");
}
