//! A chat keeps the conversation, and its commands are not sent to the model.

use serde_json::Value;

use crate::support::{chat_model, ended_with_input, lapwing};

/// Prompt tokens of every answer.
fn prompt_tokens(args: &[&str], input: &str) -> Vec<u64> {
    let folder = tempfile::tempdir().expect("folder");
    let chat = chat_model(folder.path());
    let all = ["chat", "-m", &chat, "--json", "--ignore-eos", "-n", "1", "--logit-bias", "42=1000"];
    let ended = ended_with_input(lapwing(&[&all[..], args].concat()), input);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answers =
        ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    answers.map(|a| a["timings"]["prompt_tokens"].as_u64().expect("a count")).collect()
}

#[test]
fn earlier_turns_are_kept_and_commands_are_not_sent() {
    let counts = prompt_tokens(
        &[],
        "hello\nhello\n\n/help\n/nonsense\nhello\n/reset\nhello\n/exit\nhello\n",
    );
    let [first, second, third, anew] = counts[..] else { panic!("{counts:?}") };
    assert!(first < second && second < third, "{counts:?}");
    // Each turn adds the same question and the same answer.
    assert_eq!(second - first, third - second, "{counts:?}");
    assert_eq!(anew, first, "/reset forgets");
}

#[test]
fn a_reset_keeps_the_instructions() {
    let without = prompt_tokens(&[], "hello\n");
    let with = prompt_tokens(&["--system", "be brief"], "hello\n/reset\nhello\n");
    assert!(with[0] > without[0], "{with:?}");
    assert_eq!(with[0], with[1]);
}

#[test]
fn a_conversation_that_is_too_long_is_an_error() {
    let folder = tempfile::tempdir().expect("folder");
    let chat = chat_model(folder.path());
    let input = format!("hi\n{}\n", "x".repeat(400));
    let ended = ended_with_input(lapwing(&["chat", "-m", &chat, "-n", "2"]), &input);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the context holds 256"), "{ended:?}");
}
