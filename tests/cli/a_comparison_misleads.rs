//! `bench` with several strategies: its table, JSON and page agree with each other and with the runs.

use serde_json::Value;

use crate::support::{ended, json, lapwing, model};

/// Devices fast enough never to be waited for: these tests check reports, not times.
const DEVICES: &str = "cpu+gpu=throttled:gflops=1e9,gbps=1e9,submit=0,idle-submit=0,sync=0\
    +npu=systolic:gflops=1e9,gbps=1e9,submit=0,idle-submit=0,sync=0,prepare=0,prepare-gweight=0";

fn compare(args: &[&str]) -> Vec<String> {
    let model = model("llama.gguf");
    let base = ["bench", "-m", &model, "--device", DEVICES, "-r", "2", "-n", "3"];
    [&base, args].concat().into_iter().map(str::to_owned).collect()
}

fn compared(args: &[&str]) -> Value {
    let args = compare(&[args, &["--json"]].concat());
    json(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn every_strategy_and_length_is_reported() {
    let folder = tempfile::tempdir().expect("folder");
    let page = folder.path().join("page.html").display().to_string();
    let found = compared(&["--strategy", "all", "-p", "31,64", "--html", &page]);
    let html = std::fs::read_to_string(&page).expect("the page");
    let lengths = found["lengths"].as_array().expect("lengths");
    assert_eq!(lengths.iter().map(|l| l["tokens"].clone()).collect::<Vec<_>>(), [31, 64]);
    let known = json(&["devices", "--json"]);
    let known: Vec<&Value> =
        known["strategies"].as_array().expect("list").iter().map(|s| &s["name"]).collect();
    for length in lengths {
        let strategies = length["strategies"].as_array().expect("strategies");
        let names: Vec<&Value> = strategies.iter().map(|s| &s["strategy"]).collect();
        assert_eq!(names, known, "{length}");
        assert_eq!(length["same_tokens"], true, "{length}");
        assert_eq!(length["absent"].as_array().map(Vec::len), Some(0), "{length}");
        assert!(names.contains(&&length["chosen_by_auto"]), "{length}");
        let time = |s: &Value| s["ttft_ms"].as_f64().expect("a time");
        let least = strategies.iter().min_by(|a, b| time(a).total_cmp(&time(b)));
        assert_eq!(least.map(|s| &s["strategy"]), Some(&length["fastest"]), "{length}");
        for strategy in strategies {
            let number = |field: &str| strategy[field].as_f64().expect(field);
            assert!(number("ttft_min_ms") <= number("ttft_ms"), "{strategy}");
            assert!(number("ttft_ms") <= number("ttft_max_ms"), "{strategy}");
            assert!(number("makespan_ms") > 0.0, "{strategy}");
            assert!(strategy["energy_j"].is_null(), "nothing measures energy: {strategy}");
        }
        let of =
            |name: &str| strategies.iter().find(|s| s["strategy"] == name).expect("it took part");
        assert_eq!(of("cpu-only")["copied_bytes"], 0, "one device copies nothing");
        assert!(of("row-cut")["copied_bytes"].as_u64() > Some(0), "parts are put together");
        assert!(of("cpu-only")["predicted_ms"].as_f64() > Some(0.0), "its speed is timed");
        assert!(of("gpu-only")["predicted_ms"].as_f64() >= Some(0.0), "its speed is stated");
    }
    assert_eq!(html.matches("<article").count(), 2 * known.len());
    for name in known {
        assert!(html.contains(name.as_str().expect("a name")), "{name} is not on the page");
    }
    assert!(!html.contains("http://") && !html.contains("https://"), "it asks the network");
}

#[test]
fn the_table_lists_impossible_strategies() {
    let model = model("llama.gguf");
    let args = ["bench", "-m", &model, "--strategy", "cpu-only,pipe", "-p", "20", "-r", "1"];
    let ended = ended(lapwing(&args));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("left out pipe: strategy 'pipe' needs a device"), "{ended:?}");
    let row = ended.stdout.lines().find(|line| line.starts_with("cpu-only")).expect("a row");
    assert!(row.contains("fastest"), "{row}");
    assert!(ended.stdout.contains("energy: unknown"), "{ended:?}");
    let none = ended_of(&["bench", "-m", &model, "--strategy", "pipe,chunked", "-p", "20"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.stderr.contains("needs a device of kind npu"), "{none:?}");
}

#[test]
fn progress_is_said_before_the_runs_and_before_each_of_them() {
    let args = compare(&["--strategy", "cpu-only,gpu-only", "--length", "31"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let said = ended_of(&args).stderr;
    let at = |what: &str| said.find(what).unwrap_or_else(|| panic!("{what}: {said}"));
    // In each of two rounds, a strategy has a run that is not measured, and a measured one.
    let order = [
        "preparing cpu-only",
        "8 runs, expected to take",
        "run 1 of 8: cpu-only, 31 tokens",
        "run 2 of 8: cpu-only, 31 tokens",
        "preparing gpu-only",
        "run 3 of 8: gpu-only, 31 tokens",
        "run 6 of 8: gpu-only, 31 tokens",
        "run 7 of 8: cpu-only, 31 tokens",
        "run 8 of 8: cpu-only, 31 tokens",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{said}");
}

#[test]
fn devices_without_work_are_the_main_cause_of_idle_time() {
    let found = compared(&["--strategy", "cpu-only", "--length", "31"]);
    let strategy = &found["lengths"][0]["strategies"][0];
    let unused = &strategy["idle"][0];
    assert_eq!(unused["cause"], "not used", "{strategy}");
    let makespan = strategy["makespan_ms"].as_f64().expect("a time");
    let ms = unused["ms"].as_f64().expect("a time");
    assert!((ms / makespan - 2.0).abs() < 1e-6, "two devices all the time: {strategy}");
}

fn ended_of(args: &[&str]) -> crate::support::Ended {
    ended(lapwing(args))
}

#[test]
fn one_strategy_without_length_is_an_ordinary_bench() {
    let model = model("llama.gguf");
    let base = ["bench", "-m", &model, "-p", "8", "-n", "2", "-r", "1", "--json"];
    let plain = json(&[&base[..], &["--device", DEVICES, "--strategy", "row-cut"]].concat());
    assert_eq!(plain["results"][0]["test"], "pp8");
}

#[test]
fn late_devices_are_reported() {
    // No machine computes as fast as these devices' stated rates.
    let found = compared(&["--strategy", "gpu-only", "--length", "64"]);
    let late = found["lengths"][0]["strategies"][0]["late_ms"].as_f64().expect("a time");
    assert!(late > 0.0);
    let args = compare(&["--strategy", "gpu-only", "--length", "64"]);
    let ended = ended_of(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        ended.stdout.contains("time by which this machine exceeded the devices' models"),
        "{ended:?}"
    );
}

#[test]
fn warm_runs_are_compared_with_warm_predictions() {
    let model = model("llama.gguf");
    let devices = "gpu=throttled:gflops=1e9,gbps=1e9,submit=0,idle-submit=0,sync=0\
        +npu=systolic:gflops=1e9,gbps=1e9,submit=0,idle-submit=0,sync=0,prepare=5ms,prepare-gweight=0";
    let strategies = ["--strategy", "online-prepare,npu-padding", "-p", "64"];
    let args = ["bench", "-m", &model, "--device", devices, "-r", "1", "-n", "1"];
    let found = json(&[&args[..], &strategies, &["--json"]].concat());
    for strategy in found["lengths"][0]["strategies"].as_array().expect("strategies") {
        let number = |field: &str| strategy[field].as_f64().expect(field);
        let on_the_spot = strategy["prepares_on_the_spot"].as_bool().expect("a flag");
        assert_eq!(on_the_spot, strategy["strategy"] == "online-prepare", "{strategy}");
        assert_eq!(
            number("predicted_ms") >= 5.0,
            on_the_spot,
            "no other graph is missing: {strategy}"
        );
        assert!(number("predicted_cold_ms") >= 5.0, "some are: {strategy}");
    }
    let table = ended_of(&[&args[..], &strategies].concat());
    assert!(table.stdout.contains("Graphs that a strategy prepares ahead are warm"), "{table:?}");
}

#[test]
fn a_prompt_that_prepares_graphs_on_the_spot_prepares_them_in_every_run() {
    let model = model("llama.gguf");
    // Everything but the preparation of a graph takes next to no time.
    let devices = "gpu=throttled:gflops=1e9,gbps=1e9,submit=0,idle-submit=0,sync=0\
        +npu=systolic:gflops=1e9,gbps=1e9,submit=0,idle-submit=0,sync=0,prepare=30ms,prepare-gweight=0";
    let args = ["bench", "-m", &model, "--device", devices, "-n", "0", "-r", "2", "--json"];
    let speeds = |more: &[&str]| -> Vec<f64> {
        let found = json(&[&args[..], more].concat());
        let all = found["results"][0]["tokens_per_second"]["all"].as_array().expect("runs");
        all.iter().map(|speed| speed.as_f64().expect("a speed")).collect()
    };
    let prepared = 64.0 / 30e-3;
    for more in [&[][..], &["--no-warmup"]] {
        let cold = speeds(&[&["--strategy", "online-prepare", "-p", "64"], more].concat());
        assert_eq!(cold.len(), 2);
        assert!(cold.iter().all(|speed| *speed < prepared), "{cold:?}");
    }
    let warm = speeds(&["--strategy", "npu-padding", "-p", "64"]);
    assert!(warm.iter().any(|speed| *speed > prepared), "graphs prepared ahead are warm: {warm:?}");
}
