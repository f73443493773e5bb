//! Studies of several workers.

use lapwing_actors::policy::PolicyChoice;
use lapwing_actors::routing::RouteChoice;

use super::{Scratch, files, run_all};
use crate::load::{PassTime, Workers, WorkersReport, repeated};
use crate::simulate::Point;
use crate::study::{Begin, Numbers, StudyError};

/// Costs of a server that takes four times as long for a prompt as for the same number of tokens of an answer.
const SLOW: &str = "{\"8\":{\"4\":[1,0.04,0.03],\"8\":[2,0.04,0.08]},\"64\":{\"4\":[4,0.3,0.05],\"16\":[1,0.3,0.2]},\
                    \"128\":{\"8\":[3,0.6,0.1]}}";

const FIRST: usize = 80;

/// A scenario of several workers with further settings.
fn text(settings: &str) -> String {
    format!(
        "[[scenario]]\nname = \"a\"\ncommand = \"load\"\nexperiment = \"preble-toolbench\"\nfirst = {FIRST}\n{settings}\n"
    )
}

/// The runs of such a scenario.
fn points(scratch: &Scratch, settings: &str) -> Vec<Point<Numbers>> {
    std::fs::write(scratch.0.join("slow.json"), SLOW).expect("a file");
    let study = scratch.study(&text(settings)).expect(settings);
    let folder = scratch.0.join("out");
    let _ = std::fs::remove_dir_all(&folder);
    let mut run = study.begin(&folder, Begin::New).expect(settings);
    assert!(run.go_on(&mut |_| true).expect(settings));
    run.summaries()[0].sweep.points.clone()
}

#[test]
fn a_run_of_workers_is_that_of_the_load_command() {
    let scratch = Scratch::new("study-workers");
    let settings = "workers = 3\nroute = [\"round-robin\", \"cache-aware:match=0.3\"]\ncopies = 2\n\
                    worker-speed = \"1, 1, 0.5\"\nworker-server = \"1=slow.json\"\npolicy = \"vtc\"\nuntil = 8";
    let points = points(&scratch, settings);
    let experiment = repeated("preble-toolbench", 42, 2).expect("an experiment");
    let requests = &experiment.requests[..FIRST];
    let workers = Workers {
        costs: [(1, PassTime::fit(SLOW).expect("costs"))].into(),
        speeds: vec![1.0, 1.0, 0.5],
        ..Workers::equal(experiment.server.clone(), 3)
    };
    let policy = PolicyChoice::from("vtc");
    for (point, route) in points.iter().zip(["round-robin", "cache-aware:match=0.3"]) {
        let route = RouteChoice::from(route);
        let routed = workers.run(requests, (&route, &policy), Some(8.0)).expect("served");
        let report =
            WorkersReport::new(&workers, (route.name(), "vtc"), &routed, &experiment.measure);
        let expected = Numbers::of(&report).without("decision_us");
        assert_eq!(format!("{:?}", point.outcome), format!("{:?}", Ok::<_, String>(expected)));
        let busy = route.name() == "round-robin";
        assert!(point.result("imbalance.busy").is_some_and(|it| !busy || it > 1.0), "{point:?}");
    }
    assert_ne!(points[0].outcome, points[1].outcome, "routes differ");
}

#[test]
fn each_setting_of_workers_changes_the_results() {
    let scratch = Scratch::new("study-workers-keys");
    let usual = points(&scratch, "workers = 2")[0].outcome.clone();
    for setting in [
        "workers = 3",
        "workers = 2\nroute = \"cache-aware\"",
        "workers = 2\nworker-speed = \"1,0.5\"",
        "workers = 2\nworker-server = \"1=slow.json\"",
        "workers = 2\ncopies = 3",
    ] {
        assert_ne!(points(&scratch, setting)[0].outcome, usual, "{setting} changes nothing");
    }
}

#[test]
fn a_study_of_workers_has_the_same_bytes_again_and_no_times_of_decisions() {
    let scratch = Scratch::new("study-workers-bytes");
    std::fs::write(scratch.0.join("slow.json"), SLOW).expect("a file");
    let settings = "seed = [1, 2]\nworkers = [1, 2, 4]\nroute = [\"power-of-two\", \"preble\"]\n\
                    worker-server = \"0=slow.json\"\nagainst = \"route=preble\"";
    let study = scratch.study(&text(settings)).expect("a study");
    let [one, other] = ["one", "other"].map(|name| scratch.0.join(name));
    run_all(&study, &one, Begin::New);
    run_all(&study, &other, Begin::New);
    let (one, other) = (files(&one), files(&other));
    assert!(one == other);
    assert_eq!(one["inputs/slow.json"], SLOW.as_bytes(), "the costs are kept");
    let text = |name: &str| String::from_utf8(one[name].clone()).expect("a text");
    let runs = text("a.csv");
    assert_eq!(runs.lines().count(), 1 + 12, "{runs}");
    assert!(!runs.contains("decision_us"), "{runs}");
    for figure in ["tokens-per-second", "hit-rate", "imbalance-busy", "latencies-ttft-ms-p95"] {
        assert!(one.contains_key(&format!("a-{figure}.svg")), "{figure}: {:?}", one.keys());
    }
    assert!(text("index.html").contains("imbalance.busy"));
}

#[test]
fn wrong_settings_of_workers_are_named() {
    let scratch = Scratch::new("study-workers-errors");
    std::fs::write(scratch.0.join("slow.json"), SLOW).expect("a file");
    std::fs::write(scratch.0.join("wrong.json"), "[]").expect("a file");
    let rows = [
        ("workers = 0", 6, "'workers'"),
        ("workers = [2, 0]", 6, "'workers'"),
        ("workers = 2\nroute = \"cache-awar\"", 7, "cache-aware"),
        ("workers = 2\nroute = \"cache-aware:mach=1\"", 7, "'mach'"),
        ("route = \"preble\"", 6, "'workers'"),
        ("worker-speed = \"1,1\"", 6, "'workers'"),
        ("worker-server = \"0=slow.json\"", 6, "'workers'"),
        ("workers = 2\nworker-speed = \"1,1,1\"", 7, "3 speeds, but there are 2 workers"),
        ("workers = 2\nworker-speed = \"1,0\"", 7, "above 0"),
        ("workers = 2\nworker-server = \"slow.json\"", 7, "2=slow.json"),
        ("workers = 2\nworker-server = \"1=\"", 7, "no file"),
        ("workers = 2\nworker-server = \"2=slow.json\"", 7, "there is no worker 2"),
        ("workers = 2\nworker-server = \"1=slow.json,1=slow.json\"", 7, "twice"),
        ("workers = 2\nworker-server = \"1=none.json\"", 7, "none.json"),
        ("workers = 2\nworker-server = \"1=wrong.json\"", 7, "table"),
        ("workers = [2, 4]\nworker-server = \"3=slow.json\"", 7, "there is no worker 3"),
        ("workers = [4, 2]\nworker-server = \"3=slow.json\"", 7, "there is no worker 3"),
        ("copies = 0", 6, "'copies'"),
        ("worker = 2", 6, "'workers'"),
    ];
    for (settings, line, says) in rows {
        let Err(StudyError::Line { line: found, reason, .. }) = scratch.study(&text(settings))
        else {
            panic!("{settings}: it is accepted, or has no line");
        };
        assert!(found == line && reason.contains(says), "{settings}: line {found}: {reason}");
    }
    let trace = "[[scenario]]\nname = \"a\"\ncommand = \"load\"\ntrace = \"t.csv\"\ncosts = \"slow.json\"\ncopies = 2\n";
    std::fs::write(scratch.0.join("t.csv"), "at,prompt_tokens,output_tokens\n0,8,4\n")
        .expect("a file");
    let error = scratch.study(trace).err().expect("no experiment").to_string();
    assert!(error.contains("line 6") && error.contains("'copies'"), "{error}");
}
