//! Helpers that call the program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::with_template::with_template;

/// A tiny model of random weights without a chat template; its vocabulary has every byte.
pub(crate) fn model(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny").join(name);
    path.display().to_string()
}

/// The program with these arguments, without access to the user's cache or the network.
pub(crate) fn lapwing(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lapwing"));
    command
        .args(args)
        .env("LAPWING_CACHE", empty_folder())
        .env("XDG_STATE_HOME", empty_folder())
        .env("HF_ENDPOINT", "http://127.0.0.1:9")
        .env("HF_HUB_CACHE", empty_folder())
        .env_remove("HF_HUB_OFFLINE")
        .env_remove("TRANSFORMERS_OFFLINE")
        .env_remove("LAPWING_LISTEN")
        .env("PIP_INDEX_URL", "http://127.0.0.1:9")
        .env("PIP_RETRIES", "0")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("LAPWING_HISTORY")
        .stdin(Stdio::null());
    command
}

fn empty_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("nothing-here")
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    fn of(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    /// The one line of JSON on stdout.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).expect("stdout is JSON")
    }
}

/// Generates a few greedy tokens with the tiny model, as JSON, with that cache folder.
pub(crate) fn greedy_with_cache(cache: &Path, more: &[&str]) -> Ended {
    let llama = model("llama.gguf");
    let greedy = ["run", "-m", &llama, "--raw", "--json", "--temp", "0", "-n", "8", "ab"];
    let mut command = lapwing(&[&greedy[..], more].concat());
    command.env("LAPWING_CACHE", cache);
    ended(command)
}

/// Files of packed weights in a cache, without their markers.
pub(crate) fn packed_files(cache: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(cache.join("packed")).expect("a folder");
    let paths = files.map(|file| file.expect("a file").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "lwp")).collect()
}

/// Runs a command to its end.
pub(crate) fn ended(mut command: Command) -> Ended {
    Ended::of(command.output().expect("the program starts"))
}

/// Runs a command to its end, with a text on stdin.
pub(crate) fn ended_with_input(mut command: Command, input: &str) -> Ended {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).expect("the program reads");
    drop(stdin);
    Ended::of(child.wait_with_output().expect("the program ends"))
}

/// Calls the program and parses its JSON.
pub(crate) fn json(args: &[&str]) -> serde_json::Value {
    ended(lapwing(args)).json()
}

/// A copy of the tiny llama model with a chat template that writes each message as `role:content;`.
pub(crate) fn chat_model(folder: &Path) -> String {
    let template = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
    with_template(Path::new(&model("llama.gguf")), template, folder).display().to_string()
}

/// What a program did on a terminal.
#[cfg(unix)]
#[derive(Debug, serde::Deserialize)]
pub(crate) struct OnTerminal {
    /// Everything it wrote.
    pub(crate) output: String,
    /// Exit code; negative after a signal that it did not handle.
    pub(crate) code: i32,
    /// Whether the terminal's modes are those from before.
    pub(crate) restored: bool,
    problem: Option<String>,
}

/// Runs the program on a terminal of its own: `steps` wait for output, type and send signals, as
/// `on_terminal.py` describes.
#[cfg(unix)]
pub(crate) fn on_terminal(
    args: &[&str],
    steps: serde_json::Value,
    envs: &[(&str, &str)],
) -> OnTerminal {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/on_terminal.py");
    // The variables that `lapwing` sets and removes, for the script and so for the program.
    let base = lapwing(&[]);
    let mut command = Command::new("python3");
    command.arg(script).arg(steps.to_string()).arg(env!("CARGO_BIN_EXE_lapwing")).args(args);
    for (key, value) in base.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    command.env("TERM", "xterm-256color").envs(envs.iter().copied());
    let ended = ended(command);
    assert_eq!(ended.code, Some(0), "python3 with its pty module is needed: {ended:?}");
    let done: OnTerminal = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(done.problem, None, "{done:?}");
    done
}
