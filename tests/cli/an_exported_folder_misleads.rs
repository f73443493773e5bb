//! `lapwing export-hf`: what it writes, keeps and refuses. Ids are compared with those of Python's libraries in `tests/hugging_face`.

use std::fs;

use serde_json::Value;

use crate::a_json_form_changes::assert_documented;
use crate::support::{chat_model, ended, json, lapwing, model};

#[test]
fn a_folder_has_the_files_of_transformers() {
    let folder = tempfile::tempdir().expect("a folder");
    let into = folder.path().join("new");
    let shown = into.display().to_string();
    let done = ended(lapwing(&["export-hf", "-m", &chat_model(folder.path()), &shown]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(!done.stderr.contains("chat template"), "{}", done.stderr);
    let read = |name: &str| -> Value {
        assert!(done.stdout.contains(name), "{}", done.stdout);
        serde_json::from_slice(&fs::read(into.join(name)).expect(name)).expect("JSON")
    };
    assert_eq!(read("tokenizer.json")["model"]["type"], "BPE");
    assert_eq!(read("config.json")["model_type"], "llama");
    assert_eq!(read("generation_config.json")["eos_token_id"][0], 2);
    assert_eq!(read("special_tokens_map.json")["eos_token"], "</s>");
    let template = read("tokenizer_config.json")["chat_template"].clone();
    assert!(template.as_str().is_some_and(|text| text.contains("m.role")), "{template}");
    assert_eq!(fs::read_dir(&into).expect("a folder").count(), 5);
}

#[test]
fn export_hf_has_the_documented_fields() {
    let folder = tempfile::tempdir().expect("a folder");
    let into = folder.path().join("new").display().to_string();
    let printed = json(&["export-hf", "-m", &model("llama.gguf"), &into, "--json"]);
    assert_documented("export-hf", &printed, &[]);
    assert_eq!(printed["files"].as_array().expect("files").len(), 5);
}

#[test]
fn what_stands_in_the_way_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (into, llama) = (path("new"), model("llama.gguf"));
    let done = ended(lapwing(&["export-hf", "-m", &llama, &into]));
    assert!(done.stderr.contains("no chat template"), "{}", done.stderr);
    fs::write(path("file"), "mine").expect("written");
    let without_vocabulary = model("phi3.gguf");
    let cases: [(&[&str], &[&str]); 5] = [
        (&["-m", &llama, &into], &["tokenizer.json exists", "--force"]),
        (&["-m", &llama, &path("a/b")], &["the folder", "does not exist"]),
        (&["-m", &llama, &path("file")], &["file"]),
        (&["-m", &path("none.gguf"), &into], &["none.gguf"]),
        (&["-m", &without_vocabulary, &path("other")], &["phi3.gguf", "no tokenizer"]),
    ];
    for (args, parts) in cases {
        let done = ended(lapwing(&[&["export-hf"], args].concat()));
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        assert!(parts.iter().all(|part| done.stderr.contains(part)), "{}", done.stderr);
    }
    assert!(!folder.path().join("other").exists());
    let again = ended(lapwing(&["export-hf", "-m", &llama, &into, "--force"]));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}
