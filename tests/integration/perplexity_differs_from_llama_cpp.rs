//! Perplexity over a fixed text, counted as llama-perplexity counts it, by the command itself.

use std::process::Command;

use serde_json::Value;

use crate::support::{GEMMA3, SMOLLM2, model, number, reference};

fn compare(name: &str, key: &str) {
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/text16k.txt");
    let output = Command::new(env!("CARGO_BIN_EXE_lapwing"))
        .args(["perplexity", "-t", "2", "--json", "-m"])
        .arg(model(name))
        .arg(text)
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let wanted = &reference("perplexity.json")["models"][key]["default"];
    for count in ["tokens", "windows", "scored"] {
        assert_eq!(number(&found[count]), number(&wanted[count]), "{name}: {count}");
    }
    let (found, wanted) = (number(&found["perplexity"]), number(&wanted["perplexity"]));
    let off = found / wanted - 1.0;
    println!("{name}: {found:.4}, llama.cpp {wanted:.4}, {:+.3} %", 100.0 * off);
    assert!(off.abs() <= 0.005, "{name}: {found} for {wanted}");
}

#[test]
fn smollm2_is_within_half_a_percent() {
    compare(SMOLLM2, "smollm2");
}

#[test]
fn gemma3_is_within_half_a_percent() {
    compare(GEMMA3, "gemma3");
}
