//! Tests of whole studies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;

mod workers;

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("lapwing-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Scratch(folder)
    }

    fn study(&self, text: &str) -> Result<Study, StudyError> {
        let path = self.0.join("study.toml");
        std::fs::write(&path, text).expect("a file");
        Study::read(path, |_| None)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All files of a folder, by their names.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.path().is_dir() {
            true => {
                let inner = files(&entry.path()).into_iter();
                found.extend(inner.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
            }
            false => _ = found.insert(name, std::fs::read(entry.path()).expect("a file")),
        }
    }
    found
}

fn run_all(study: &Study, folder: &Path, begin: Begin) -> Vec<String> {
    let mut run = study.begin(folder, begin).expect("begun");
    assert!(run.go_on(&mut |_| true).expect("all run"));
    run.finish().expect("written")
}

const SMALL: &str = "title = \"T\"\nseeds = 2\nfigures = [\"prefill_ms\"]\n[settings]\ndecode = 0\nnoise.spread = 0.05\n\
                     model = \"layers=2,dim=256,ffn=512,heads=4,vocab=1000\"\n\
                     [[scenario]]\nname = \"one\"\nprompt = [32, 64]\nstrategy = [\"pipe\", \"gpu-only\"]\n\
                     against = \"strategy=pipe\"\n\
                     [[scenario]]\nname = \"two\"\nprompt = 32\nstrategy = [\"pipe\", \"tensor-level\"]\nsoc = [\"ideal\", \"sd8gen3\"]\n";

#[test]
fn the_same_study_has_the_same_bytes_wherever_it_is_interrupted() {
    let scratch = Scratch::new("study-bytes");
    let study = scratch.study(SMALL).expect("a study");
    assert_eq!(study.runs(), 2 * 2 * 2 + 2 * 2 * 2);
    let folder = |name: &str| scratch.0.join(name);
    let names = run_all(&study, &folder("a"), Begin::New);
    let whole = files(&folder("a"));
    assert_eq!(names, whole.keys().cloned().collect::<Vec<_>>());
    for stop in [0, 1, 3, 15] {
        let there = folder(&format!("b{stop}"));
        let mut run = study.begin(&there, Begin::New).expect("begun");
        let go_on = |progress: &StudyProgress<'_>| progress.done < stop;
        assert!(!run.go_on(&mut { go_on }).expect("some run"));
        assert_eq!(run.done(), (stop, 16));
        drop(run);
        assert!(matches!(study.begin(&there, Begin::New), Err(StudyError::Exists { .. })));
        let mut run = study.begin(&there, Begin::Resume).expect("resumed");
        assert_eq!(run.done().0, stop);
        assert!(run.go_on(&mut |_| true).expect("all run"));
        run.finish().expect("written");
        assert!(files(&there) == whole, "resumed after {stop} runs");
    }
    run_all(&study, &folder("a"), Begin::Restart);
    assert!(files(&folder("a")) == whole, "restarted");
}

#[test]
fn a_folder_has_runs_means_differences_plots_and_what_was_run() {
    let scratch = Scratch::new("study-files");
    let study = scratch.study(SMALL).expect("a study");
    run_all(&study, &scratch.0.join("out"), Begin::New);
    let files = files(&scratch.0.join("out"));
    let text = |name: &str| String::from_utf8(files[name].clone()).expect("a text");
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        "index.html",
        "one-means.csv",
        "one-prefill-ms-differences.csv",
        "one-prefill-ms.svg",
        "one.csv",
        "presets/ideal.toml",
        "presets/sd8gen3.toml",
        "study.json",
        "study.toml",
        "two-means.csv",
        "two-prefill-ms.svg",
        "two.csv",
    ];
    assert_eq!(names, expected);
    assert_eq!(text("study.toml"), SMALL);
    assert_eq!(text("one.csv").lines().count(), 1 + 8);
    assert!(text("one.csv").starts_with("prompt,strategy,seed,prefill_ms,"), "{}", text("one.csv"));
    assert_eq!(text("one-means.csv").lines().count(), 1 + 4);
    assert_eq!(text("one-prefill-ms-differences.csv").lines().count(), 1 + 2);
    assert!(text("one-prefill-ms.svg").contains("class=\"interval"), "means have intervals");
    assert!(text("two-prefill-ms.svg").contains("class=\"bar"), "names make bars");
    assert!(text("index.html").contains("differences from strategy=pipe"));
    let manifest: serde_json::Value = serde_json::from_str(&text("study.json")).expect("JSON");
    assert_eq!(manifest["lapwing"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["scenarios"][0]["seeds"], serde_json::json!(["0", "1"]));
    let preset = crate::simulate::Processors::from_toml(&text("presets/sd8gen3.toml"));
    let usual = crate::simulate::Processors::preset("sd8gen3").expect("a preset");
    assert_eq!(preset.expect("a preset"), usual, "as it is before the study's changes");
    let here = scratch.0.display().to_string();
    for (name, bytes) in &files {
        assert!(!String::from_utf8_lossy(bytes).contains(&here), "{name} names this machine");
    }
}

#[test]
fn a_run_is_that_of_its_command() {
    let scratch = Scratch::new("study-runs");
    let text = SMALL.replace("seeds = 2", "seeds = [7]");
    let study = scratch.study(&text).expect("a study");
    let mut run = study.begin(&scratch.0.join("out"), Begin::New).expect("begun");
    assert!(run.go_on(&mut |_| true).expect("all run"));
    let summary = &run.summaries()[0];
    let mut scenario = crate::simulate::Scenario::new("sd8gen3").expect("a preset");
    for (key, value) in [
        ("model", "layers=2,dim=256,ffn=512,heads=4,vocab=1000"),
        ("noise.spread", "0.05"),
        ("seed", "7"),
        ("decode", "0"),
        ("prompt", "64"),
        ("strategy", "gpu-only"),
    ] {
        scenario.set(key, value).expect(key);
    }
    let alone = scenario.run().expect("a run");
    let point = summary.sweep.points.last().expect("a run");
    assert_eq!(point.values, ["64", "gpu-only", "7"]);
    assert_eq!(point.result("prefill_ms"), Some(alone.prefill_ms));
    assert_eq!(point.result("syncs"), Some(alone.syncs as f64));
}

#[test]
fn a_study_of_a_server_sets_how_it_admits_and_forms_passes() {
    let scratch = Scratch::new("study-servers");
    let values = [
        ("host", "\"20ms\""),
        ("reserve", "\"peak\""),
        ("prefill-alone", "true"),
        ("max-prefill-tokens", "512"),
        ("admit-every", "10"),
    ];
    let served = |(key, value): (&str, &str)| {
        let study = format!(
            "[[scenario]]\nname = \"a\"\ncommand = \"load\"\nexperiment = \"vtc-overload\"\nfirst = 60\n{key} = {value}\n"
        );
        let study = scratch.study(&study).expect(key);
        let mut run = study
            .begin(&scratch.0.join(format!("{key}-{}", value.trim_matches('"'))), Begin::New)
            .expect(key);
        assert!(run.go_on(&mut |_| true).expect(key));
        let point = run.summaries()[0].sweep.points[0].clone();
        ["latencies.ttft_ms.p95", "latencies.ttft_ms.p50", "tokens_per_second"]
            .map(|name| point.result(name))
    };
    let usual = served(("admit-every", "0"));
    for key in values {
        assert_ne!(served(key), usual, "{key:?} changes nothing");
    }
}

#[test]
fn errors_name_the_key_the_line_and_the_nearest_right_name() {
    let scratch = Scratch::new("study-errors");
    let rows = [
        ("promt = 64", 3, "'prompt'"),
        ("strategy = \"pip\"", 3, "pipe"),
        ("npu.bandwith = 3", 3, "'npu.bandwidth'"),
        ("prompt = [64, 0]", 3, "'prompt'"),
        ("command = \"simulat\"", 3, "'simulate'"),
        ("soc = \"sd8gen4\"", 3, "sd8gen3"),
        ("prompt = 64\nacceptance = 0.5", 4, "'requests'"),
        ("requests = \"2x30+15\"\nprompt = 3", 4, "'prompt'"),
        ("requests = \"2x30+15\"\nacceptance = 0.5", 4, "'draft'"),
        ("requests = \"30\"", 3, "2x30+150"),
        ("requests = \"30+3\"\nwithout = \"cut\"", 4, "cuts"),
        ("command = \"load\"", 1, "experiment"),
        ("command = \"load\"\nexperiment = \"vtc-8-client\"", 4, "vtc-8-clients"),
        ("command = \"load\"\nexperiment = \"vtc-8-clients\"\npolicy = \"vtk\"", 5, "vtc"),
        ("command = \"speculate\"\nacceptance = 1.5", 4, "probability"),
        ("command = \"speculate\"\ntokens = 1", 1, "tokens"),
        ("strategy = [\"pipe\", \"auto\"]\nagainst = \"strategy=gpu-only\"", 4, "pipe, auto"),
        ("prompt = [1, 2]\nprompt = 3", 4, ""),
        ("model = \"llama-9\"", 3, "llama-3-8b"),
    ];
    for (text, line, says) in rows {
        let found = scratch.study(&format!("[[scenario]]\nname = \"a\"\n{text}\n"));
        let Err(StudyError::Line { line: found, reason, .. }) = found else {
            panic!("{text}: it is accepted, or has no line");
        };
        assert!(found == line && reason.contains(says), "{text}: line {found}: {reason}");
    }
}

#[test]
fn a_wrong_result_is_found_before_the_other_runs() {
    let scratch = Scratch::new("study-figures");
    let study = scratch.study(&SMALL.replace("against = ", "figures = \"prefil_ms\"\nagainst = "));
    let study = study.expect("a study");
    let mut run = study.begin(&scratch.0.join("out"), Begin::New).expect("begun");
    let error = run.go_on(&mut |_| true).expect_err("no such result").to_string();
    assert!(error.contains("line 12") && error.contains("'prefill_ms'"), "{error}");
    assert_eq!(run.done().0, 2, "the first run of each scenario");
    let study = scratch.study(&SMALL.replace("\"prefill_ms\"", "\"speed\"")).expect("a study");
    let mut run = study.begin(&scratch.0.join("other"), Begin::New).expect("begun");
    let error = run.go_on(&mut |_| true).expect_err("no such result").to_string();
    assert!(error.contains("line 3") && error.contains("prefill_ms"), "{error}");
}

#[test]
fn folders_of_others_and_of_other_studies_stay_as_they_are() {
    let scratch = Scratch::new("study-folders");
    let study = scratch.study(SMALL).expect("a study");
    let folder = scratch.0.join("mine");
    std::fs::create_dir_all(&folder).expect("a folder");
    run_all(&study, &folder, Begin::New);
    let says = |begin: Begin, says: &str| {
        let error = study.begin(&folder, begin).err().expect(says).to_string();
        assert!(error.contains(says), "{error}");
    };
    says(Begin::New, "--restart");
    says(Begin::Resume, "has ended");
    std::fs::write(folder.join("notes.txt"), "mine").expect("a file");
    says(Begin::Restart, "notes.txt");
    assert!(folder.join("one.csv").is_file() && folder.join("notes.txt").is_file());
    let other = scratch.study(&SMALL.replace("seeds = 2", "seeds = 3")).expect("a study");
    let folder = scratch.0.join("changed");
    drop(study.begin(&folder, Begin::New).expect("begun"));
    let error = other.begin(&folder, Begin::Resume).err().expect("another study").to_string();
    assert!(error.contains("study.toml has changed"), "{error}");
}
