//! `lapwing timeline`: its reports and files, and its errors.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::recordings::{recording, saved};
use crate::support::{Ended, ended, json, lapwing, model};

fn timeline(args: &[&str]) -> Ended {
    ended(lapwing(&[&["timeline"], args].concat()))
}

#[track_caller]
fn assert_fails(ended: &Ended, code: i32, says: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.stderr.contains("error: "), "{ended:?}");
    for part in says {
        assert!(ended.stderr.contains(part), "{part:?} is not in {ended:?}");
    }
}

#[test]
fn errors_name_files_that_are_not_recordings() {
    let folder = tempfile::tempdir().expect("folder");
    let whole = recording(60_000).to_bytes();
    let rows: [(&str, &[u8], &str); 3] = [
        ("text.lwt", b"This is no timeline but a text of some length.", "not a timeline recording"),
        ("empty.lwt", b"", "cut off"),
        ("cut.lwt", &whole[..whole.len() / 2], "cut off"),
    ];
    for (name, bytes, says) in rows {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("write");
        let ended = timeline(&[&path.display().to_string()]);
        assert_fails(&ended, 1, &[name, says]);
        assert_eq!(ended.stdout, "");
    }
    assert_fails(&timeline(&["./none.lwt"]), 1, &["none.lwt", "check the path"]);
}

#[test]
fn a_violated_bound_fails() {
    let folder = tempfile::tempdir().expect("folder");
    let run = saved(folder.path(), "run.lwt", 60_000);
    let kept = ["--assert", "makespan_ns==100000", "--assert", "lanes.cpu.utilization > 0.39"];
    let kept = [&kept[..], &["--assert", "requests.gap_ms.max<=0.02"]].concat();
    let ended = timeline(&[&[run.as_str()], &kept[..]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("kept:     makespan_ns is 100000, expected == 100000"));
    let page = folder.path().join("run.html").display().to_string();
    let args = ["--assert", "overlap>=0.6", "--assert", "spans==3", "--html", &page, "--json"];
    let ended = timeline(&[&[run.as_str()], &args[..]].concat());
    assert_fails(&ended, 1, &["overlap is 0, expected >= 0.6"]);
    assert!(!ended.stderr.contains("spans is"), "{ended:?}");
    let printed: Value = serde_json::from_str(&ended.stdout).expect("JSON in spite of it");
    assert_eq!(printed["asserts"][0]["ok"], false);
    assert_eq!(printed["asserts"][1]["ok"], true);
    assert!(fs::metadata(&page).is_ok_and(|page| page.len() > 1_000));
    // A number that the run does not have violates every bound.
    let absent = timeline(&[&run, "--assert", "requests.tpot_ms.max<1", "--assert", "spans>0"]);
    assert_eq!(absent.code, Some(0), "{absent:?}");
    let absent = timeline(&[&run, "--assert", "overlap_efficiency>0"]);
    assert_fails(&absent, 1, &["overlap_efficiency is missing"]);
}

#[test]
fn an_invalid_bound_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("folder");
    let run = saved(folder.path(), "run.lwt", 60_000);
    let page = folder.path().join("run.html").display().to_string();
    let rows: [(&[&str], &[&str]); 7] = [
        (&["--assert", "overlpa>0.5", "--html", &page], &["no metric 'overlpa'", "overlap"]),
        (&["--assert", "requests.gap.max<=250"], &["requests.gap_ms.max"]),
        (&["--assert", "lanes.npu.busy_ns>1"], &["lanes.cpu.busy_ns", "lanes.gpu.busy_ns"]),
        (&["--assert", "overlap"], &["has no comparison", "overlap>=0.6"]),
        (&["--assert", "overlap>much"], &["'much'", "is not a number"]),
        (&["--what-if", "op:nothing*0.5"], &["nothing", "attn"]),
        (&["--what-if", "faster"], &["faster"]),
    ];
    for (args, says) in rows {
        let ended = timeline(&[&[run.as_str()], args].concat());
        assert_fails(&ended, 2, says);
        assert_eq!(ended.stdout, "");
    }
    assert!(!Path::new(&page).exists(), "wrong usage writes nothing");
    for width in ["99999999999", "39", "-1", "wide"] {
        assert_fails(&timeline(&[&run, &format!("--width={width}")]), 2, &["--width", width]);
    }
    assert_fails(&timeline(&[&run, "--text", "--json"]), 2, &["--text", "--json"]);
    assert_fails(&timeline(&[&run, &run, "--csv", "x"]), 2, &["--csv"]);
}

#[test]
fn a_change_of_an_op_that_is_fused_says_what_it_changes() {
    let folder = tempfile::tempdir().expect("folder");
    let trace = folder.path().join("run.lwt").display().to_string();
    let llama = model("llama.gguf");
    let run = ["run", "-m", &llama, "--raw", "--temp", "0", "-n", "8", "--trace", &trace, "ab"];
    let group = "ffn_down + ffn_residual";
    let asked = ["--what-if", "op:ffn_down*0", "--assert", "ops.ffn_down.self_ns>0"];
    // In a run that another process disturbs, a part of the op's time may not delay the end.
    let undisturbed = (0..5).any(|_| {
        let run = ended(lapwing(&run));
        assert_eq!(run.code, Some(0), "{run:?}");
        let answer = timeline(&[&[trace.as_str()], &asked[..]].concat());
        let line = format!("changes all of {group}, which is fused into one dispatch");
        assert!(answer.code == Some(0) && answer.stdout.contains(&line), "{answer:?}");
        let answer = json(&[&["timeline", &trace, "--json"], &asked[..]].concat());
        assert_eq!(answer["what_if"][0]["fused"], serde_json::json!([group]));
        let down = answer["what_if"][0]["delta_ns"].as_i64().expect("a number");
        let op = |op: &&Value| op["name"] == group;
        let ops = answer["ops"].as_array().expect("ops");
        let self_ns = ops.iter().find(op).expect("the group")["self_ns"].as_i64();
        let self_ns = self_ns.expect("a number");
        assert!(-down > 0 && -down <= self_ns, "{down} of {self_ns}");
        -down == self_ns
    });
    assert!(undisturbed, "the layers follow each other on one device");
}

#[test]
fn every_output_can_be_loaded() {
    let folder = tempfile::tempdir().expect("folder");
    let run = saved(folder.path(), "run.lwt", 60_000);
    let at = |name: &str| folder.path().join(name).display().to_string();
    let [html, perfetto, chrome, csv] = ["a.html", "a.pftrace", "a.json", "tables"].map(at);
    fs::write(&html, "what was there before").expect("write");
    let ended = timeline(&[
        &run,
        "--html",
        &html,
        "--perfetto",
        &perfetto,
        "--chrome",
        &chrome,
        "--csv",
        &csv,
    ]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stderr.contains("wrote ") && ended.stderr.contains("a.pftrace"), "{ended:?}");
    let page = fs::read_to_string(&html).expect("page");
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
    assert!(page.trim_end().ends_with("</html>") && page.contains("makespan"));
    let trace: Value = serde_json::from_slice(&fs::read(&chrome).expect("trace")).expect("JSON");
    let slices = trace["traceEvents"].as_array().expect("events").iter();
    assert_eq!(slices.filter(|event| event["cat"] == "compute").count(), 3);
    // Field 1 with a length, repeated to the end.
    let bytes = fs::read(&perfetto).expect("trace");
    let (mut at, mut packets) = (0, 0);
    while at < bytes.len() {
        assert_eq!(bytes[at], 0x0a);
        let (mut length, mut shift) = (0_usize, 0);
        loop {
            at += 1;
            length |= usize::from(bytes[at] & 0x7f) << shift;
            shift += 7;
            if bytes[at] < 0x80 {
                break;
            }
        }
        at += 1 + length;
        packets += 1;
    }
    assert!(at == bytes.len() && packets > 10);
    let spans = fs::read_to_string(Path::new(&csv).join("spans.csv")).expect("table");
    assert_eq!(spans.lines().count(), 1 + 3);
    assert!(spans.contains(",decode,compute,,,0,40000,40000,true,"), "{spans}");
    let left: Vec<_> = fs::read_dir(folder.path())
        .expect("folder")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_output_without_a_folder_is_not_written() {
    let folder = tempfile::tempdir().expect("folder");
    let run = saved(folder.path(), "run.lwt", 60_000);
    let at = |name: &str| folder.path().join(name).display().to_string();
    for option in ["--html", "--perfetto", "--chrome", "--csv"] {
        let ended = timeline(&[&run, option, &at("no/such/out")]);
        assert_fails(&ended, 1, &["the folder", "no/such does not exist", "hint:"]);
    }
    assert_fails(&timeline(&[&run, "--html", &at("")]), 1, &["cannot write"]);
    assert_fails(&timeline(&[&run, "--csv", &run]), 1, &["cannot create the folder"]);
}

#[test]
fn two_runs_are_kept_apart() {
    let folder = tempfile::tempdir().expect("folder");
    let fast = saved(folder.path(), "fast.lwt", 60_000);
    let slow = saved(folder.path(), "slow.lwt", 160_000);
    let printed = json(&["timeline", &fast, &slow, "--json", "--assert", "diff.delta_ns<=100000"]);
    assert_eq!(printed["a"]["makespan_ns"], 100_000);
    assert_eq!(printed["b"]["makespan_ns"], 200_000);
    assert_eq!(printed["diff"]["delta_ns"], 100_000);
    assert_eq!(printed["asserts"][0]["ok"], true);
    let ended = timeline(&[&fast, &slow, "--width", "80"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in ["== fast.lwt\n", "== slow.lwt\n", "== fast.lwt -> slow.lwt\n", "+100.0 %"] {
        assert!(ended.stdout.contains(part), "{part:?} is not in {}", ended.stdout);
    }
    let page = folder.path().join("both.html").display().to_string();
    let ended = timeline(&[&fast, &slow, "--html", &page]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let page = fs::read_to_string(&page).expect("page");
    assert!(page.contains("fast.lwt") && page.contains("slow.lwt"));
}

#[test]
fn the_chart_has_the_requested_width_and_characters() {
    let folder = tempfile::tempdir().expect("folder");
    let run = saved(folder.path(), "run.lwt", 60_000);
    let ended = timeline(&[&run, "--ascii", "--width", "56", "--what-if", "on:gpu*0.5"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.is_ascii() && ended.stdout.lines().all(|line| line.len() <= 78));
    // 50 columns: 40 % and 60 %.
    let row = format!("\ngpu   {}{}\n", "d".repeat(20), "#".repeat(30));
    assert!(ended.stdout.contains(&row), "{}", ended.stdout);
    let what_if = "what if on:gpu*0.5: makespan 0.070 ms instead of 0.100 ms (-30.0 %)\n";
    assert!(ended.stdout.contains(what_if), "{}", ended.stdout);
    let printed = json(&["timeline", &run, "--json", "--what-if", "on:gpu*0.5"]);
    assert_eq!(printed["what_if"][0]["makespan_ns"], 70_000);
    assert_eq!(printed["what_if"][0]["delta_ns"], -30_000);
}

#[test]
fn outputs_never_overwrite_their_inputs() {
    let folder = tempfile::tempdir().expect("folder");
    let run = saved(folder.path(), "run.lwt", 60_000);
    let other = saved(folder.path(), "other.lwt", 60_000);
    let before = fs::read(&run).expect("run");
    let same = folder.path().join(".").join("run.lwt").display().to_string();
    for option in ["--html", "--perfetto", "--chrome"] {
        assert_fails(&timeline(&[&run, option, &same]), 2, &["run.lwt", "destroy"]);
    }
    assert_fails(&timeline(&[&other, &run, "--html", &same]), 2, &["run.lwt", "destroy"]);
    let table = saved(folder.path(), "spans.csv", 60_000);
    let folder = folder.path().display().to_string();
    assert_fails(&timeline(&[&table, "--csv", &folder]), 2, &["spans.csv", "destroy"]);
    assert_eq!(fs::read(&run).expect("run"), before);
}

#[test]
fn drafts_of_a_run_are_on_its_timeline() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("drafts.lwt").display().to_string();
    let llama = model("llama.gguf");
    let run = ["run", "-m", &llama, "--raw", "--temp", "0", "--ignore-eos", "-n", "40", "--json"];
    for draft in
        [&["--draft", "lookup"][..], &["--draft", "self:q8_0", "--draft-schedule", "async"]]
    {
        let rest = ["--trace", &path, "abcabcabcabc"];
        let answer = json(&[&run[..], draft, &rest].concat());
        let shown = json(&["timeline", &path, "--json"]);
        let rows = shown["drafts"].as_array().expect("passes");
        let sum = |role: &str, field: &str| -> u64 {
            let rows = rows.iter().filter(|row| row["role"] == role);
            rows.map(|row| row[field].as_u64().expect(field)).sum()
        };
        for field in ["drafted", "accepted", "wasted_rows"] {
            assert_eq!(
                Some(sum("verify", field)),
                answer["draft"][field].as_u64(),
                "{field}: {shown}"
            );
        }
        assert_eq!(Some(sum("verify", "passes")), answer["draft"]["verified_steps"].as_u64());
        let by_model = answer["draft"]["draft_rows"].as_u64() > Some(0);
        assert_eq!(sum("draft", "passes") > 0, by_model, "{shown}");
        let text = timeline(&[&path]).stdout;
        assert!(text.contains("Speculative decoding") && text.contains("verify"), "{text}");
    }
}
