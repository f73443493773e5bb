//! A chat keeps the conversation, and its commands are not sent to the model.

use serde_json::Value;

use crate::support::{Ended, chat_model, ended_with_input, lapwing, model};

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

/// A chat of the tiny model with that input; `FOLDER` in it is an empty folder.
fn chat(input: &str) -> Ended {
    let folder = tempfile::tempdir().expect("folder");
    let chat = chat_model(folder.path());
    let input = input.replace("FOLDER", &folder.path().display().to_string());
    let args = ["chat", "-m", &chat, "-n", "2", "--ignore-eos", "--logit-bias", "42=1000"];
    ended_with_input(lapwing(&args), &input)
}

#[test]
fn every_command_is_obeyed() {
    let save = "hello\n/save FOLDER/a.json\n";
    let rows = [
        ("/help\n".to_owned(), "/system [TEXT|none]"),
        ("/nonsense\n".to_owned(), "unknown command /nonsense; the commands are:\n  /help"),
        ("/nonsense with words\n".to_owned(), "  /exit"),
        ("/stats maybe\n".to_owned(), "usage: /stats [on|off]"),
        ("/system\n".to_owned(), "(no instructions)"),
        ("/system Be brief.\n/system\n".to_owned(), "Be brief."),
        ("/system Be brief.\n/system none\n/system\n".to_owned(), "(no instructions)"),
        ("/set\n".to_owned(), "  max-tokens         2\n"),
        ("/set temp 0.25\n/set\n".to_owned(), "  temp               0.25\n"),
        ("/stats\n".to_owned(), "(no answer yet)"),
        ("hello\n/stats\n".to_owned(), "of 256 tokens of the context used"),
        ("/stats on\nhello\n".to_owned(), "2 generated"),
        (save.to_owned(), "a.json, "),
        (format!("{save}/clear\n/load FOLDER/a.json\n"), "(loaded 2 messages from "),
        ("/model\n".to_owned(), "chat, context of 256 tokens"),
        ("/model FOLDER/chat.gguf\nhello\n".to_owned(), "chat, context of 256 tokens"),
        ("/clear\n".to_owned(), "(conversation cleared)"),
        ("/exit\n/load missing\n".to_owned(), ""),
    ];
    for (input, reply) in rows {
        let ended = chat(&input);
        assert_eq!(ended.code, Some(0), "{input:?}: {ended:?}");
        assert!(ended.stderr.contains(reply), "{input:?}: {ended:?}");
    }
}

#[test]
fn a_command_that_fails_in_a_pipe_ends_the_chat() {
    let template = model("llama.gguf");
    let save = "hello\n/save FOLDER/a.json\n";
    let rows = [
        ("/set temp warm\n".to_owned(), "cannot set temp to 'warm'"),
        ("/set ctx 9\n".to_owned(), "unknown setting 'ctx'; the settings are temp"),
        ("/save FOLDER/none/a.json\n".to_owned(), "does not exist"),
        ("/save FOLDER\n".to_owned(), "cannot write"),
        ("/load FOLDER/missing.json\n".to_owned(), "cannot read the conversation"),
        ("/load FOLDER\n".to_owned(), "cannot read the conversation"),
        ("/load FOLDER/chat.gguf\n".to_owned(), "is not a saved conversation"),
        ("/model FOLDER/missing.gguf\n".to_owned(), "cannot open the model"),
        ("/model no-such-model\n".to_owned(), "no-such-model"),
        (format!("/model {template}\n"), "has no chat template"),
        (format!("{save}\"\"\"\nhalf\n"), "the input ends within a message"),
    ];
    for (input, reason) in rows {
        let ended = chat(&format!("{input}hello\n"));
        assert_eq!(ended.code, Some(1), "{input:?}: {ended:?}");
        assert!(ended.stderr.contains(reason), "{input:?}: {ended:?}");
    }
}

#[test]
fn a_loaded_conversation_is_continued() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("saved.json").display().to_string();
    let save = format!("/system be brief\nhello\n/save {file}\nhello\n");
    let saved = prompt_tokens(&[], &save);
    assert_eq!(prompt_tokens(&[], &format!("/load {file}\nhello\n")), saved[1..]);
    let form: Value = serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    assert_eq!(form["system"], "be brief");
    assert_eq!(form["messages"][0]["content"], "hello");
    assert_eq!(form["messages"][1]["role"], "assistant");
}

#[test]
fn a_message_in_quotes_is_sent_as_it_is() {
    let plain = prompt_tokens(&[], "/helpme is no command.\nabc\n");
    assert_eq!(plain.len(), 1, "a first word of letters after a slash is a command");
    let quoted = prompt_tokens(&[], "\"\"\"abc\"\"\"\n");
    assert_eq!(quoted, plain);
    let several = prompt_tokens(&[], "\"\"\"\n/help\nabc\n\"\"\"\n");
    assert!(several.len() == 1 && several[0] > plain[0], "{several:?}");
}

#[test]
fn json_has_only_answers_whatever_the_commands() {
    let folder = tempfile::tempdir().expect("folder");
    let chat = chat_model(folder.path());
    let args = ["chat", "-m", &chat, "--json", "-n", "1", "--ignore-eos"];
    let ended = ended_with_input(lapwing(&args), "/help\n/set\n/stats on\nhello\n/stats\n/model\n");
    assert_eq!(ended.json()["role"], "assistant");
}
