//! Plots of simulated speculative decoding have what the runs have.

use crate::support::{ended, json, lapwing};

#[test]
fn a_region_has_the_ratios_of_the_schedules() {
    let folder = tempfile::tempdir().expect("folder");
    let svg = folder.path().join("r.svg").display().to_string();
    // Acceptance in descending order, which the axis is not.
    let grid = ["--acceptance", "0.95,0.5", "--draft-time", "0.3,0.5", "-n", "400"];
    let region = ["--region", &svg, "--mark", "a point=0.9,0.4"];
    let runs = json(&[&["speculate", "--json"], &grid[..], &region].concat());
    let runs = runs["runs"].as_array().expect("runs");
    let speed = |schedule: &str| {
        let of = |run: &&serde_json::Value| {
            run["schedule"] == schedule && run["acceptance"] == 0.95 && run["draft_time"] == 0.3
        };
        runs.iter().find(of).and_then(|run| run["speed_up"].as_f64()).expect("a speed")
    };
    let gain = format!(">{:.2}</text>", speed("async") / speed("sync"));
    let plot = std::fs::read_to_string(&svg).expect("a plot");
    assert_eq!(plot.matches("class=\"cell").count(), 4);
    assert!(plot.contains(&gain) && plot.contains(">a point</text>"), "{gain}: {plot}");
}

#[test]
fn a_region_of_one_schedule_or_of_several_lengths_is_refused() {
    for (wrong, says) in [
        (["--schedule", "sync"], "both schedules"),
        (["--draft-length", "1,2"], "one --draft-length"),
        (["--target-devices", "1,2"], "--target-devices"),
        (["--requests", "1,2"], "--requests"),
        (["--mark", "AMUSD"], "NAME="),
        (["--prompt-tokens", "0"], "the length of the prompt"),
    ] {
        let region = ["speculate", "-n", "20", "--region", "never.svg"];
        let refused = ended(lapwing(&[&region[..], &wrong].concat()));
        assert!(refused.code == Some(2) && refused.stderr.contains(says), "{refused:?}");
    }
    assert!(!std::path::Path::new("never.svg").exists());
}

/// The draft model reads the prompt first.
#[test]
fn a_longer_prompt_makes_drafts_pay_less() {
    let speed_up = |tokens: &str| {
        let run = ["speculate", "--acceptance", "1", "--draft-time", "0.1", "--growth", "0.5"];
        let more = ["-n", "20", "--schedule", "sync", "--json", "--prompt-tokens", tokens];
        json(&[&run[..], &more].concat())["runs"][0]["speed_up"].as_f64().expect("a number")
    };
    assert!(speed_up("100") < speed_up("4"));
}

/// The published synchronous decoder computes a pass more for each draft that is accepted completely; without waiting, the target is
/// as fast as without drafts where all of them are wrong.
#[test]
fn forms_of_drafts_are_what_they_say() {
    let speed = |more: &[&str]| {
        let run = ["speculate", "--draft-time", "0.65", "--growth", "0", "-n", "2000", "--json"];
        let report = json(&[&run[..], more].concat());
        (report["form"].clone(), report["runs"][0]["speed_up"].as_f64().expect("a number"))
    };
    let sync = ["--acceptance", "0.9", "--schedule", "sync", "--draft-length", "3"];
    let (form, published) = speed(&[&sync[..], &["--sync-bonus-pass"]].concat());
    assert_eq!(form["sync_bonus_pass"], true);
    assert!(published < speed(&sync).1, "{published}");
    let own = ["--acceptance", "0.7", "--schedule", "async"];
    let waits = speed(&own).1;
    let pearl = speed(&[&own[..], &["--pre-verify", "--post-verify"]].concat()).1;
    assert!(pearl > 1.05 * waits, "{pearl} {waits}");
    let wrong = ["--acceptance", "0", "--schedule", "async", "--draft-length", "4", "--pre-verify"];
    let wrong = speed(&wrong).1;
    assert!((wrong - 1.0).abs() < 1e-9, "{wrong}");
}

#[test]
fn options_of_drafts_need_drafts() {
    for option in ["--sync-bonus-pass", "--pre-verify", "--post-verify"] {
        for more in [&["-p", "8"][..], &["--requests", "8+2"]] {
            let refused = ended(lapwing(&[&["simulate", option], more].concat()));
            assert!(refused.code == Some(2) && refused.stderr.contains("--draft"), "{refused:?}");
        }
    }
    let model = crate::support::model("llama.gguf");
    let live = ["run", "-m", &model, "--draft", "self:q4_0", "--draft-pre-verify", "ab"];
    let refused = ended(lapwing(&live));
    assert!(refused.code == Some(2) && refused.stderr.contains("async"), "{refused:?}");
}
