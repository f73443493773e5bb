//! Options of structured output.

use std::fs;

use crate::support::{ended, json, lapwing, model};

/// Output of `run --raw --json` on the tiny model with more options.
fn text(args: &[&str]) -> String {
    let llama = model("llama.gguf");
    let run = ["run", "-m", &llama, "--raw", "--json", "--temp", "1", "ab"];
    let answer = json(&[&run[..], args].concat());
    assert_eq!(answer["finish_reason"], "stop", "{answer}");
    answer["text"].as_str().expect("a text").to_owned()
}

#[test]
fn an_answer_follows_the_grammar_of_every_option() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let schema = r#"{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2,
                     "x-guidance":{"whitespace_flexible":false}}"#;
    for given in [schema.to_owned(), file("schema.json", schema)] {
        let answer = text(&["--json-schema", &given]);
        serde_json::from_str::<Vec<bool>>(&answer).unwrap_or_else(|e| panic!("{answer}: {e}"));
    }
    let gbnf = file("grammar.gbnf", "root ::= \"x\" [0-9]{2}\n");
    let lark = file("grammar.lark", "start: \"x\" /[0-9]{2}/\n");
    for option in [["--grammar", &gbnf], ["--grammar", &lark], ["--regex", "x[0-9]{2}"]] {
        let answer = text(&option);
        assert!(answer.len() == 3 && answer.starts_with('x'), "{option:?}: {answer}");
    }
}

#[test]
fn a_wrong_grammar_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let gbnf = folder.path().join("wrong.gbnf").display().to_string();
    fs::write(&gbnf, "root ::= \"a\" b\n").expect("written");
    let llama = model("llama.gguf");
    let rows: [(&[&str], i32, &str); 7] = [
        (&["--grammar", &gbnf], 1, "line 1, column 14: there is no rule 'b'"),
        (&["--regex", "("], 1, "regular expression"),
        (&["--json-schema", "{\"type\":7}"], 1, "JSON schema"),
        (&["--json-schema", "{"], 2, "no JSON"),
        (&["--json-schema", "missing.json"], 2, "cannot open the file"),
        (&["--grammar", "grammar.txt"], 2, ".gbnf or .lark"),
        (&["--regex", "a", "--ignore-eos"], 2, "cannot be used with"),
    ];
    for (args, code, says) in rows {
        let ended = ended(lapwing(&[&["run", "-m", &llama, "--raw", "ab"], args].concat()));
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{args:?}: {}", ended.stderr);
    }
}
