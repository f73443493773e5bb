//! `--trace` writes a file that `timeline` reads, changes no answer, and fails early if it cannot.

use std::io::Read;
use std::process::{Command, Stdio};

use lapwing::traces::event::Milestone;
use lapwing::traces::{Recording, Timeline};

use crate::support::{ended, json, lapwing, model};

/// Number of tokens in a recording.
fn tokens(timeline: &Timeline) -> usize {
    timeline.milestones.iter().filter(|s| s.milestone == Milestone::Token).count()
}

#[test]
fn recording_changes_no_answer_and_writes_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.lwt").display().to_string();
    let llama = model("llama.gguf");
    let args =
        ["run", "-m", &llama, "--raw", "--json", "--temp", "0", "--ignore-eos", "-n", "9", "ab"];
    let plain = json(&args);
    let recorded = ended(lapwing(&[&args[..], &["--trace", &path]].concat()));
    assert_eq!(recorded.json()["ids"], plain["ids"]);
    let next = format!("show them with: lapwing timeline {path}");
    assert!(recorded.stderr.contains(&next), "{recorded:?}");
    let recording = Recording::load(&path).expect("a recording");
    assert_eq!(recording.meta["model"], "llama");
    let timeline = Timeline::new(&recording);
    assert_eq!((tokens(&timeline), timeline.dropped, timeline.orphans), (9, 0, 0));
    let report = json(&["timeline", &path, "--json"]);
    assert_eq!(report["requests"]["generated_tokens"], 9);
    assert_eq!(report["requests"]["finished"], 1);
}

#[test]
fn a_recorded_bench_has_all_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bench.lwt").display().to_string();
    let llama = model("llama.gguf");
    json(&["bench", "-m", &llama, "-p", "8", "-n", "4", "-r", "2", "--json", "--trace", &path]);
    let timeline = Timeline::new(&Recording::load(&path).expect("a recording"));
    // One unmeasured and two measured runs, of 1 and of 5 tokens.
    assert_eq!(tokens(&timeline), 3 + 15);
}

#[test]
fn an_unwritable_recording_is_rejected_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing/run.lwt").display().to_string();
    for path in [missing, folder.path().display().to_string()] {
        for command in [&["run", "hello"][..], &["bench"]] {
            // The model does not exist either, but is not searched for.
            let end = ended(lapwing(
                &[command, &["-m", "/nowhere/model.gguf", "--trace", &path]].concat(),
            ));
            assert_eq!((end.code, &end.stdout[..]), (Some(1), ""), "{end:?}");
            assert!(end.stderr.contains("cannot write the recording to"), "{end:?}");
        }
    }
    let fresh = folder.path().join("fresh.lwt").display().to_string();
    let end = ended(lapwing(&["run", "-m", "/nowhere/model.gguf", "--trace", &fresh, "hello"]));
    assert_eq!(end.code, Some(1));
    assert!(!std::path::Path::new(&fresh).exists(), "an empty file is left behind");
}

#[cfg(unix)]
#[test]
fn a_recording_never_replaces_a_special_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let [link, pipe, file] = ["link", "pipe", "file"].map(at);
    std::os::unix::fs::symlink("file", &link).expect("a link");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let llama = model("llama.gguf");
    let args = ["run", "-m", &llama, "--raw", "--temp", "0", "-n", "3", "ab", "--trace"];
    json(&[&args[..], &[&link, "--json"]].concat());
    assert!(std::path::Path::new(&link).is_symlink());
    Recording::load(&file).expect("a recording behind the link");
    let reader = std::thread::scope(|scope| {
        let run = scope.spawn(|| json(&[&args[..], &[&pipe, "--json"]].concat()));
        let bytes = std::fs::read(&pipe).expect("a recording");
        run.join().expect("it ends");
        bytes
    });
    Recording::from_bytes(&reader).expect("a recording through the pipe");
}

#[test]
fn watch_needs_a_terminal() {
    let end = ended(lapwing(&["run", "-m", "/nowhere/model.gguf", "--watch", "hello"]));
    assert_eq!((end.code, &end.stdout[..]), (Some(2), ""), "{end:?}");
    assert!(end.stderr.contains("--watch needs a terminal"), "{end:?}");
}

#[cfg(unix)]
#[test]
fn a_signal_saves_the_recording() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        saves_the_recording_after(name, code);
    }
}

#[cfg(unix)]
fn saves_the_recording_after(name: &str, expected: i32) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.lwt").display().to_string();
    let llama = model("llama.gguf");
    let args = ["run", "-m", &llama, "--raw", "--temp", "0", "--ignore-eos", "-n", "max"];
    let mut child = lapwing(&[&args[..], &["--trace", &path, "ab"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut [0]).expect("a first byte");
    let kill = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).expect("the rest");
    let code = child.wait().expect("it ends").code();
    // The program may have ended just before the signal.
    assert!(code == Some(0) || code == Some(expected), "{name}: {code:?}");
    let timeline = Timeline::new(&Recording::load(&path).expect("a recording"));
    assert!(tokens(&timeline) > 0);
    assert!(timeline.spans.iter().all(|span| span.finished), "the actors had not ended");
}
