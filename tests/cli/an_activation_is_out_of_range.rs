//! Int8 activations with fixed scales need measured ranges; what is missing is named, and outliers are reported.

use std::path::Path;

use serde_json::Value;

use crate::a_prediction_misleads::with_cache;
use crate::support::{Ended, model};

const ARRAY: &str = "npu=systolic:gflops=10000,gbps=10000,prepare=0,prepare-gweight=0";

fn text(folder: &Path) -> String {
    let text = folder.join("text");
    let words = "The quick brown fox jumps over the lazy dog; pack my box. ".repeat(12);
    std::fs::write(&text, words).expect("written");
    text.display().to_string()
}

fn perplexity(cache: &Path, name: &str, keys: &str, more: &[&str]) -> Ended {
    let devices = format!("cpu=cores:threads=1+{ARRAY}{keys}");
    let (model, text) = (model(name), text(cache));
    let args = ["perplexity", "-m", &model, "-c", "64", "--json", "--strategy", "chunk-graph"];
    with_cache(cache, &[&args[..], &["--device", &devices, &text], more].concat())
}

fn measure(cache: &Path, name: &str, more: &[&str]) -> Ended {
    let (model, text) = (model(name), text(cache));
    with_cache(cache, &[&["ranges", "-m", &model, "-c", "64", &text][..], more].concat())
}

#[test]
fn ranges_are_asked_for_found_and_bound_to_their_model() {
    let cache = tempfile::tempdir().expect("a folder");
    let q8 = "format-q8_0.gguf";
    let missing = perplexity(cache.path(), q8, ",activations=int8", &[]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("`lapwing ranges -m FILE.gguf TEXTFILE`"), "{missing:?}");

    let measured = measure(cache.path(), q8, &["--json"]).json();
    let products = measured["products"].as_array().expect("products");
    assert!(products.iter().all(|product| product["max"].as_f64() > Some(0.0)), "{measured}");
    let number =
        |report: &Value, name: &str| report["outliers"][0][name].as_u64().expect("a number");
    let found = perplexity(cache.path(), q8, ",clip=0.9", &[]).json();
    assert_eq!(found["outliers"].as_array().map(Vec::len), Some(1), "{found}");
    assert!(number(&found, "outliers") > 0 && number(&found, "shadowed") > 0, "{found}");
    let limited = perplexity(cache.path(), q8, ",outliers=none,clip=0.9", &[]).json();
    assert_eq!(number(&limited, "outliers"), 0, "{limited}");
    assert_ne!(found["perplexity"], limited["perplexity"]);

    let other = perplexity(cache.path(), "format-q4_0.gguf", ",activations=int8", &[]);
    assert!(other.code == Some(1) && other.stderr.contains("have not been measured"), "{other:?}");
    let masked = perplexity(cache.path(), q8, ",activations=int8", &["--attention", "window=8"]);
    assert!(
        masked.code == Some(1) && masked.stderr.contains("have not been measured"),
        "{masked:?}"
    );

    let file = measured["file"].as_str().expect("a path");
    let mut bytes = std::fs::read(file).expect("a file");
    *bytes.last_mut().expect("a byte") ^= 4;
    std::fs::write(file, bytes).expect("written");
    let damaged = perplexity(cache.path(), q8, ",activations=int8", &[]);
    assert!(
        damaged.code == Some(1) && damaged.stderr.contains("measure them again"),
        "{damaged:?}"
    );
}

#[test]
fn chunks_change_no_bit() {
    let cache = tempfile::tempdir().expect("a folder");
    let q8 = "format-q8_0.gguf";
    assert_eq!(measure(cache.path(), q8, &[]).code, Some(0));
    let keys = ",clip=0.95,prune=0.5";
    let whole = perplexity(cache.path(), q8, keys, &[]).json();
    for chunk in ["7", "32"] {
        let cut = perplexity(cache.path(), q8, keys, &["--chunk", chunk]).json();
        assert_eq!(cut["window_mean_nll"], whole["window_mean_nll"], "chunks of {chunk}");
    }
}

#[test]
fn what_cannot_be_computed_is_an_error_that_says_what_to_do() {
    let cache = tempfile::tempdir().expect("a folder");
    assert_eq!(measure(cache.path(), "llama.gguf", &[]).code, Some(0));
    for (keys, more, says) in [
        (",activations=int8", &[][..], "--requant int8:row"),
        (",outliers=none,prune=0.5", &[][..], "give one of them"),
        (",activations=fp8", &[][..], "must be int8, one fixed scale for each product"),
        (",clip=0", &[][..], "above 0, at most 1"),
        (",prune=2", &[][..], "0 to 1"),
        (",outliers=gpu", &[][..], "cpu, which computes them beside the array, or none"),
        (",activations=int8", &["--no-packed-cache"][..], "no --no-packed-cache"),
    ] {
        let ended = perplexity(cache.path(), "llama.gguf", keys, more);
        assert!(ended.code != Some(0) && ended.stderr.contains(says), "{keys} {more:?}: {ended:?}");
    }
    let requantised =
        perplexity(cache.path(), "llama.gguf", ",activations=int8", &["--requant", "int8:row"]);
    assert_eq!(requantised.code, Some(0), "{requantised:?}");
    let kept = measure(cache.path(), "llama.gguf", &["--no-packed-cache"]);
    assert!(
        kept.code == Some(2) && kept.stderr.contains("leave out --no-packed-cache"),
        "{kept:?}"
    );
}
