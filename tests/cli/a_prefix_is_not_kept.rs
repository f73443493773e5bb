//! `--prefix-cache DIR` keeps the prefixes of a command for the next one.

use crate::support::{chat_model, ended, ended_with_input, json, lapwing, model};

#[test]
fn every_command_leaves_its_prefixes_to_the_next_one() {
    let folder = tempfile::tempdir().expect("folder");
    let kept = folder.path().join("kept");
    let (kept, llama) = (kept.to_str().expect("UTF-8"), model("llama.gguf"));
    let text = "a b c d e f g h i j k l m n o p q r s t u v w x y z ".repeat(3);
    let run = |more: &[&str]| {
        let args = ["run", "--raw", "-m", &llama, "--temp", "0", "-n", "2", "--json", &text];
        let run = json(&[&args[..], more].concat());
        (run["timings"]["cached_tokens"].as_u64().expect("a count"), run["ids"].clone())
    };
    let keep = ["--prefix-cache", kept];
    let (cold, ids) = run(&keep);
    let (warm, same) = run(&keep);
    assert_eq!((cold, &ids), (0, &same));
    assert!(warm > 128, "whole pages of 32 tokens are kept, and a part of one: {warm}");
    assert_eq!(run(&[]).0, 0, "only if asked to");
    // With another type of keys and values nothing is the same.
    assert_eq!(run(&[&keep[..], &["--kv", "f32"]].concat()).0, 0);
    let written = |folder: &str| std::fs::read_dir(folder).expect("a folder").count();
    let files = written(kept);
    assert!(files >= 2, "each has a file of its own: {files}");

    let others = folder.path().join("others");
    let others = others.to_str().expect("UTF-8");
    let embedded = ended(lapwing(&["embed", "-m", &llama, "--prefix-cache", others, &text]));
    assert_eq!((embedded.code, written(others)), (Some(0), 1), "{embedded:?}");
    let chat = chat_model(folder.path());
    let args = ["chat", "-m", &chat, "-n", "2", "--ignore-eos", "--prefix-cache", others];
    let chatted = ended_with_input(lapwing(&args), "hello\n/exit\n");
    assert_eq!((chatted.code, written(others)), (Some(0), 2), "{chatted:?}");
}
