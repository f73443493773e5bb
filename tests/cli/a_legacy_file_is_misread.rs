//! Files older than GGUF: converted ones give the ids of the llama.cpp of their time
//! (tests/reference/legacy), and nothing is overwritten or half written.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{ended, lapwing, model};

/// A step at which the best two logits are closer than this may have another id: engines round
/// activations in different ways.
const CLOSE: f64 = 0.2;
/// Largest difference of a log-probability: activations are rounded to 8 bits, except with float weights. The bound
/// of those is for exact arithmetic, so they run with `--exact`: without it, attention is in bf16 pairs where the CPU
/// has them.
fn distance_max(file: &str) -> (f64, &'static [&'static str]) {
    match file.split(['-', '.']).rev().nth(1) {
        Some("f32" | "f16") => (0.01, &["--exact"]),
        Some("q8_0") => (0.1, &[]),
        _ => (0.2, &[]),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/legacy")
}

fn legacy(name: &str) -> String {
    folder().join(name).display().to_string()
}

/// The references, by file name.
fn references() -> Vec<Value> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder())
        .expect("a folder")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    paths.sort();
    let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).expect("a reference"));
    paths.iter().map(|path| read(path).expect("JSON")).collect()
}

#[test]
fn converted_models_continue_as_the_llama_cpp_of_their_time() {
    let out = tempfile::tempdir().expect("a folder");
    let references = references();
    assert_eq!(references.len(), 15);
    for reference in references {
        let file = reference["file"].as_str().expect("a name");
        let new = out.path().join(file).with_extension("gguf").display().to_string();
        let converted = ended(lapwing(&["convert", &legacy(file), &new, "--json"])).json();
        assert_eq!(converted["bytes"], fs::metadata(&new).expect("a file").len(), "{converted}");
        let text = reference["text"].as_str().expect("a text");
        let (distance_max, arithmetic) = distance_max(file);
        let greedy = ["run", "-m", &new, "--raw", "--temp", "0", "-n16", "--json", text];
        let run = ended(lapwing(&[&greedy[..], arithmetic].concat())).json();
        assert_eq!(run["prompt_ids"], reference["prompt_ids"], "{file}");
        let mut same = 0;
        for (at, step) in reference["steps"].as_array().expect("steps").iter().enumerate() {
            if run["ids"][at] != step[0] {
                assert!(step[2].as_f64() < Some(CLOSE), "{file}, step {at}: {step} {run}");
                break;
            }
            let distance = (run["logprobs"][at].as_f64().expect("a number")
                - step[1].as_f64().expect("a number"))
            .abs();
            assert!(distance < distance_max, "{file}, step {at}: {distance}");
            same += 1;
        }
        assert!(same >= 1, "{file}");
    }
}

#[test]
fn every_version_of_a_model_becomes_the_same_file() {
    let out = tempfile::tempdir().expect("a folder");
    let rows = [
        ("q4_0", &["ggml", "ggmf-v1", "ggjt-v1", "ggjt-v2", "ggjt-v3"][..]),
        ("q4_1", &["ggml", "ggmf-v1", "ggjt-v1", "ggjt-v2", "ggjt-v3"]),
        ("q8_0", &["ggjt-v1", "ggjt-v2", "ggjt-v3"]),
    ];
    for (format, versions) in rows {
        let convert = |version: &&str| {
            let new = out.path().join(format!("{version}-{format}.gguf"));
            let old = legacy(&format!("{version}-{format}.bin"));
            let ended = ended(lapwing(&["convert", &old, &new.display().to_string()]));
            assert_eq!(ended.code, Some(0), "{ended:?}");
            fs::read(new).expect("a file")
        };
        let files: Vec<Vec<u8>> = versions.iter().map(convert).collect();
        assert!(files.iter().all(|file| *file == files[0]), "{format}");
    }
}

#[test]
fn a_gguf_file_is_rewritten_without_change() {
    let out = tempfile::tempdir().expect("a folder");
    let new = out.path().join("new.gguf").display().to_string();
    let joined = model("llama-split-00001-of-00003.gguf");
    for old in [model("gemma3.gguf"), joined] {
        let report = ended(lapwing(&["convert", &old, &new, "--force", "--json"])).json();
        assert_eq!(report["from"], "GGUF");
        let run = |file: &str| {
            ended(lapwing(&["run", "-m", file, "--raw", "--temp", "0", "-n8", "--json", "ab"]))
                .json()["ids"]
                .clone()
        };
        assert_eq!(run(&new), run(&old), "{old}");
        let inspect = |file: &str| ended(lapwing(&["inspect", file, "--full", "--json"])).json();
        let tensors = |file: &str| inspect(file)["tensors"].as_array().map(Vec::len);
        assert_eq!(tensors(&new), tensors(&old));
    }
}

#[test]
fn nothing_is_overwritten_or_half_written() {
    let out = tempfile::tempdir().expect("a folder");
    let new = out.path().join("new.gguf");
    let shown = new.display().to_string();
    let whole = fs::read(legacy("ggjt-v1-q4_0.bin")).expect("a file");
    let cut = out.path().join("cut.bin");
    fs::write(&cut, &whole[..whole.len() - 1]).expect("written");
    let wide = out.path().join("wide.bin");
    let mut bytes = whole.clone();
    // The largest scale of binary32 in the first block of a matrix in Q4_0.
    let name = b"layers.0.feed_forward.w3.weight";
    let header = bytes.windows(name.len()).position(|w| w == name).expect("a matrix");
    let block = (header + name.len()).next_multiple_of(32);
    bytes[block..block + 4].copy_from_slice(&f32::MAX.to_le_bytes());
    fs::write(&wide, &bytes).expect("written");
    fs::write(&new, "mine").expect("written");
    let good = legacy("ggjt-v1-q4_0.bin");
    let (cut, wide) = (cut.display().to_string(), wide.display().to_string());
    let rows: [(&[&str], i32, &[&str]); 6] = [
        (&["convert", &good, &shown], 1, &["exists", "--force"]),
        (&["convert", &cut, &shown, "--force"], 1, &["cut.bin", "at byte", "does not fit"]),
        (&["convert", &wide, &shown, "--force"], 1, &["wide.bin", "scale", "binary16"]),
        (&["convert", "/no/file", &shown, "--force"], 1, &["/no/file"]),
        (&["convert", &good, &shown, "--force", "--rms-eps", "0"], 2, &["--rms-eps"]),
        (&["convert", &good, "/no/folder/x.gguf"], 1, &["/no/folder", "does not exist"]),
    ];
    for (args, code, says) in rows {
        let ended = ended(lapwing(args));
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(says.iter().all(|text| ended.stderr.contains(text)), "{args:?}: {ended:?}");
        assert_eq!(fs::read(&new).expect("a file"), b"mine", "{args:?}");
        assert_eq!(fs::read_dir(out.path()).expect("a folder").count(), 3, "{args:?}");
    }
    let refused = ended(lapwing(&["run", "-m", &good, "x"]));
    assert!(refused.stderr.contains("lapwing convert"), "{refused:?}");
}
