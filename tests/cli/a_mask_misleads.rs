//! `--attention` changes what rows see, and is reported wherever it changes a result.

use serde_json::{Value, json as value};

use crate::support::{ended, greedy_with_cache, lapwing, model};

/// A text of some hundred tokens.
fn text(folder: &std::path::Path) -> String {
    let path = folder.join("text");
    let words = (0..60).map(|i| format!("word {} makes {}; ", i * i % 23, i * 7 % 31));
    std::fs::write(&path, words.collect::<String>()).expect("write");
    path.display().to_string()
}

#[test]
fn perplexity_depends_on_a_window_only_if_it_hides_something() {
    let folder = tempfile::tempdir().expect("folder");
    let (llama, text) = (model("llama.gguf"), text(folder.path()));
    let of = |more: &[&str]| {
        let args = ["perplexity", "-m", &llama, "-c", "64", "-t", "1", &text];
        let json = ended(lapwing(&[&args[..], &["--json"], more].concat()));
        let shown = ended(lapwing(&[&args[..], more].concat())).stdout;
        (json.json(), json.stderr, shown)
    };
    let (own, said, shown) = of(&[]);
    assert!(own["attention"].is_null() && !said.contains("attention"), "{said}");
    assert!(!shown.contains("attention"), "{shown}");
    let without = |mut report: Value| {
        report.as_object_mut().expect("an object").remove("attention");
        report
    };
    let (wide, said, shown) = of(&["--attention", "window=64"]);
    let masks = wide["attention"].clone();
    let mask = masks[0].as_str().expect("a mask");
    assert!(mask.ends_with(":window=64") && masks.as_array().map(Vec::len) == Some(1), "{masks}");
    assert!(said.contains(mask) && shown.contains(&format!("attention: {mask}")), "{said}{shown}");
    assert_eq!(without(wide), without(own.clone()), "nothing is hidden");
    let mut seen = vec![own["window_mean_nll"].clone()];
    for mask in [
        &["window=4"][..],
        &["dilated=8x3"],
        &["block-sparse=16:0-0,1-1,2-0,2-2,3-1,3-3"],
        &["window=4", "1:causal"],
    ] {
        let args: Vec<&str> = mask.iter().flat_map(|mask| ["--attention", mask]).collect();
        let (masked, _, _) = of(&args);
        assert!(!seen.contains(&masked["window_mean_nll"]), "{mask:?}");
        seen.push(masked["window_mean_nll"].clone());
    }
}

#[test]
fn bench_reports_masks_and_compares_runs_by_them() {
    let folder = tempfile::tempdir().expect("folder");
    let llama = model("llama.gguf");
    let kept = folder.path().join("run.json").display().to_string();
    let args = ["bench", "-m", &llama, "-t", "1", "-p", "8", "-n", "0", "-r", "1"];
    let own = ended(lapwing(&[&args[..], &["--save", &kept, "--json"]].concat())).json();
    assert_eq!(own["attention"], Value::Null);
    let masked = [&args[..], &["--attention", "0:window=3", "--against", &kept]].concat();
    let report = ended(lapwing(&[&masked[..], &["--json"]].concat())).json();
    assert_eq!(report["attention"][0], value!("0:window=3"), "{report}");
    let differs = report["against"]["differs"].to_string();
    assert!(differs.contains("mask of attention is 0:window=3"), "{differs}");
    let text = ended(lapwing(&masked)).stdout;
    assert!(text.contains("attention: 0:window=3 "), "{text}");
}

/// Weights do not depend on masks: runs with and without one share the packed file.
#[cfg(unix)]
#[test]
fn packed_weights_are_shared_and_change_no_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = |more: &[&str]| greedy_with_cache(folder.path(), more).json()["logprobs"].clone();
    let ways: [&[&str]; 2] = [&[], &["--attention", "window=2"]];
    let want = ways.map(|way| answer(&[way, &["--no-packed-cache"]].concat()));
    assert_ne!(want[0], want[1]);
    assert_eq!(ways.map(answer), want, "packed by the first");
    let files = std::fs::read_dir(folder.path().join("packed")).expect("a folder").count();
    assert_eq!(files, 1);
}
