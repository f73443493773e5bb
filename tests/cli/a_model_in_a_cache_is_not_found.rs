//! Models in a cache are found, verified and removed by name, and without a request to the hub where that is
//! forbidden.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::json;

use crate::support::{ended, json as json_of, lapwing, model};

#[test]
fn no_request_is_sent_to_the_hub_where_that_is_forbidden() {
    let hub = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", hub.local_addr().expect("an address"));
    for variable in ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"] {
        for args in [&["pull", "hf:o/r"][..], &["run", "-hf", "o/r", "hi"], &["pull", "qwen3"]] {
            let mut command = lapwing(args);
            command.env("HF_ENDPOINT", &endpoint).env(variable, "1");
            let refused = ended(command);
            assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
            assert!(
                refused.stderr.contains(&format!("{variable} forbids requests")),
                "{refused:?}"
            );
        }
    }
    hub.set_nonblocking(true).expect("set");
    let waits = hub.accept().expect_err("a request was sent");
    assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_model_of_hugging_faces_tools_is_used_where_it_is() {
    let shared = tempfile::tempdir().expect("a folder");
    let repository = shared.path().join("models--o--r");
    let snapshot = repository.join("snapshots/c0ffee");
    fs::create_dir_all(&snapshot).expect("created");
    fs::create_dir_all(repository.join("refs")).expect("created");
    fs::write(repository.join("refs/main"), "c0ffee").expect("written");
    let place = snapshot.join("tiny-Q8_0.gguf");
    fs::copy(model("llama.gguf"), &place).expect("copied");
    let with = |args: &[&str]| {
        let mut command = lapwing(args);
        command.env("HF_HUB_CACHE", shared.path());
        ended(command)
    };
    for name in ["hf:o/r", "hf.co/o/r:q8_0", "hf:o/r/tiny-Q8_0.gguf"] {
        let run = with(&["run", name, "--raw", "--temp", "0", "-n", "2", "--json", "ab"]).json();
        assert_eq!(run["model"], place.display().to_string(), "{name}");
    }
    let pulled = with(&["pull", "hf:o/r", "--json"]).json();
    assert_eq!((&pulled["path"], &pulled["verified"]), (&json!(place), &json!(false)));
    assert_eq!(pulled["bytes"], fs::metadata(&place).expect("it is there").len());
    let other = with(&["pull", "hf:o/r:Q4_0"]);
    assert!(other.code == Some(1) && other.stderr.contains("no answer from"), "{other:?}");
}

/// A cached model of that name, as a fetch leaves it.
fn cached(cache: &Path, name: &str) {
    let file = model("llama.gguf");
    fs::create_dir_all(cache).expect("created");
    fs::copy(&file, cache.join(format!("{name}.gguf"))).expect("copied");
    let bytes = fs::metadata(&file).expect("it is there").len();
    let record =
        json!({ "name": name, "source": "test", "bytes": bytes, "sha256": "0", "verified": false });
    fs::write(cache.join(format!("{name}.json")), record.to_string()).expect("written");
}

#[test]
fn cached_models_are_listed_verified_and_removed_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    cached(folder.path(), "gemma3-270m");
    cached(folder.path(), "qwen3-0.6b");
    let with = |args: &[&str]| {
        let mut command = lapwing(args);
        command.env("LAPWING_CACHE", folder.path());
        ended(command)
    };
    assert_eq!(with(&["list"]).stdout.matches("cached").count(), 2);
    // The record's SHA-256 is not that of the file.
    let one = with(&["models", "--verify", "gemma-3-270m"]);
    assert_eq!((one.code, one.stdout.lines().count()), (Some(1), 1), "{one:?}");
    assert!(one.stdout.starts_with("DAMAGED gemma3-270m"), "{one:?}");
    assert_eq!(with(&["models", "--verify"]).stdout.lines().count(), 2);
    let none = with(&["models", "--verify", "smollm2"]);
    assert!(
        none.code == Some(1) && none.stderr.contains("smollm2-135m-instruct is not in"),
        "{none:?}"
    );
    for name in ["gemma3-270m", "gemma3:270m", "gemma-3-270m"] {
        let args =
            ["simulate", "--soc", "phone", "--strategy", "cpu-only", "-p", "3", "-n", "0", "-m"];
        let run = with(&[&args[..], &[name, "--json"]].concat()).json();
        let found = run["model"].as_str().is_some_and(|path| path.ends_with("gemma3-270m.gguf"));
        assert!(found, "{name}: {run}");
    }
    let removed = with(&["rm", "gemma3:270m"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.stdout.starts_with("removed gemma3-270m ("), "{removed:?}");
    assert!(!folder.path().join("gemma3-270m.gguf").exists());
    let removed = with(&["models", "--remove", "qwen3", "--json"]).json();
    assert_eq!(removed["removed"], "qwen3-0.6b");
    assert_eq!(json_of(&["models", "--json"])["models"][1]["cached"], false);
}
