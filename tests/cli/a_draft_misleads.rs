//! Drafts change no token, and what they did is reported.

use serde_json::Value;

use crate::an_option_is_ignored::run;
use crate::support::{ended, json, lapwing, model};

#[test]
fn a_drafter_changes_no_token_and_is_reported() {
    for sampling in [&["--temp", "0"][..], &["--temp", "1", "--seed", "3"]] {
        let plain = run(&[sampling, &["--ignore-eos", "-n", "40", "abcabcabcabc"]].concat());
        let rest = ["--draft", "lookup", "--ignore-eos", "-n", "40", "abcabcabcabc"];
        let drafted = run(&[sampling, &rest].concat());
        assert_eq!((&drafted["ids"], &drafted["text"]), (&plain["ids"], &plain["text"]));
        assert_eq!(plain["draft"], Value::Null);
        let draft = &drafted["draft"];
        let count = |field: &str| draft[field].as_u64().expect(field);
        assert_eq!(draft["drafter"], "lookup");
        assert_eq!(1 + count("steps") + count("accepted"), 40, "{draft}");
        assert!(count("accepted") <= count("drafted"), "{draft}");
    }
    let llama = model("llama.gguf");
    let args = ["run", "-m", &llama, "--raw", "--draft", "lookup", "--stats", "-n", "8", "ab"];
    let noted = ended(lapwing(&args));
    assert!(noted.stderr.contains("[draft lookup: "), "{noted:?}");
    let unknown = ended(lapwing(&["run", "-m", &llama, "--draft", "oracle", "ab"]));
    assert!(unknown.code == Some(2) && unknown.stderr.contains("none, lookup"), "{unknown:?}");
}

#[test]
fn a_layer_of_the_file_drafts_by_default_and_is_named() {
    let mtp = model("qwen35-mtp.gguf");
    let run = ["run", "-m", &mtp, "--raw", "--json", "--temp", "0", "--ignore-eos", "-n", "24"];
    let plain = json(&[&run[..], &["--draft", "none", "3 4 5"]].concat());
    assert_eq!(plain["draft"], Value::Null);
    for (option, is_decided) in
        [(&[][..], true), (&["--draft", "auto"], true), (&["--draft", "mtp"], false)]
    {
        let drafted = json(&[&run[..], option, &["3 4 5"]].concat());
        assert_eq!((&drafted["ids"], &drafted["text"]), (&plain["ids"], &plain["text"]));
        let draft = &drafted["draft"];
        assert_eq!(draft["drafter"], "mtp", "{option:?}");
        assert!(is_decided || draft["stopped"].is_null(), "{draft}");
        assert!(draft["stopped"].is_null() || draft["draft_rows"] == 0, "{draft}");
    }
    let noted = ended(lapwing(&["run", "-m", &mtp, "--raw", "--stats", "-n", "8", "3 4 5"]));
    assert!(noted.stderr.contains("[draft mtp: "), "{noted:?}");
    let explain = ["plan", "-m", &mtp, "-p", "40", "--explain", "--json"];
    let why = |more: &[&str]| json(&[&explain[..], more].concat())["drafts"]["why"].clone();
    let is_default = |why: &Value| why.as_str().is_some_and(|why| why.contains("is the default"));
    assert!(is_default(&why(&[])), "{}", why(&[]));
    assert_eq!(
        (why(&["--draft", "none"]), is_default(&why(&["--draft", "mtp"]))),
        (Value::Null, false)
    );
    let bench = ["bench", "-m", &mtp, "-p", "0", "-n", "8", "-r", "1", "--json"];
    let draft = |more: &[&str]| json(&[&bench[..], more].concat())["results"][0]["draft"].clone();
    assert_eq!(draft(&[]), Value::Null, "speeds are those of the model itself");
    assert_eq!(draft(&["--draft", "auto"])["drafter"], "mtp");
}

#[test]
fn an_option_of_a_draft_model_needs_one() {
    let llama = model("llama.gguf");
    for draft in ["auto", "none", "lookup", "suffix"] {
        for option in
            [["--draft-device", "cpu"], ["--draft-schedule", "async"], ["--draft-width", "2"]]
        {
            let args = [&["run", "-m", &llama, "--draft", draft], &option[..], &["ab"]].concat();
            let refused = ended(lapwing(&args));
            assert_eq!(refused.code, Some(2), "{refused:?}");
            let named = [option[0], draft].iter().all(|name| refused.stderr.contains(name));
            assert!(named, "{refused:?}");
        }
    }
}

#[test]
fn a_length_or_an_acceptance_of_drafts_needs_a_drafter_and_makes_sense() {
    let llama = model("llama.gguf");
    let refused = [
        (&["run", "-m", &llama, "--draft-length", "4", "ab"][..], "add --draft DRAFTER"),
        (&["run", "-m", &llama, "--draft", "lookup", "--draft-length", "16", "ab"], "at most 15"),
        (&["bench", "-m", &llama, "--acceptance", "0.5"], "add --draft DRAFTER"),
        (
            &["bench", "-m", &llama, "-p0", "-n4", "--draft", "self:q8_0", "--acceptance", "2"],
            "draft_acceptance is 2, but must be between 0 and 1",
        ),
    ];
    for (args, message) in refused {
        let ended = ended(lapwing(args));
        assert!(ended.code != Some(0) && ended.stderr.contains(message), "{args:?}: {ended:?}");
    }
}

#[test]
fn drafts_of_a_length_with_all_accepted_fill_every_pass() {
    let llama = model("llama.gguf");
    let args = ["bench", "-m", &llama, "-p", "0", "-n", "40", "-r", "1", "--json"];
    let draft = ["--draft", "self:q8_0", "--draft-length", "4", "--acceptance", "1"];
    let ended = ended(lapwing(&[&args[..], &draft].concat()));
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let draft = &report["results"][0]["draft"];
    assert_eq!(draft["drafted"], draft["accepted"], "{draft}");
    assert_eq!(draft["tokens_per_step"], 5.0, "{draft}");
}

#[test]
fn trees_of_tokens_change_no_token_and_are_counted() {
    let prompt = "one two three one two four one two three one two";
    for sampling in [&["--temp", "0"][..], &["--temp", "1", "--seed", "3"]] {
        let rest = [sampling, &["-n", "40", "--ignore-eos", prompt]].concat();
        let ids = run(&rest)["ids"].clone();
        let width = ["--draft", "self:q8_0", "--draft-width", "3"];
        let meanwhile = [&width[..], &["--draft-schedule", "async"]].concat();
        for draft in [&["--draft", "lookup+suffix"][..], &width, &meanwhile] {
            let drafted = run(&[draft, &rest].concat());
            assert_eq!(drafted["ids"], ids, "{draft:?}");
            let count = |field: &str| drafted["draft"][field].as_u64().expect(field);
            assert!(count("branch_steps") <= count("tree_steps"), "{drafted}");
            assert!(count("tree_steps") <= count("verified_steps"), "{drafted}");
            assert_eq!(count("wasted_rows"), count("drafted") - count("accepted"), "{drafted}");
        }
    }
}

#[test]
fn a_model_that_drafts_for_itself_changes_no_token() {
    let prompt = "one two three one two three one two";
    let greedy = ["--temp", "0", "-n", "24", "--ignore-eos", prompt];
    let ids = run(&greedy)["ids"].clone();
    for schedule in ["sync", "async"] {
        let options = ["--draft", "self:q8_0", "--draft-schedule", schedule];
        let drafted = run(&[&options[..], &greedy].concat());
        assert_eq!(drafted["ids"], ids, "{schedule}");
        assert_eq!(drafted["draft"]["drafter"], "self:q8_0", "{schedule}");
    }
}

#[test]
fn bench_compares_a_drafter_with_none() {
    let llama = model("llama.gguf");
    let bench = ["bench", "-m", &llama, "-p", "4", "-n", "40", "-r", "3"];
    let drafted = ["--draft", "self:q8_0"];
    let report = json(&[&bench[..], &drafted, &["--json"]].concat());
    assert_eq!(report["results"][0]["draft"], Value::Null, "a prompt has no drafts: {report}");
    let draft = &report["results"][1]["draft"];
    let mut fields: Vec<&str> =
        draft.as_object().expect("a report").keys().map(String::as_str).collect();
    fields.sort_unstable();
    let mut documented = vec![
        "drafter",
        "without",
        "speed_up",
        "tokens_per_step",
        "drafted",
        "accepted",
        "positions",
        "tree_steps",
        "branch_steps",
        "wasted_rows",
        "draft_rows",
        "draft_rows_wasted",
        "stopped",
    ];
    documented.sort_unstable();
    assert_eq!(fields, documented);
    let all = |value: &Value| -> Vec<f64> {
        serde_json::from_value(value["all"].clone()).expect("numbers")
    };
    let (with, without) = (all(&report["results"][1]["tokens_per_second"]), all(&draft["without"]));
    for (at, ratio) in all(&draft["speed_up"]).into_iter().enumerate() {
        assert!((with[at] / without[at] / ratio - 1.0).abs() < 1e-9, "{report}");
    }
    let count = |field: &str| draft[field].as_u64().expect(field);
    assert!(count("drafted") > 0, "the first draft is verified: {draft}");
    assert_eq!(count("wasted_rows"), count("drafted") - count("accepted"), "{draft}");
    let text = ended(lapwing(&[&bench[..], &drafted].concat())).stdout;
    assert!(text.contains("with drafts of self:q8_0: ") && text.contains("rows wasted"), "{text}");
    assert!(text.contains("accepted by position in a draft: "), "{text}");
}

#[test]
fn plan_says_why_a_draft_has_its_length() {
    let llama = model("llama.gguf");
    let plan = ["plan", "-m", &llama, "-p", "20", "--explain"];
    let fast = ["--device", "cpu=throttled:gflops=1,gbps=1", "--draft", "lookup"];
    let report = json(&[&plan[..], &fast, &["--json"]].concat());
    let drafts = &report["drafts"];
    let lengths = drafts["lengths"].as_array().expect("lengths");
    let length = |at: usize| lengths[at]["length"].as_u64().expect("a length");
    assert!(
        length(0) <= length(lengths.len() - 1),
        "more is drafted where more is accepted: {drafts}"
    );
    assert_eq!(drafts["verify_ms"].as_array().map(Vec::len), Some(16), "{drafts}");
    assert_eq!(drafts["draft_ms"], 0.0, "lookup takes no time of a device: {drafts}");
    let text = ended(lapwing(&[&plan[..], &fast].concat())).stdout;
    assert!(
        text.contains("best length of a draft") && text.contains("with 60 % accepted"),
        "{text}"
    );
    let none = json(&[&plan[..], &["--json"]].concat());
    assert_eq!(none["drafts"], Value::Null, "{none}");
}

#[test]
fn acceptance_is_taken_from_a_real_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let llama = model("llama.gguf");
    let prompt = "abcabcabcabc";
    let rest = ["--draft", "lookup", "--ignore-eos", "-n", "40", "--json", prompt];
    let run = ended(lapwing(&[&["run", "-m", &llama, "--raw", "--temp", "0"], &rest[..]].concat()));
    let path = folder.path().join("run.json");
    std::fs::write(&path, &run.stdout).expect("write");
    let path = path.display().to_string();
    let one = ["speculate", "-n", "200", "--draft-time", "0.1", "--draft-length", "2", "--json"];
    let of_run = json(&[&one[..], &["--acceptance-of", &path]].concat());
    assert_eq!(of_run["runs"][0]["acceptance"], Value::Null, "{of_run}");
    let given = |rates: &str| {
        let run = json(&[&one[..], &["--acceptance-at", rates]].concat());
        run["runs"][0]["accepted"].as_f64().expect("a share")
    };
    assert_eq!(given("1"), 1.0);
    assert_eq!(given("0"), 0.0);
    // Of two tokens, the second is always wrong; the last draft has one.
    assert!((given("1,0") - 0.5).abs() < 0.01, "{}", given("1,0"));
    let devices = json(&[&one[..], &["--target-devices", "1,4", "--schedule", "async"]].concat());
    let devices: Vec<u64> = devices["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["target_devices"].as_u64())
        .collect();
    assert_eq!((devices[0], devices[devices.len() - 1]), (1, 4));
    let several = json(&[&one[..], &["--requests", "1,3"]].concat());
    let several: Vec<u64> = several["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["requests"].as_u64())
        .collect();
    assert_eq!((several[0], several[several.len() - 1]), (1, 3));
    std::fs::write(&path, "{}").expect("write");
    for (wrong, says) in [
        (["--requests", "65"], "number of requests"),
        (["--acceptance-of", &path], "lapwing run --draft"),
        (["--acceptance-at", "1.5"], "between 0 and 1"),
        (["--target-devices", "9"], "target's devices"),
    ] {
        let refused = ended(lapwing(&[&["speculate"], &wrong[..]].concat()));
        assert!(refused.code == Some(2) && refused.stderr.contains(says), "{refused:?}");
    }
}
