//! Perplexity over a fixed text, counted as llama-perplexity counts it, by the command itself.

use std::process::Command;

use serde_json::Value;

use crate::support::{GEMMA3, SMOLLM2, model, number, reference};

/// Compares with llama.cpp's perplexity in one of its settings, with these options of ours; the
/// largest difference is a share of it.
fn compare(name: &str, (key, setting): (&str, &str), more: &[&str], off_max: f64) {
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/text16k.txt");
    let output = Command::new(env!("CARGO_BIN_EXE_lapwing"))
        .args(["perplexity", "-t", "2", "--json"])
        .args(more)
        .arg("-m")
        .arg(model(name))
        .arg(text)
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let wanted = &reference("perplexity.json")["models"][key][setting];
    for count in ["tokens", "windows", "scored"] {
        assert_eq!(number(&found[count]), number(&wanted[count]), "{name}: {count}");
    }
    let (found, wanted) = (number(&found["perplexity"]), number(&wanted["perplexity"]));
    let off = found / wanted - 1.0;
    println!("{name} {more:?}: {found:.4}, llama.cpp {wanted:.4}, {:+.3} %", 100.0 * off);
    assert!(off.abs() <= off_max, "{name}: {found} for {wanted}");
}

#[test]
fn smollm2_is_within_half_a_percent() {
    compare(SMOLLM2, ("smollm2", "default"), &[], 0.005);
}

#[test]
fn gemma3_is_within_half_a_percent() {
    compare(GEMMA3, ("gemma3", "default"), &[], 0.005);
}

#[test]
fn exact_smollm2_is_that_of_its_weights_in_f32() {
    compare(SMOLLM2, ("smollm2", "f32_weights"), &["--exact"], 0.0002);
}

#[test]
fn exact_gemma3_is_that_of_its_weights_in_f32() {
    compare(GEMMA3, ("gemma3", "f32_weights"), &["--exact"], 0.0002);
}
