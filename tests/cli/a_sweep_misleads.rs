//! `lapwing sweep` and repeated runs: means, intervals, differences and plots.

use serde_json::Value;

use crate::a_simulation_misleads::{number, simulate};
use crate::support::{ended, json, lapwing};

#[test]
fn a_sweep_has_all_runs_and_its_plot_all_lines() {
    let folder = tempfile::tempdir().expect("folder");
    let svg = folder.path().join("s.svg").display().to_string();
    let over = ["--over", "prompt=64,128,256", "--over", "strategy=pipe,tensor-level"];
    let sweep = [&["sweep"][..], &over, &["-n", "0"]].concat();
    let csv = ended(lapwing(&[&sweep[..], &["--plot", &svg]].concat())).stdout;
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 7, "{csv}");
    let columns = rows[0].split(',').count();
    assert!(rows.iter().all(|row| row.split(',').count() == columns), "{csv}");
    assert!(rows[1].starts_with("64,pipe,") && rows[6].starts_with("256,tensor-level,"), "{csv}");
    let svg = std::fs::read_to_string(svg).expect("a plot");
    assert_eq!(svg.matches("class=\"line").count(), 2);
    assert!(svg.contains("prompt length (tokens)") && svg.contains("prefill speed (tokens/s)"));
    let points = json(&[&sweep[..], &["--json"]].concat())["points"].clone();
    let alone = simulate(&["-n", "0", "-p", "128", "--strategy", "pipe"]);
    assert_eq!(points[2]["run"]["prefill_ms"], alone["prefill_ms"]);
}

#[test]
fn repeated_runs_with_noise_have_an_interval() {
    let options = ["--prompt", "64", "--decode", "0", "--repeat", "5"];
    let noisy = simulate(&[&options[..], &["--set", "noise.spread=0.1"]].concat());
    let means = noisy["repeat"]["means"].as_array().expect("means");
    let time = means.iter().find(|mean| mean["figure"] == "prefill_ms").expect("a time");
    assert!(number(time, "low") < number(time, "mean"), "{time}");
    assert!(number(time, "mean") < number(time, "high"), "{time}");
    assert_eq!(noisy["repeat"]["count"], 5);
    let still = ended(lapwing(&[&["simulate"][..], &options].concat()));
    assert!(still.stderr.contains("noise.spread"), "{still:?}");
    assert!(still.stdout.contains("5 runs, mean and 95 % interval"), "{still:?}");
    let once = ended(lapwing(&["simulate", "--repeat", "1"]));
    assert!(once.code == Some(2) && once.stderr.contains("repeat"), "{once:?}");
}

#[test]
fn a_repeated_sweep_plots_means_with_intervals() {
    let folder = tempfile::tempdir().expect("folder");
    let svg = folder.path().join("s.svg").display().to_string();
    let sweep = ["sweep", "--over", "prompt=64,128", "--over", "strategy=pipe,gpu-only", "-n", "0"];
    let sweep = [&sweep[..], &["--repeat", "3", "--plot", &svg]].concat();
    let noisy = ended(lapwing(&[&sweep[..], &["--set", "noise.spread=0.1"]].concat()));
    assert_eq!(noisy.stdout.lines().count(), 1 + 2 * 2 * 3, "every run is in the table: {noisy:?}");
    let plot = std::fs::read_to_string(&svg).expect("a plot");
    assert_eq!(plot.matches("class=\"line").count(), 2);
    assert_eq!(plot.matches("class=\"interval").count(), 4);
    let still = ended(lapwing(&sweep));
    assert!(still.stderr.contains("noise.spread") && !noisy.stderr.contains("note"), "{still:?}");
    let once = ended(lapwing(&["sweep", "--over", "prompt=64", "--repeat", "1"]));
    assert!(once.code == Some(2) && once.stderr.contains("repeat"), "{once:?}");
}

#[test]
fn differences_are_those_of_pairs_and_plots_have_multiples() {
    let folder = tempfile::tempdir().expect("folder");
    let svg = folder.path().join("s.svg").display().to_string();
    let sweep = ["sweep", "--over", "strategy=pipe,gpu-only", "--over", "gpu.rate=0.5x,1x,2x"];
    let more = ["-n", "0", "--repeat", "4", "--set", "noise.spread=0.1", "--figure", "prefill_ms"];
    let sweep = [&sweep[..], &more, &["--against", "strategy=pipe", "--plot", &svg]].concat();
    let table = ended(lapwing(&sweep)).stdout;
    let rows: Vec<&str> = table.lines().collect();
    let heads = "gpu.rate,strategy,against,pairs,prefill_ms_difference,low,high,relative";
    assert_eq!((rows[0], rows.len()), (heads, 4), "{table}");
    let found = json(&[&sweep[..], &["--json"]].concat());
    for (row, found) in rows[1..].iter().zip(found["differences"].as_array().expect("rows")) {
        let ends = found["interval"].as_array().expect("an interval");
        let ends: Vec<f64> = ends.iter().filter_map(Value::as_f64).collect();
        let mean = number(found, "mean");
        assert!(ends[0] < mean && mean < ends[1] && found["pairs"] == 4, "{found}");
        let said = row.split(",gpu-only,pipe,4,").nth(1).and_then(|rest| rest.split(',').next());
        let said = said.unwrap_or_else(|| panic!("{row} {found}"));
        let digits = said.trim_start_matches(['-', '0', '.']).chars().filter(char::is_ascii_digit);
        assert!(digits.count() <= 6, "a table has no more digits than they are worth: {row}");
        let error = said.parse::<f64>().expect("a number") / mean - 1.0;
        assert!(error.abs() < 5e-6, "{row} {found}");
    }
    assert_eq!(found["settings"]["noise.spread"], "0.1");
    let plot = std::fs::read_to_string(&svg).expect("a plot");
    assert!(plot.contains(">gpu rate (multiple of its value)<"), "{plot}");
    assert!(plot.contains(">time to first token (ms) over gpu rate"), "{plot}");
    assert!(plot.contains("Means of 4 runs with 95 % intervals"), "{plot}");
}
