//! Simulations with many requests: their form, that they repeat, and that everything really runs at once.

use serde_json::Value;

use crate::a_json_form_changes::assert_documented;
use crate::a_simulation_misleads::{number, simulate};
use crate::support::{ended, json, lapwing, model};

/// A model and a draft model a hundredth of the size of those on a phone, two streams, and then two prompts.
const SCENARIO: [&str; 10] = [
    "--soc",
    "phone",
    "-m",
    "layers=8,dim=512,ffn=1536,heads=8,vocab=4096",
    "--strategy",
    "pipe",
    "--requests",
    "chat:2x30+120,chat:2x900+1@200ms",
    "--draft",
    "layers=4,dim=384,ffn=768,heads=4,vocab=4096",
];

fn run(more: &[&str]) -> Value {
    simulate(&[&SCENARIO[..], more].concat())
}

#[test]
fn drafts_verification_and_prompts_run_at_once_in_one_scenario() {
    let folder = tempfile::tempdir().expect("folder");
    let trace = folder.path().join("all.lwt").display().to_string();
    let printed = run(&["--acceptance", "0.9", "--trace", &trace]);
    assert_documented("simulate with many requests", &printed, &[]);
    let one = &printed["runs"][0];
    assert!(number(&one["concurrent"], "draft+verify+prompt") > 0.02, "{one}");
    let tokens = |run: &Value| run["tokens"].as_u64();
    let requests = one["requests"].as_array().expect("requests");
    assert_eq!(requests.iter().filter_map(tokens).collect::<Vec<_>>(), [120, 120, 1, 1]);
    let timeline = json(&["timeline", "--json", &trace]);
    assert_eq!(timeline["meta"]["clock"], "virtual");
    let ms = number(&timeline, "makespan_ns") / 1e6;
    assert!(ms >= 0.99 * number(one, "makespan_ms"), "{ms} {one}");
    let recorded = number(&timeline["concurrent"], "draft+verify+prompt") * ms;
    let printed = number(&one["concurrent"], "draft+verify+prompt") * number(one, "makespan_ms");
    assert!((recorded - printed).abs() < 1e-3, "{recorded} {printed}");
}

#[test]
fn an_ablation_has_each_combination_once_and_prints_the_same_bytes() {
    let args = [&["simulate"][..], &SCENARIO, &["--ablate", "--acceptance", "0.9"]].concat();
    let (first, second) = (ended(lapwing(&args)), ended(lapwing(&args)));
    assert_eq!((first.code, &first.stdout), (Some(0), &second.stdout), "{first:?}");
    assert!(first.stdout.contains("gain of"), "{first:?}");
    let printed = run(&["--ablate", "--acceptance", "0.9"]);
    let runs = printed["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 8);
    let share = |run: &Value| number(&run["concurrent"], "draft+verify+prompt");
    for run in runs {
        let on = |what: &str| run["overlaps"][what] == true;
        assert!(on("prompts") && on("drafts") || share(run) == 0.0, "{run}");
        assert_eq!(run["acceptance"].is_null(), !on("drafts"), "{run}");
    }
    assert!(share(&runs[7]) > 0.02, "{}", runs[7]);
    let without = run(&["--without", "prompts,drafts,cuts"]);
    assert_eq!(without["runs"][0], runs[0]);
}

#[test]
fn a_sweep_over_acceptance_has_a_run_for_each() {
    let printed = run(&["--acceptance", "0,0.5,1", "--draft-length", "3", "--schedule", "sync"]);
    let runs = printed["runs"].as_array().expect("runs");
    let accepted: Vec<f64> =
        runs.iter().map(|run| number(run, "accepted") / number(run, "drafted")).collect();
    assert_eq!((accepted[0], accepted[2]), (0.0, 1.0));
    assert!((0.2..0.7).contains(&accepted[1]), "{accepted:?}");
}

#[test]
fn classes_and_places_change_who_waits() {
    let mean = |more: &[&str]| {
        let requests = ["--requests", "back:6x50+100^background,front:20+4@100ms"];
        let args = [&SCENARIO[..6], &requests, more].concat();
        let printed = simulate(&args);
        let of = |name: &str| number(&printed["runs"][0]["clients"][name]["ttft_ms"], "mean");
        (of("front"), of("back"))
    };
    let (one, of_one) = mean(&["--max-running-requests", "1"]);
    let (many, of_many) = mean(&[]);
    assert!(of_one > 1.5 * of_many, "one at a time the others wait: {of_one} {of_many}");
    assert!(one < 0.5 * of_one, "background work gives its place up: {one} {of_one}");
    assert!(many < 0.5 * of_many, "{many} {of_many}");
}

#[test]
fn impossible_requests_are_refused() {
    let rows = [
        (&["--requests", "30"][..], "PROMPT+ANSWER"),
        (&["--requests", "3+3", "--max-running-requests", "0"], "1..=65536"),
        (&["--max-running-requests", "3"], "--requests"),
        (&["--draft", "llama-3.2-3b"], "--requests"),
        (&["--requests", "3+3", "--acceptance", "0.5"], "--draft"),
        (&["--requests", "3+3", "-p", "9"], "--prompt-tokens"),
        (&["--requests", "3+3", "--without", "speed"], "prompts"),
        (&["--requests", "3+3", "--ablate", "--trace", "x.lwt"], "--trace"),
    ];
    for (args, says) in rows {
        let ended = ended(lapwing(&[&["simulate"], args].concat()));
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?} {ended:?}");
        assert!(ended.stderr.contains(says), "{args:?} {ended:?}");
    }
}

#[test]
fn lengths_are_those_of_the_requests() {
    let llama = model("llama.gguf");
    let one = ["simulate", "--soc", "phone", "--model", &llama];
    let requests = [&one[..], &["--requests", "30+20"]].concat();
    // A single prompt has 256 tokens unless -p says otherwise, as many as the context of this model.
    for (args, exceeds) in [(&one[..], true), (&requests, false)] {
        let ended = ended(lapwing(args));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stderr.contains("exceed the context"), exceeds, "{ended:?}");
    }
}

/// `docs/overlap.md` has these and others.
#[test]
fn prompts_that_arrive_together_end_one_after_the_other_on_routes_by_the_moment() {
    let model = "layers=30,dim=576,ffn=1536,heads=9,kv-heads=3,vocab=49152,tied=1,bits=8";
    let base = ["--soc", "phone", "-m", model, "--strategy", "auto", "--requests", "2x1000+1"];
    let [class, off] = ["class", "off"].map(|moment| {
        let run = simulate(&[&base[..], &["--moment", moment]].concat());
        let requests = run["runs"][0]["requests"].as_array().expect("requests");
        let times = requests.iter().map(|it| it["ttft_ms"].as_f64().expect("a time"));
        times.collect::<Vec<f64>>()
    });
    assert!(class[0] < 0.6 * class[1], "{class:?}");
    assert!(class[1] < 0.85 * off[1], "{class:?} {off:?}");
}
