//! Ctrl-C and a closed stdout end the program at once.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::support::{lapwing, model};

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_program_while_the_engine_computes() {
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
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("UTF-8");
    child.stdout.take().expect("piped").read_to_string(&mut rest).expect("UTF-8");
    assert_eq!(rest, "", "nothing more is said");
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
