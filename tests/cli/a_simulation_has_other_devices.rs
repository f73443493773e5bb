//! `--device` of the commands that simulate: exactly the chosen devices compute, by every command and in its reports.

use serde_json::Value;

use crate::a_simulation_misleads::{number, simulate};
use crate::support::{ended, json, lapwing, model};

/// A model that takes a moment.
const MODEL: [&str; 2] = ["--shape", "layers=2,dim=1024,ffn=2816,heads=16,vocab=4096"];

/// Names of the devices of a run, and which of them had work.
fn devices(run: &Value) -> Vec<(String, bool)> {
    let devices = run["devices"].as_array().expect("devices").iter();
    let used = |device: &Value| device["runs"].as_u64().expect("a number") > 0;
    devices.map(|d| (d["name"].as_str().expect("a name").to_owned(), used(d))).collect()
}

#[test]
fn only_the_chosen_processors_of_a_soc_compute() {
    let run = |args: &[&str]| simulate(&[&MODEL[..], &["-p", "300", "-n", "2"], args].concat());
    let usual = run(&["--strategy", "chunk-graph"]);
    assert!(usual["device"].is_null(), "{usual}");
    assert_eq!(devices(&usual), [("gpu".to_owned(), true), ("npu".to_owned(), true)]);
    let phone = run(&["--device", "cpu+npu", "--strategy", "chunk-graph"]);
    assert_eq!(phone["device"], "cpu+npu");
    assert_eq!(devices(&phone), [("cpu".to_owned(), true), ("npu".to_owned(), true)]);
    let repeated = ["--device", "npu", "--device", "cpu", "--strategy", "chunk-graph"];
    assert_eq!(run(&repeated)["makespan_ms"], phone["makespan_ms"], "the order says nothing");
    let idle = run(&["--device", "cpu+gpu+npu", "--strategy", "gpu-only"]);
    let of = |name: &str, used| (name.to_owned(), used);
    assert_eq!(devices(&idle), [of("cpu", false), of("gpu", true), of("npu", false)]);
    let text = ended(lapwing(&[&["simulate", "--strategy", "gpu-only"], &MODEL[..]].concat()));
    assert!(text.stdout.contains("npu not used"), "{text:?}");
    let busy: f64 =
        phone["devices"].as_array().expect("devices").iter().map(|d| number(d, "busy_ms")).sum();
    assert!(busy > 0.0 && busy < 2.0 * number(&phone, "makespan_ms"), "{phone}");
}

#[test]
fn a_device_by_its_rates_computes_beside_them() {
    let fast = "dsp=throttled:kind=gpu,gflops=1e6,gbps=1e4,submit=0,idle-submit=0,sync=0";
    let args = ["--device", "gpu+npu", "--device", fast, "--strategy", "auto-place", "-n", "2"];
    let run = simulate(&[&MODEL[..], &args].concat());
    assert!(devices(&run).contains(&("dsp".to_owned(), true)), "{run}");
    assert!(run["energy_j"].is_null(), "its power is unknown: {run}");
}

#[test]
fn sweeps_and_what_ifs_vary_the_devices() {
    let over = ["--over", "device=gpu+npu,cpu+npu", "--over", "strategy=chunk-graph,gpu-only"];
    let sweep = [&["sweep", "-n", "1", "--json"], &over[..], &MODEL[..]].concat();
    let sweep = json(&sweep);
    let points = sweep["points"].as_array().expect("points");
    let names = |at: usize| {
        devices(&points[at]["run"]).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(
        (names(0), names(2)),
        (vec!["gpu".into(), "npu".into()], vec!["cpu".into(), "npu".into()])
    );
    let error = points[3]["error"].as_str().expect("no GPU is chosen");
    assert!(error.contains("needs a device of kind gpu"), "{error}");
    let args = ["what-if", "--strategy", "chunk-graph", "device=cpu+npu", "-n", "1", "--json"];
    let what_if = json(&[&args[..], &MODEL[..]].concat());
    assert_eq!(devices(&what_if["after"])[0].0, "cpu");
    assert!(number(&what_if, "change") != 0.0, "{what_if}");
}

#[test]
fn a_device_that_is_not_there_is_an_error_with_the_nearest_name() {
    for (device, says) in [
        ("gpuu+npu", "did you mean gpu?"),
        ("cpu+tpu", "one of gpu, npu, cpu"),
        ("npu+npu", "'npu' is given twice"),
        ("gpu=opencl", "must be throttled or systolic"),
    ] {
        let call = ended(lapwing(&["simulate", "--device", device]));
        assert_eq!((call.code, call.stdout.is_empty()), (Some(2), true), "{call:?}");
        assert!(call.stderr.contains("--device") && call.stderr.contains(says), "{call:?}");
    }
    let game = ["simulate", "--device", "cpu+npu", "--interference", "game"];
    let call = ended(lapwing(&[&game[..], &["--strategy", "chunk-graph"], &MODEL[..]].concat()));
    assert!(call.code != Some(0) && call.stderr.contains("interference"), "{call:?}");
}

#[test]
fn devices_of_a_machine_are_chosen_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("machine.toml").display().to_string();
    let call = ended(lapwing(&["calibrate", "--device", "phone", "-o", &file]));
    assert_eq!(call.code, Some(0), "{call:?}");
    let llama = model("llama.gguf");
    let base = ["--soc", &file, "--model", &llama, "-p", "40", "-n", "1"];
    let run = simulate(&[&base[..], &["--device", "cpu+npu", "--strategy", "pipe"]].concat());
    assert_eq!(devices(&run), [("cpu".to_owned(), true), ("npu".to_owned(), true)]);
    let wrong = [&["simulate"], &base[..], &["--device", "gpo"]].concat();
    let call = ended(lapwing(&wrong));
    assert!(call.stderr.contains("did you mean gpu?"), "{call:?}");
}
