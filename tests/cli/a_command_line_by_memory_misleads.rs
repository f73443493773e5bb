//! Command lines with names of other programs, and text on stdin, do what they say, or end with one sentence.

use std::fs;

use crate::support::{Ended, chat_model, ended, ended_with_input, json, lapwing, model};

/// Greedy options of `run` with the tiny model, before a prompt.
fn greedy(more: &[&str]) -> Vec<String> {
    let llama = model("llama.gguf");
    let first = ["run", "-m", &llama, "--raw", "--temp", "0"];
    first.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

fn answer(more: &[&str]) -> Ended {
    let words = greedy(more);
    ended(lapwing(&words.iter().map(String::as_str).collect::<Vec<_>>()))
}

#[test]
fn options_of_llama_cpp_give_the_same_answer() {
    let want = answer(&["-n", "8", "ab"]);
    assert_eq!((want.code, &*want.stderr), (Some(0), ""), "{want:?}");
    let rows: [&[&str]; 8] = [
        &["--n-predict", "8", "-p", "ab"],
        &["-n", "8", "-fa", "on", "-ngl", "0", "-t", "2", "--no-mmap", "ab"],
        &["-n", "8", "--temperature", "0", "ab"],
        &["-n", "8", "-ctk", "f16", "-ctv", "f16", "-b", "512", "-ub", "512", "ab"],
        &["-n", "8", "-no-cnv", "ab"],
        &["-n", "8", "--ctx-size", "64", "ab"],
        &["-n", "8", "--jinja", "--color", "--prompt", "ab"],
        &["-n8", "-s", "-1", "ab"],
    ];
    for row in rows {
        // `--raw` and `--temp` may be given once.
        let mut words = greedy(&[]);
        words.retain(|word| !(row.contains(&"-no-cnv") && word == "--raw"));
        if row.contains(&"--temperature") {
            words.truncate(4);
        }
        let words: Vec<&str> =
            words.iter().map(String::as_str).chain(row.iter().copied()).collect();
        let found = ended(lapwing(&words));
        assert_eq!((found.code, &found.stdout), (Some(0), &want.stdout), "{row:?}: {found:?}");
    }
    let all = json(&[
        "run",
        "-m",
        &model("llama.gguf"),
        "-no-cnv",
        "-n",
        "-1",
        "-c",
        "20",
        "--ignore-eos",
        "--json",
        "ab",
    ]);
    let count = |field: &str| all[field].as_array().map_or(0, Vec::len);
    assert_eq!(count("prompt_ids") + count("ids"), 20);
}

#[test]
fn what_cannot_be_done_is_one_sentence_and_nothing_else() {
    let llama = model("llama.gguf");
    let m = llama.as_str();
    let rows: [(&[&str], &str); 9] = [
        (&["run", "-m", m, "-ngl", "99", "hi"], "--gpu-layers N"),
        (&["run", "-m", m, "--bad", "hi"], "has no option '--bad'"),
        (&["run", "-m", m, "-temp", "0", "hi"], "did you mean --temp?"),
        (&["run", "-m", m, "-fa", "off", "hi"], "leave it out"),
        (&["run", "smolm2", "hi"], "did you mean 'smollm2'?"),
        (&["run", "hello", "there"], "needs quotes: lapwing run \"hello there …\""),
        (&["bench", "-m", m, "-pg", "512,128"], "-d 512"),
        (&["stop", "x"], "--keep-alive"),
        (&["modles"], "`lapwing models`"),
    ];
    for (args, says) in rows {
        let found = ended(lapwing(args));
        assert_eq!((found.code, &*found.stdout), (Some(2), ""), "{args:?}: {found:?}");
        assert_eq!(found.stderr.lines().count(), 1, "{args:?}: {found:?}");
        assert!(found.stderr.contains(says), "{args:?}: {found:?}");
    }
    let wrong = ended(lapwing(&["run", "-m", m, "-n", "many", "hi"]));
    assert!(wrong.code == Some(2) && wrong.stderr.lines().count() == 2, "{wrong:?}");
}

#[test]
fn text_on_stdin_is_the_prompt_or_follows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("prompt.txt");
    fs::write(&file, "abc\n").expect("written");
    let file = file.display().to_string();
    let llama = model("llama.gguf");
    let ids = |args: &[&str], input: &str| {
        let first = ["run", "--raw", "--temp", "0", "-n", "1", "--json"];
        let found = ended_with_input(lapwing(&[&first, args].concat()), input);
        found.json()["prompt_ids"].clone()
    };
    let of = |text: &str| json(&["tokenize", "-m", &llama, "--json", "--", text])["ids"].clone();
    let rows: [(&[&str], &str, &str); 8] = [
        (&["-m", &llama, "abc"], "", "abc"),
        (&["-m", &llama, "abc"], "\n", "abc"),
        (&["-m", &llama, "abc"], "text\n", "abc\n\ntext"),
        (&["-m", &llama], "text\n", "text"),
        (&["-m", &llama, "-"], "text", "text"),
        (&["-m", &llama, "abc", "-"], "text", "abc\n\ntext"),
        (&["-m", &llama, "-f", &file], "text", "abc\n\ntext"),
        (&[&llama, "abc", "de"], "", "abc de"),
    ];
    for (args, input, prompt) in rows {
        assert_eq!(ids(args, input), of(prompt), "{args:?} with {input:?}");
    }
    let none = ended(lapwing(&["run", "-m", &llama]));
    assert!(none.code == Some(2) && none.stderr.contains("no prompt"), "{none:?}");
}

#[cfg(unix)]
#[test]
fn a_model_without_a_prompt_is_a_conversation_on_a_terminal() {
    use crate::support::on_terminal;
    let folder = tempfile::tempdir().expect("a folder");
    let chat = chat_model(folder.path());
    for args in [
        &["run", &chat, "-n", "4"][..],
        &["run", "-m", &chat, "-cnv", "-n", "4"],
        &["chat", &chat, "-n", "4"],
    ] {
        let steps = serde_json::json!([{"wait": "> "}, {"send": "/exit\r"}]);
        let done = on_terminal(args, steps, &[]);
        assert_eq!((done.code, done.restored), (0, true), "{args:?}: {done:?}");
    }
}

#[test]
fn short_help_fits_on_a_screen_and_long_help_has_everything() {
    let lines = |args: &[&str]| ended(lapwing(args)).stdout.lines().count();
    for command in ["run", "chat", "serve", "bench", "embed", "plan", "prepare"] {
        let (short, long) = (lines(&[command, "-h"]), lines(&[command, "--help"]));
        assert!(short <= 60 && long > short, "{command}: {short} and {long} lines");
    }
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    // The port of a socket that is closed again.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address").to_string();
    drop(socket);
    let silent = ended(lapwing(&["ps", "--server", &address]));
    assert_eq!((silent.code, &*silent.stdout), (Some(1), ""), "{silent:?}");
    let says = [format!("no server answers at {address}"), "`lapwing serve` starts one".to_owned()];
    assert!(says.iter().all(|part| silent.stderr.contains(part)), "{silent:?}");
}
