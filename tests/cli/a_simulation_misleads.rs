//! Simulated runs are repeatable, consistent, and rejected when they are impossible.

use serde_json::Value;

use crate::cases::cases;
use crate::support::{ended, json, lapwing};

pub(crate) fn simulate(args: &[&str]) -> Value {
    json(&[&["simulate", "--json"], args].concat())
}

pub(crate) fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} of {value}"))
}

#[test]
fn two_runs_print_the_same_bytes() {
    for args in [
        &["reproduce", "--json"][..],
        &["reproduce"],
        &["simulate", "--json", "--set", "noise.spread=0.05", "--seed", "7"],
        &["sweep", "--over", "prompt=64:512:64", "--over", "strategy=pipe,tensor-level"],
        &["sensitivity"],
    ]
    .into_iter()
    .take(cases(4, 5))
    {
        let (first, second) = (ended(lapwing(args)), ended(lapwing(args)));
        assert_eq!((first.code, &first.stdout), (Some(0), &second.stdout), "{args:?}");
    }
}

#[test]
fn a_missed_check_fails() {
    let found = json(&["reproduce", "--json"]);
    assert_eq!(found["ok"], true, "{found}");
    let rows = found["rows"].as_array().expect("rows");
    let checks: Vec<&Value> = rows.iter().filter(|row| row["role"] == "check").collect();
    assert_eq!(checks.len(), 7);
    for row in rows {
        let (paper, model) = (number(row, "paper"), number(row, "model"));
        assert!((model / paper - 1.0 - number(row, "error")).abs() < 1e-9, "{row}");
    }
    assert!(checks.iter().all(|row| number(row, "error").abs() <= 0.1), "{checks:?}");
    let text = ended(lapwing(&["reproduce"])).stdout;
    let held = found["held_back"].as_array().expect("rows").len();
    assert!(text.contains(&format!("{held} published numbers are held back")), "{text}");
    assert_eq!(found["decisions"].as_array().map(Vec::len), Some(9));
    // Other processors miss the checks, and the exit code shows it.
    let other = ended(lapwing(&["reproduce", "prefill", "--soc", "fast-gpu"]));
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.stderr.contains("prefill-gpu-256"), "{other:?}");
    assert!(other.stdout.contains("MISSED"), "{other:?}");
}

#[test]
fn every_option_of_simulate_has_an_effect() {
    let base = simulate(&["-p", "300"]);
    assert_eq!((&base["soc"], &base["prompt"]), (&"sd8gen3".into(), &300.into()));
    let changes = [
        &["--soc", "fast-gpu"][..],
        &["--model", "llama-3.2-3b"],
        &["-p", "301"],
        &["-n", "4"],
        &["--strategy", "pipe"],
        &["--fast-sync", "off"],
        &["--interference", "game"],
        &["--verify", "4"],
        &["--set", "npu.rate=2x"],
        &["--set", "noise.spread=0.05", "--seed", "3"],
    ];
    for change in changes {
        let options = [&["-p", "300"][..], change].concat();
        let options = if change[0] == "-p" { change.to_vec() } else { options };
        let other = simulate(&options);
        assert_ne!(other["makespan_ms"], base["makespan_ms"], "{change:?}");
    }
    let swapped = |swap| simulate(&["--strategy", "npu-padding", "--order-swap", swap]);
    assert!(number(&swapped("off"), "prefill_ms") > 2.0 * number(&swapped("on"), "prefill_ms"));
    for strategy in ["chunked", "pipe", "tensor-level"] {
        let options = ["--strategy", strategy, "-p", "512"];
        let run =
            |rows| simulate(&[&options[..], &["--chunk", rows]].concat())["prefill_ms"].clone();
        assert_ne!(run("128"), run("256"), "{strategy}");
    }
    let online = ["--strategy", "online-prepare", "-p", "300"];
    let steps = simulate(&[&online[..], &["--stepped-preparation", "on"]].concat());
    assert!(number(&steps, "preparation_ms") > number(&simulate(&online), "preparation_ms"));
}

#[test]
fn results_of_a_run_are_consistent() {
    for (verify, rows) in [("1", 9.0), ("4", 36.0)] {
        let run = simulate(&["-p", "300", "-n", "9", "--verify", verify]);
        let of = |field: &str| number(&run, field);
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{a} {b} {run}");
        near(of("prefill_tokens_per_second"), 300.0 / of("prefill_ms") * 1e3);
        near(of("decode_tokens_per_second"), rows / of("decode_ms") * 1e3);
        near(of("makespan_ms"), of("prefill_ms") + of("decode_ms"));
        near(of("energy_j"), of("prefill_j") + of("decode_j"));
        near(of("power_w"), of("energy_j") / of("makespan_ms") * 1e3);
        assert!(of("lower_bound_ms") <= of("makespan_ms"), "{run}");
    }
    // Verification does not change the prompt; a step with more rows takes longer.
    let verify = |rows| simulate(&["-p", "300", "-n", "9", "--verify", rows]);
    let (one, eight) = (verify("1"), verify("8"));
    for field in ["prefill_ms", "prefill_j", "prefill_w", "prefill_tokens_per_second"] {
        assert_eq!(one[field], eight[field], "{field}");
    }
    let ms = |run| number(run, "decode_ms");
    assert!(ms(&eight) > ms(&one) && ms(&eight) < 8.0 * ms(&one), "{one} {eight}");
    let none = simulate(&["-n", "0"]);
    assert!(none["decode_ms"].is_null() && none["decode_tokens_per_second"].is_null());
}

#[test]
fn simulated_timelines_can_be_opened_and_compared() {
    let folder = tempfile::tempdir().expect("folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (fast, slow) = (path("fast.lwt"), path("slow.lwt"));
    let base = ["-p", "64", "-n", "1"];
    let run = simulate(&[&base[..], &["--trace", &fast]].concat());
    simulate(&[&base[..], &["--fast-sync", "off", "--trace", &slow]].concat());
    let one = json(&["timeline", "--json", &fast]);
    assert_eq!(
        (&one["meta"]["clock"], &one["meta"]["soc"]),
        (&"virtual".into(), &"sd8gen3".into())
    );
    assert_eq!(one["idle_unattributed_ns"], 0);
    let ms = number(&one, "makespan_ns") / 1e6;
    assert!((ms / number(&run, "makespan_ms") - 1.0).abs() < 1e-3, "{ms} {run}");
    let both = json(&["timeline", "--json", &fast, &slow]);
    assert!(number(&both["diff"], "delta_ns") > 0.0, "{}", both["diff"]);
}

#[test]
fn a_change_shows_on_the_critical_path() {
    let found = json(&["what-if", "--json", "-n", "2", "npu.rate=2x", "sync.fast=0"]);
    let delta = number(&found["after"], "makespan_ms") - number(&found["before"], "makespan_ms");
    assert!(delta < 0.0 && number(&found, "change") < 0.0, "{found}");
    let moved = found["moved"].as_array().expect("steps");
    let sum: f64 = moved.iter().map(|step| number(step, "delta_ns")).sum();
    assert!((sum / 1e6 - delta).abs() < 1e-3, "{sum} {delta}");
}

#[test]
fn invalid_scenarios_are_rejected() {
    let wrong = [
        (&["simulate", "--soc", "sd9"][..], "sd8gen3"),
        (&["simulate", "--strategy", "fastest"], "tensor-level"),
        (&["simulate", "--policy", "best"], "one of fcfs"),
        (&["simulate", "--fast-sync", "maybe"], "on or off"),
        (&["simulate", "-p", "0"], "at least 1"),
        (&["simulate", "--interference", "film"], "none or game"),
        (&["simulate", "--set", "npu.rate"], "KEY=VALUE"),
        (&["simulate", "--set", "npu.rat=1"], "npu.rate"),
        (&["simulate", "--set", "npu.rate=0"], "0.000001 or more"),
        (&["simulate", "--set", "npu.rate=50%"], "signed change"),
        (&["simulate", "--set", "npu.rate=2,npu.rate=3"], "twice"),
        (&["simulate", "--verify", "65"], "64"),
        (&["reproduce", "fig99"], "lengths (fig14)"),
        (&["sweep", "--over", "prompt=8", "--over", "prompt=9"], "twice"),
        (&["sweep", "--over", "prompt=8", "-n", "0", "--figure", "decode_w"], "-n"),
        (&["sweep", "--over", "prompt=8", "--figure", "frames_per_second"], "game"),
        (&["calibrate", "--device", "phone", "--strategy", "pipe"], "--strategy"),
        (&["calibrate", "--device", "phone", "-p", "0"], "at least 1"),
        (&["sweep"], "--over"),
        (&["sweep", "--over", "prompt=9:1"], "ascend"),
        (&["sweep", "--over", "prompt=64", "--figure", "beauty"], "prefill_ms"),
        (&["sweep", "--over", "strategy=pipe", "--plot", "x.svg"], "numbers"),
        (&["sweep", "--over", "gpu.rate=1,2x", "--plot", "x.svg"], "numbers"),
        (&["sweep", "--over", "strategy=pipe", "--against", "prompt=64"], "strategy"),
        (&["sweep", "--over", "strategy=pipe", "--against", "strategy=auto"], "pipe"),
        (&["what-if", "faster"], "KEY=VALUE"),
        (&["sensitivity", "--step", "2"], "0.5"),
    ];
    for (args, says) in wrong {
        let ended = ended(lapwing(args));
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?} {ended:?}");
        assert!(ended.stderr.contains(says), "{args:?} {ended:?}");
    }
    let failed = [
        (&["simulate", "--model", "llama-9"][..], "llama-3-8b"),
        (&["sweep", "--over", "model=llama-3-8b,llama-9"], "llama-9"),
        (&["what-if", "model=llama-9"], "llama-9"),
        (&["simulate", "--soc", "nowhere.toml"], "nowhere.toml"),
        (&["fit", "--pins", "nowhere.toml"], "nowhere.toml"),
        (&["simulate", "--trace", "/nowhere/x.lwt"], "/nowhere"),
    ];
    for (args, says) in failed {
        let ended = ended(lapwing(args));
        assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{args:?} {ended:?}");
        assert!(ended.stderr.contains(says), "{args:?} {ended:?}");
    }
}

#[test]
fn a_setting_without_effect_is_noted() {
    let notes = |args: &[&str]| ended(lapwing(&[&["simulate"], args].concat())).stderr;
    assert_eq!(notes(&[]), "");
    assert!(notes(&["--order-swap", "off"]).contains("has no effect on tensor-level"));
    assert_eq!(notes(&["--order-swap", "off", "--strategy", "pipe"]), "");
    assert!(notes(&["--moment", "off"]).contains("has no effect on tensor-level"));
    assert_eq!(notes(&["--moment", "off", "--strategy", "auto"]), "");
    assert!(notes(&["-p", "9000", "-n", "0"]).contains("8192"));
}

#[test]
fn the_soc_can_be_changed_like_a_setting() {
    let swept =
        json(&["sweep", "--over", "soc=sd8gen3,fast-gpu", "--set", "npu.rate=2x", "--json"]);
    let what = json(&["what-if", "soc=fast-gpu", "--set", "npu.rate=2x", "--json"]);
    for (at, soc) in ["sd8gen3", "fast-gpu"].into_iter().enumerate() {
        let alone = simulate(&["--soc", soc, "--set", "npu.rate=2x"]);
        assert_eq!(swept["points"][at]["run"]["makespan_ms"], alone["makespan_ms"], "{soc}");
        assert_eq!(what[["before", "after"][at]]["makespan_ms"], alone["makespan_ms"], "{soc}");
    }
}

#[test]
fn stated_numbers_that_disagree_are_marked() {
    let found = ended(lapwing(&["reproduce", "fig19"]));
    let decode = found.stdout.lines().find(|line| line.contains("Hetero-tensor, decode"));
    assert!(decode.is_some_and(|line| line.contains("disagrees")), "{found:?}");
    let layer = found.stdout.lines().find(|line| line.contains("Hetero-layer, decode"));
    assert!(layer.is_some_and(|line| !line.contains("disagrees")), "{found:?}");
    assert!(found.stdout.contains("the paper refutes φ = 1"), "{found:?}");
}

#[test]
fn a_printed_soc_can_be_read_again() {
    let folder = tempfile::tempdir().expect("folder");
    let printed = ended(lapwing(&["simulate", "--show-soc", "--set", "npu.rate=2x"]));
    let path = folder.path().join("twice.toml");
    std::fs::write(&path, &printed.stdout).expect("write");
    let read = simulate(&["--soc", &path.display().to_string()]);
    let set = simulate(&["--set", "npu.rate=2x"]);
    assert_eq!(read["makespan_ms"], set["makespan_ms"]);
}

#[test]
fn any_shape_is_simulated() {
    let shape = "layers=2,dim=512,ffn=1024,heads=8,kv-heads=4,vocab=1000";
    let given = simulate(&["--shape", shape, "--decode", "4"]);
    let more_bits = simulate(&["--shape", &format!("{shape},bits=8"), "--decode", "4"]);
    assert_eq!(given["model"], shape);
    assert!(number(&more_bits, "decode_ms") > number(&given, "decode_ms"));
    let wrong = ended(lapwing(&["simulate", "--shape", "layers=2,dim=512"]));
    assert!(wrong.code == Some(1) && wrong.stderr.contains("ffn is missing"), "{wrong:?}");
}

#[test]
fn a_soc_with_a_base_has_only_the_numbers_that_differ() {
    let docs = include_str!("../../docs/simulation.md");
    let (_, rest) = docs.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("my.toml").display().to_string();
    std::fs::write(&path, example).expect("a file");
    let printed = ended(lapwing(&["simulate", "--soc", &path, "--show-soc"]));
    assert!(printed.stdout.contains("name = \"sd8gen3, changed\""), "{printed:?}");
    let options = ["-p", "64", "-n", "2"];
    let from_file = simulate(&[&["--soc", &path][..], &options].concat());
    let set = simulate(&[&["--set", "gpu.bandwidth=50"][..], &options].concat());
    assert_eq!(from_file["decode_ms"], set["decode_ms"]);
    std::fs::write(&path, example.replace("base = \"sd8gen3\"", "")).expect("a file");
    let nameless = ended(lapwing(&["simulate", "--soc", &path]));
    assert!(nameless.stderr.contains("without a base, give `name` and `about`"), "{nameless:?}");
}

#[test]
fn published_numbers_are_written_to_files() {
    let folder = tempfile::tempdir().expect("folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (page, csv) = (path("page.html"), path("numbers.csv"));
    let run = ended(lapwing(&["reproduce", "prefill", "--html", &page, "--csv", &csv]));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("the form of the models was chosen"), "{run:?}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("<svg") && page.contains("the form of the models was chosen"));
    let csv = std::fs::read_to_string(csv).expect("a table");
    assert!(csv.contains("prefill-gpu-256,prefill,"), "{csv}");
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn a_fit_is_written_to_a_file() {
    let folder = tempfile::tempdir().expect("folder");
    let toml = folder.path().join("fitted.toml").display().to_string();
    let fit = json(&["fit", "-o", &toml, "--json"]);
    let text = ended(lapwing(&["simulate", "--soc", &toml, "--show-soc"])).stdout;
    let parameters = fit["parameters"].as_array().expect("parameters");
    let moved = parameters.iter().find(|p| p["key"] == "gpu.bandwidth").expect("it is pinned");
    assert!(text.contains(&moved["after"].to_string()), "{moved} in {text}");
}
