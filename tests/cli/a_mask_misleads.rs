//! `--attention` changes what rows see, and is reported wherever it changes a result.

use lapwing::{AttentionRule, BlockList, Engine, EngineBuilder, Mask};
use serde_json::{Value, json as value};

use crate::support::{ended, greedy_with_cache, lapwing, model, packed_files};

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
    let own = ended(lapwing(&[&args[..], &["-o", &kept, "--json"]].concat())).json();
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
    let files = packed_files(folder.path()).len();
    assert_eq!(files, 1);
}

#[tokio::test]
async fn a_program_chooses_masks_as_the_command_line_does() {
    let ids: Vec<u32> = (0..60).map(|i| 5 + i * 7 % 40).collect();
    let builder = || Engine::builder().model(model("llama.gguf")).threads(1).context(64);
    let score = async |builder: EngineBuilder| {
        let engine = builder.build().await.expect("an engine");
        let masks = engine.attention().map(<[AttentionRule]>::to_vec);
        (engine.score(ids.clone(), 1).await.expect("scores"), masks)
    };
    let (own, masks) = score(builder()).await;
    assert_eq!(masks, None);
    let (wide, masks) = score(builder().attention(Mask::Window(60))).await;
    assert_eq!(wide, own);
    assert_eq!(masks.map(|masks| masks[0].mask.clone()), Some(Mask::Window(60)));
    let blocks = BlockList::local_and_global(16, 1, 1, 4).expect("a list");
    let typed = score(builder().attention(Mask::blocks(blocks))).await;
    assert_ne!(typed.0, own);
    let text = "block-sparse=16:0-0,1-0,1-1,2-0,2-2,3-0,3-3";
    let parsed = builder().attention(text.parse::<AttentionRule>().expect("a rule"));
    assert_eq!(score(parsed).await, typed);
}

#[test]
fn each_choice_of_masks_has_a_profile_of_its_own_and_costs_what_rows_see() {
    let builder = || Engine::builder().model(model("llama.gguf")).threads(1);
    let masked = || builder().attention(Mask::Window(8));
    let file = |builder: EngineBuilder| builder.identity().expect("an identity").file_name();
    assert_eq!(file(builder()), file(builder()));
    assert_ne!(file(builder()), file(masked()));
    assert_ne!(file(masked()), file(masked().attention(Mask::Window(9))));
    let bytes = |builder: EngineBuilder| builder.step_bytes(100).expect("bytes");
    assert_eq!(bytes(builder().attention(Mask::Window(101))), bytes(builder()));
    assert!(bytes(masked()) < bytes(builder()));
    let dilated = Mask::Dilated { count: 8, stride: 5 };
    assert_eq!(bytes(builder().attention(dilated)), bytes(masked()), "8 keys each");
}
