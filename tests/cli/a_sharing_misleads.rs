//! `--share-kv` shrinks the KV cache and the weights that are read, and is reported wherever it changes a
//! result.

use lapwing::{Engine, EngineBuilder};
use serde_json::Value;

use crate::support::{ended, greedy_with_cache, lapwing, model, packed_files};

#[test]
fn the_memory_of_keys_and_values_falls_with_the_layers_and_heads_that_remain() {
    let llama = model("llama.gguf");
    let of = |more: &[&str]| {
        let ended = ended(lapwing(&[&["inspect", "-m", &llama, "--json"], more].concat()));
        (ended.json()["kv_bytes_per_token"].as_u64().expect("bytes"), ended.stderr)
    };
    let (own, said) = of(&[]);
    assert!(!said.contains("shared"), "{said}");
    for (sharing, divisor) in [("layers=2", 2), ("heads=1", 2), ("layers=2,heads=1", 4)] {
        let (bytes, said) = of(&["--share-kv", sharing]);
        assert_eq!(bytes * divisor, own, "{sharing}");
        assert!(said.contains(&format!("shared keys and values: {sharing}")), "{said}");
    }
    let builder = || Engine::builder().model(&llama).threads(1);
    let shared = |text: &str| builder().share_kv(text.parse().expect(text));
    let bytes = |builder: EngineBuilder| builder.step_bytes(100).expect("bytes");
    assert!(bytes(shared("layers=2")) < bytes(builder()));
    assert!(bytes(shared("layers=2,heads=1")) < bytes(shared("layers=2")));
    let file = |builder: EngineBuilder| builder.identity().expect("an identity").file_name();
    assert_ne!(file(shared("layers=2")), file(builder()));
    assert_ne!(file(shared("layers=2")), file(shared("heads=1")));
}

#[test]
fn reports_name_the_sharing() {
    let folder = tempfile::tempdir().expect("folder");
    let kept = folder.path().join("run.json").display().to_string();
    let llama = model("llama.gguf");
    let args = ["bench", "-m", &llama, "-t", "1", "-p", "8", "-n", "0", "-r", "1"];
    let own = ended(lapwing(&[&args[..], &["-o", &kept, "--json"]].concat())).json();
    assert_eq!(own["share_kv"], Value::Null);
    let shared = [&args[..], &["--share-kv", "layers=2", "--against", &kept]].concat();
    let report = ended(lapwing(&[&shared[..], &["--json"]].concat())).json();
    assert_eq!(report["share_kv"], "layers=2", "{report}");
    let differs = report["against"]["differs"].to_string();
    assert!(differs.contains("sharing of keys and values is layers=2"), "{differs}");
    let text = ended(lapwing(&shared)).stdout;
    assert!(text.contains("shared keys and values: layers=2\n"), "{text}");
}

/// Each sharing packs other weights, in a file of its own.
#[cfg(unix)]
#[test]
fn packed_weights_are_those_of_the_sharing() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = |more: &[&str]| greedy_with_cache(folder.path(), more).json()["logprobs"].clone();
    let ways: [&[&str]; 3] = [&[], &["--share-kv", "layers=2"], &["--share-kv", "heads=1"]];
    let want = ways.map(|way| answer(&[way, &["--no-packed-cache"]].concat()));
    assert!(want[0] != want[1] && want[0] != want[2] && want[1] != want[2], "{want:?}");
    assert_eq!(ways.map(answer), want, "packed");
    assert_eq!(ways.map(answer), want, "read from the file");
    let files = packed_files(folder.path()).len();
    assert_eq!(files, 3);
}

#[test]
fn a_sharing_that_does_not_fit_is_an_error_that_says_what_does() {
    let llama = model("llama.gguf");
    for (sharing, code, expected) in [
        ("layers=0", 1, "give 1 to 2, its layers"),
        ("layers=3", 1, "give 1 to 2, its layers"),
        ("heads=0", 1, "a divisor of its 2 KV heads: 1, 2"),
        ("heads=3", 1, "a divisor of its 2 KV heads: 1, 2"),
        ("steps=2", 2, "sharing over steps is not offered"),
        ("layers", 2, "expected layers=N, heads=N or layers=N,heads=N"),
    ] {
        let args = ["run", "-m", &llama, "--raw", "-n", "1", "--share-kv", sharing, "a"];
        let ended = ended(lapwing(&args));
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{sharing}: {}", ended.stderr);
    }
}
