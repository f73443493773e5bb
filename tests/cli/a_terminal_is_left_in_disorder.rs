//! On a terminal: what a model writes does not steer it, and a signal leaves it as it was.

use lapwing::traces::Recording;
use serde_json::json;

use crate::support::{OnTerminal, chat_model, ended, lapwing, model, on_terminal};

const TERMINATE: (i32, i32) = (15, 143);
const HANG_UP: (i32, i32) = (1, 129);
const ENTER_SCREEN: &str = "\u{1b}[?1049h";
const LEAVE_SCREEN: &str = "\u{1b}[?1049l";

/// The ids of a text.
fn ids_of(text: &str) -> Vec<u64> {
    let llama = model("llama.gguf");
    let ids = ended(lapwing(&["tokenize", "-m", &llama, "--json", text])).json();
    let ids = ids["ids"].as_array().expect("ids");
    ids.iter().map(|id| id.as_u64().expect("an id")).collect()
}

/// The last id of a text.
fn id_of(text: &str) -> String {
    ids_of(text).last().expect("an id").to_string()
}

/// Asserts that the screen, the modes and the marking of pasted text are as before.
fn assert_restored(done: &OnTerminal) {
    assert!(done.restored, "the modes: {done:?}");
    for (on, off) in [(ENTER_SCREEN, LEAVE_SCREEN), ("\u{1b}[?2004h", "\u{1b}[?2004l")] {
        let order = (done.output.rfind(on), done.output.rfind(off));
        assert!(order.0 <= order.1, "{off:?} is missing: {done:?}");
    }
}

#[test]
fn control_characters_of_a_model_are_shown_on_a_terminal_and_kept_in_a_pipe() {
    let (llama, bias) = (model("llama.gguf"), format!("{}=1000", id_of("\u{1b}")));
    let args = ["run", "-m", &llama, "--raw", "-n", "3", "--logit-bias", &bias, "ab"];
    assert_eq!(ended(lapwing(&args)).stdout, "\u{1b}\u{1b}\u{1b}\n");
    let done = on_terminal(&args, json!([]), &[]);
    assert!(done.output.contains("␛␛␛\r\n"), "{done:?}");
    assert!(!done.output.contains("\u{1b}\u{1b}"), "{done:?}");
}

#[test]
fn a_signal_at_the_prompt_restores_the_terminal() {
    let folder = tempfile::tempdir().expect("folder");
    let chat = chat_model(folder.path());
    for (signal, code) in [TERMINATE, HANG_UP] {
        let steps =
            json!([{"wait": "> "}, {"send": "half a li"}, {"wait": "li"}, {"signal": signal}]);
        let done = on_terminal(&["chat", "-m", &chat, "--no-history"], steps, &[]);
        assert_eq!(done.code, code, "{done:?}");
        assert_restored(&done);
    }
}

#[test]
fn a_signal_in_the_view_restores_the_terminal_and_saves_the_recording() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("run.lwt").display().to_string();
    let llama = model("llama.gguf");
    let args = ["run", "-m", &llama, "--raw", "-n", "4", "--watch", "--trace", &path, "ab"];
    for (signal, code) in [TERMINATE, HANG_UP] {
        let steps = json!([{"wait": ENTER_SCREEN}, {"wait": "lapwing"}, {"signal": signal}]);
        let done = on_terminal(&args, steps, &[]);
        assert_eq!(done.code, code, "{done:?}");
        assert_restored(&done);
        Recording::load(&path).expect("a recording");
        std::fs::remove_file(&path).expect("the recording");
    }
}

#[test]
fn the_last_state_of_the_view_stays_until_a_key() {
    let (llama, bias) = (model("llama.gguf"), format!("{}=1000", id_of("x")));
    let args = ["run", "-m", &llama, "--raw", "-n", "4", "--watch", "--logit-bias", &bias, "ab"];
    let steps = json!([{"wait": "finished; any key ends the view"}, {"send": "k"}]);
    let done = on_terminal(&args, steps, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_restored(&done);
    let left = done.output.rfind(LEAVE_SCREEN).expect("it leaves the screen");
    assert!(done.output[left..].contains("xxxx\r\n"), "the answer is not printed: {done:?}");
}

#[test]
fn a_chat_names_its_model_and_its_context_in_colour_unless_told_not_to() {
    let folder = tempfile::tempdir().expect("folder");
    let chat = chat_model(folder.path());
    let args = ["chat", "-m", &chat, "--no-history", "-n", "2", "--ignore-eos"];
    let steps = json!([
        {"wait": "chat, context of 256 tokens"},
        {"wait": "> "},
        {"send": format!("{}\r", "x".repeat(130))},
        {"wait": "of 256 tokens of the context used"},
        {"wait": "> "},
        {"send": "/load missing.json\r"},
        {"wait": "cannot read the conversation missing.json"},
        {"wait": "> "},
        {"send": "\u{4}"},
    ]);
    let colours = ["\u{1b}[1m", "\u{1b}[1m\u{1b}[36m", "\u{1b}[2m"];
    for (envs, coloured) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let done = on_terminal(&args, steps.clone(), envs);
        assert_eq!(done.code, 0, "{done:?}");
        for colour in colours {
            assert_eq!(done.output.contains(colour), coloured, "{colour:?}: {done:?}");
        }
        assert_restored(&done);
    }
}

#[test]
fn a_chat_with_room_says_nothing_of_its_context() {
    let folder = tempfile::tempdir().expect("folder");
    let chat = chat_model(folder.path());
    let args = ["chat", "-m", &chat, "--no-history", "-n", "2", "--ignore-eos"];
    let steps = json!([
        {"wait": "> "}, {"send": "hello\r"}, {"wait": "length limit"}, {"wait": "> "}, {"send": "\u{4}"},
    ]);
    let done = on_terminal(&args, steps, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!done.output.contains("of the context used"), "{done:?}");
}

#[test]
fn answers_are_broken_between_words_on_a_terminal_only() {
    let llama = model("llama.gguf");
    // Answers in which letters and spaces take turns.
    let biases = [id_of("x"), id_of(" ")].map(|id| format!("{id}=1000"));
    let mut args = vec!["run", "-m", &llama, "--raw", "-n", "220", "--temp", "0"];
    args.extend(["--frequency-penalty", "20"]);
    biases.iter().for_each(|bias| args.extend(["--logit-bias", bias]));
    args.push("ab");
    let written = ended(lapwing(&args)).stdout;
    assert!(written.trim_end().len() > 200 && written.lines().count() == 1, "{written:?}");
    let shown = on_terminal(&args, json!([]), &[]).output;
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains('x')).collect();
    assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= 100), "{lines:?}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&lines.join(" ")), words(&written), "a word is broken or lost");
    // What a grammar describes may be read by a program.
    let exact = ["run", "-m", &llama, "--raw", "--regex", "(aa ){50}a", "ab"];
    let shown = on_terminal(&exact, json!([]), &[]).output;
    assert!(shown.contains(&"aa ".repeat(50)), "{shown:?}");
}

#[test]
fn a_terminal_without_other_characters_gets_ascii() {
    let llama = model("llama.gguf");
    let bias = format!("{}=1000", id_of("\u{1b}"));
    let args = ["run", "-m", &llama, "--raw", "-n", "3", "--logit-bias", &bias, "--watch", "ab"];
    let steps = json!([{"wait": "any key ends the view"}, {"send": "k"}]);
    for (envs, is_ascii) in [(&[("LC_ALL", "C")][..], true), (&[("LC_ALL", "C.UTF-8")][..], false)]
    {
        let done = on_terminal(&args, steps.clone(), envs);
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(done.output.is_ascii(), is_ascii, "{done:?}");
        for text in [&["run", "--help"][..], &["tokenize", "-m", &llama, "a\tb"]] {
            let mut command = lapwing(text);
            command.envs(envs.iter().copied());
            let ended = ended(command);
            assert_eq!(ended.stdout.is_ascii(), is_ascii, "{ended:?}");
        }
    }
}
