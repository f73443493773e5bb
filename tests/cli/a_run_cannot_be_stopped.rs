//! Ctrl-C, other signals and a closed stdout end the program at once.

use std::io::{BufRead, BufReader, Read};
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{lapwing, model};

#[cfg(unix)]
#[test]
fn a_signal_ends_the_program_while_the_engine_computes() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        ends_after(name, code);
    }
}

#[cfg(unix)]
fn ends_after(name: &str, code: i32) {
    let args = ["bench", "-m", &model("llama.gguf"), "-p", "200", "-n", "200", "-r", "1000000"];
    let mut child = lapwing(&[&args[..], &["--json"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    assert_eq!(line, "measuring pp200\n");
    let kill = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(code), "{name}");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("UTF-8");
    child.stdout.take().expect("piped").read_to_string(&mut rest).expect("UTF-8");
    assert_eq!(rest, "", "nothing more is said");
}

/// A folder with a program `python3` that acts as a pip that downloads for a minute, and the file into
/// which it writes its process id.
#[cfg(unix)]
fn slow_pip(folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;

    let pid = folder.join("pid");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) exit 0;; esac\necho $$ > '{0}.new'\n\
         mv '{0}.new' '{0}'\nexec sleep 60\n",
        pid.display()
    );
    let program = folder.join("python3");
    std::fs::write(&program, script).expect("a program");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it can run");
    pid
}

#[cfg(target_os = "linux")]
#[test]
fn pip_ends_with_the_program_whatever_ended_it() {
    let rows = [("-INT", Some(130)), ("-TERM", Some(143)), ("-HUP", Some(129)), ("-KILL", None)];
    for (name, code) in rows {
        let folder = tempfile::tempdir().expect("a folder");
        let pid_file = slow_pip(folder.path());
        let path = std::env::var("PATH").expect("a path");
        let mut child = lapwing(&["pull", "smollm2"])
            .env("LAPWING_CACHE", folder.path().join("cache"))
            .env("PATH", format!("{}:{path}", folder.path().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        wait_until("pip runs", || pid_file.exists());
        let kill = Command::new("kill").args([name, &child.id().to_string()]).status();
        assert!(kill.expect("kill").success());
        assert_eq!(child.wait().expect("it ends").code(), code, "{name}");
        let pid = std::fs::read_to_string(&pid_file).expect("an id");
        let status = format!("/proc/{}/status", pid.trim());
        wait_until(&format!("pip ends after {name}"), || {
            !std::fs::read_to_string(&status).is_ok_and(|text| !text.contains("State:\tZ"))
        });
    }
}

/// Looks again and again, for at most 30 seconds.
#[cfg(target_os = "linux")]
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1500 {
        if holds() {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    panic!("not within 30 s: {what}");
}

#[cfg(unix)]
#[test]
fn a_program_that_survives_a_hang_up_goes_on() {
    let llama = model("llama.gguf");
    let line = "trap '' HUP; exec \"$0\" \"$@\"";
    let mut child = Command::new("sh")
        .args(["-c", line, env!("CARGO_BIN_EXE_lapwing")])
        .args(["bench", "-m", &llama, "-p", "200", "-n", "200", "-r", "1000000", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stderr.take().expect("piped")).read_line(&mut line).expect("a line");
    let signal = |name: &str| {
        let kill = Command::new("kill").args([name, &child.id().to_string()]).status();
        assert!(kill.expect("kill").success());
    };
    signal("-HUP");
    signal("-TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
}

#[test]
fn a_closed_stdout_ends_the_program_silently() {
    let llama = model("llama.gguf");
    let rows: [&[&str]; 5] = [
        &["inspect", &llama, "--full"],
        &["run", "-m", &llama, "--raw", "--temp", "0", "ab"],
        &["run", "-m", &llama, "--raw", "--json", "ab"],
        &["completions", "zsh"],
        &["--help"],
    ];
    for args in rows {
        let mut child = lapwing(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{args:?}");
    }
}
