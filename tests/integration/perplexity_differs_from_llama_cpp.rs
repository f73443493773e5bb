//! Perplexity of fixed texts, computed as in llama-perplexity, by the command itself.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::cases::cases;
use crate::support::{GEMMA3, SMOLLM2, model, needs, number, reference};

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference");

/// The JSON report of a text.
fn perplexity(name: &str, text: &Path, more: &[&str]) -> Value {
    report(name, text, &[&["perplexity", "-t", "2"], more].concat())
}

/// The JSON report of a command that reads a text with `-f`.
fn report(name: &str, text: &Path, command: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_lapwing"))
        .args(command)
        .arg("--json")
        .arg("-m")
        .arg(model(name))
        .arg("-f")
        .arg(text)
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn assert_close(name: &str, found: &Value, wanted: f64, off_max: f64) {
    let found = number(&found["perplexity"]);
    let off = found / wanted - 1.0;
    println!("{name}: {found:.4}, llama.cpp {wanted:.4}, {:+.3} %", 100.0 * off);
    assert!(off.abs() <= off_max, "{name}: {found} for {wanted}");
}

/// With activations rounded to int8, over a text long enough to average out the rounding noise.
fn assert_within_a_third_of_a_percent(name: &str, key: &str) {
    const BYTES: usize = 50_000;
    let text = beginning("text148k.txt", BYTES);
    let found = perplexity(name, text.path(), &[]);
    let windows = found["windows"].as_u64().expect("windows") as usize;
    assert!(windows >= 25, "{name}: {windows} windows");
    let wanted = &reference("perplexity.json")["models"][key]["llama_perplexity_long"];
    assert_close(name, &found, number(&wanted["running"][windows - 1]), 0.003);
}

/// Without rounding, compared with llama.cpp with the same weights widened to f32. There is no noise that more windows
/// would average out, so that half of the windows are enough.
fn assert_exact_matches_f32_weights(name: &str, key: &str) {
    const WINDOWS: usize = 4;
    const BYTES: usize = 8_400;
    let text = beginning("text16k.txt", BYTES);
    let found = perplexity(name, text.path(), &["--exact"]);
    let wanted = &reference("perplexity.json")["models"][key]["f32_weights"];
    assert_eq!(number(&found["windows"]), WINDOWS as f64, "{name}");
    let whole = Path::new(REFERENCE).join("text16k.txt");
    let ids = &report(name, &whole, &["tokenize", "--no-special"])["ids"];
    let tokens = ids.as_array().expect("ids").len();
    assert_eq!(tokens as f64, number(&wanted["tokens"]), "{name}: tokens of the whole text");
    let scored_in_one = number(&wanted["scored"]) / number(&wanted["windows"]);
    assert_eq!(number(&found["scored"]), scored_in_one * WINDOWS as f64, "{name}");
    let nll = wanted["window_mean_nll"].as_array().expect("a number for each window");
    let mean = nll[..WINDOWS].iter().map(number).sum::<f64>() / WINDOWS as f64;
    assert_close(name, &found, mean.exp(), 0.0002);
}

/// A file with the first bytes of a text.
fn beginning(text: &str, bytes: usize) -> NamedTempFile {
    let whole = std::fs::read(Path::new(REFERENCE).join(text)).expect("the text");
    let mut text = NamedTempFile::new().expect("a file");
    text.write_all(&whole[..bytes]).expect("the beginning");
    text
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn smollm2_matches_llama_cpp() {
    needs!(SMOLLM2);
    assert_within_a_third_of_a_percent(SMOLLM2, "smollm2");
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn gemma3_matches_llama_cpp() {
    needs!(GEMMA3);
    assert_within_a_third_of_a_percent(GEMMA3, "gemma3");
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn exact_smollm2_matches_its_weights_in_f32() {
    needs!(SMOLLM2);
    assert_exact_matches_f32_weights(SMOLLM2, "smollm2");
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn exact_gemma3_matches_its_weights_in_f32() {
    needs!(GEMMA3);
    assert_exact_matches_f32_weights(GEMMA3, "gemma3");
}

#[test]
fn a_window_changes_perplexity_only_if_it_is_smaller_than_the_context() {
    needs!(SMOLLM2);
    // Quickly, a single window.
    let bytes = cases(1500, 4000);
    let text = beginning("text16k.txt", bytes);
    let of = |more: &[&str]| {
        let args = [&["-c", "256"], more].concat();
        perplexity(SMOLLM2, text.path(), &args)["window_mean_nll"].clone()
    };
    let own = of(&[]);
    assert_eq!(of(&["--attention", "window=1024"]), own);
    assert_eq!(of(&["--attention", "window=256"]), own);
    assert_ne!(of(&["--attention", "window=32"]), own);
}
