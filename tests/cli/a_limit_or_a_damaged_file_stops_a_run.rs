//! Limits of the system, and files that are damaged or change: an error that names what to do, or an answer
//! with a note; never a signal, a panic or a hang.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cases::cases;
use crate::support::{ended, lapwing, model};

/// The program under a limit, with that cache folder.
fn limited(limit: &str, cache: &Path, args: &[&str]) -> Output {
    let program = lapwing(args);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{limit}; exec \"$@\"")).arg("sh").arg(program.get_program());
    shell.args(program.get_args()).envs(program.get_envs().filter_map(|(k, v)| Some((k, v?))));
    shell.env("LAPWING_CACHE", cache).stdin(Stdio::null());
    shell.output().expect("the shell starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The number of moments at which a file is truncated: this one, or 100 in the full tests.
fn moments(quick: u32) -> u32 {
    cases(quick, 100)
}

fn greedy(model: &str) -> [&str; 8] {
    ["run", "-m", model, "--raw", "--temp", "0", "-n4", "ab"]
}

#[test]
fn a_limit_on_file_size_costs_the_cache_of_packed_weights_and_not_the_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let llama = model("llama.gguf");
    let free = limited("true", &folder.path().join("free"), &greedy(&llama));
    let ended = limited("ulimit -f 4", &folder.path().join("limited"), &greedy(&llama));
    let stderr = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{:?} {stderr}", ended.status);
    assert_eq!(ended.stdout, free.stdout);
    assert!(stderr.contains("ulimit -f"), "{stderr}");
    // Neither may a marker be written.
    let again = limited("ulimit -f 0", &folder.path().join("free"), &greedy(&llama));
    assert_eq!((again.status.code(), &again.stdout), (Some(0), &free.stdout), "{again:?}");

    let trace = folder.path().join("run.lwt").display().to_string();
    let with_trace = [&greedy(&llama)[..], &["--no-packed-cache", "--trace", &trace]].concat();
    let ended = limited("ulimit -f 0", folder.path(), &with_trace);
    let stderr = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{:?} {stderr}", ended.status);
    assert!(stderr.contains("run.lwt") && stderr.contains("ulimit -f"), "{stderr}");
}

#[test]
fn a_limit_on_open_files_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let llama = model("llama.gguf");
    let (mut refused, mut answered) = (0, 0);
    for files in 3..=24 {
        let ended = limited(&format!("ulimit -n {files}"), folder.path(), &greedy(&llama));
        let stderr = text(&ended.stderr);
        match ended.status.code() {
            Some(0) => answered += 1,
            Some(1) => {
                assert!(stderr.contains("ulimit -n"), "{files}: {stderr}");
                refused += 1;
            }
            // The system's loader finds no library.
            Some(127) if stderr.contains("shared librar") => {}
            code => panic!("{files} files: {code:?} {stderr}"),
        }
    }
    assert!(refused > 0 && answered > 0, "{refused} refused, {answered} answered");
}

#[test]
fn a_damaged_profile_is_left_out_with_a_note() {
    let folder = tempfile::tempdir().expect("a folder");
    let llama = model("llama.gguf");
    let program = |args: &[&str]| {
        let mut program = lapwing(args);
        program.env("LAPWING_CACHE", folder.path());
        ended(program)
    };
    let profile = program(&["profile", "-m", &llama, "--seconds", "1", "-r", "1"]);
    assert_eq!(profile.code, Some(0), "{profile:?}");
    let want = program(&greedy(&llama));
    for entry in fs::read_dir(folder.path().join("profiles")).expect("a stored profile") {
        fs::write(entry.expect("a file").path(), "{\"version\": 1, \"dev").expect("damaged");
    }
    let got = program(&greedy(&llama));
    assert_eq!((got.code, &got.stdout), (Some(0), &want.stdout), "{got:?}");
    assert!(got.stderr.contains("the stored profile is not used"), "{got:?}");
}

#[test]
fn a_cached_model_that_was_damaged_is_not_verified() {
    const NAME: &str = "hf:owner/repo/model.gguf";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hf=owner+repo+model.gguf");
    fs::write(&file, "GGUF as it was fetched").expect("written");
    let record = serde_json::json!({
        "name": NAME, "source": NAME, "bytes": 22, "verified": true,
        "sha256": "48f9fba9fba83ce2bc41bac9a42ad9b95b8a1e4ff8d09b61d4ad42e5e8f8f0d3",
    });
    let pull = || {
        let mut program = lapwing(&["pull", NAME, "--json"]);
        program.env("LAPWING_CACHE", folder.path());
        ended(program)
    };
    let write = |sha256: &str| {
        let mut record = record.clone();
        record["sha256"] = sha256.into();
        fs::write(file.with_extension("json"), record.to_string()).expect("written");
    };
    let sum = Command::new("sha256sum").arg(&file).output().expect("sha256sum");
    let sum = text(&sum.stdout)[..64].to_owned();
    write(&sum);
    assert_eq!(pull().json()["verified"], true);
    fs::write(&file, "GGUF as it is damaged.").expect("written");
    let damaged = pull();
    // There is no network to fetch it again from.
    assert_eq!((damaged.code, &*damaged.stdout), (Some(1), ""), "{damaged:?}");
    assert!(damaged.stderr.contains(&sum), "{damaged:?}");
}

#[test]
fn a_model_that_is_truncated_while_programs_load_it_ends_none_by_a_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    let bytes = fs::read(model("llama.gguf")).expect("a model");
    fs::write(&path, &bytes).expect("written");
    let shown = path.display().to_string();
    let stop = AtomicBool::new(false);
    let runs = moments(30);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut keep = 0;
            while !stop.load(Ordering::Relaxed) {
                keep = (keep + 7919) % bytes.len();
                let file = fs::File::options().write(true).open(&path).expect("a file");
                file.set_len(keep as u64).expect("truncated");
                fs::write(&path, &bytes).expect("written");
            }
        });
        for _ in 0..runs {
            let ended = ended(lapwing(&greedy(&shown)));
            match ended.code {
                Some(0) => {}
                Some(1) => assert!(ended.stderr.contains("model.gguf"), "{ended:?}"),
                _ => panic!("{ended:?}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "moments of a run of that length")]
fn a_model_truncated_for_good_at_any_moment_of_a_run_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    let shown = path.display().to_string();
    let args = ["run", "-m", &shown, "--raw", "--temp", "0", "-n200", "ab"];
    let bytes = fs::read(model("llama.gguf")).expect("a model");
    let mut program = lapwing(&args);
    fs::write(&path, &bytes).expect("written");
    let start = std::time::Instant::now();
    assert_eq!(ended(lapwing(&args)).code, Some(0));
    let whole = start.elapsed();
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (moments, mut failed) = (moments(10), 0);
    for moment in 0..moments {
        fs::write(&path, &bytes).expect("written");
        let child = program.spawn().expect("a process");
        std::thread::sleep(whole * moment / moments);
        fs::File::options().write(true).open(&path).and_then(|f| f.set_len(0)).expect("truncated");
        let output = child.wait_with_output().expect("an end");
        let stderr = text(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            Some(1) if stderr.contains("model.gguf") => failed += 1,
            _ => panic!("moment {moment}: {:?} {stderr}", output.status),
        }
    }
    assert!(failed > 0, "no run met the truncation");
}
