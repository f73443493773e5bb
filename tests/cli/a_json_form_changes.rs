//! The JSON of every command has exactly the fields that `docs/json.md` documents.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cases::all;
use crate::recordings::saved_reading;
use crate::support::{chat_model, ended_with_input, json, lapwing, model};

/// The first JSON example under a heading of `docs/json.md`.
fn documented(command: &str) -> Value {
    let docs = include_str!("../../docs/json.md");
    let section = docs.split(&format!("\n## {command}\n")).nth(1).expect(command);
    let block = section.split("```json\n").nth(1).expect("an example");
    serde_json::from_str(block.split("```").next().expect("its end")).expect("valid JSON")
}

/// Paths of all fields, except below those in `open`, whose content differs from file to file.
pub(crate) fn fields(value: &Value, open: &[&str]) -> BTreeSet<String> {
    fn walk(value: &Value, at: &str, open: &[&str], found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    found.insert(format!("{at}.{key}"));
                    if !open.contains(&key.as_str()) {
                        walk(inner, &format!("{at}.{key}"), open, found);
                    }
                }
            }
            Value::Array(items) => {
                items.iter().for_each(|i| walk(i, &format!("{at}[]"), open, found))
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    walk(value, "", open, &mut found);
    found
}

#[track_caller]
pub(crate) fn assert_documented(command: &str, printed: &Value, open: &[&str]) {
    assert_eq!(fields(printed, open), fields(&documented(command), open), "{command}: {printed}");
}

#[test]
fn run_has_the_documented_fields() {
    let llama = model("llama.gguf");
    let run = json(&["run", "-m", &llama, "--raw", "--temp", "0", "-n", "8", "--json", "ab"]);
    assert_documented("run", &run, &["energy"]);
    let count = |field: &str| run[field].as_array().expect(field).len();
    assert_eq!(count("ids"), count("logprobs"));
    assert!(count("ids") > 0 && count("ids") <= 8, "{run}");
    assert_eq!(run["timings"]["prompt_tokens"], count("prompt_ids"));
    assert!(run["logprobs"].as_array().expect("array").iter().all(|p| p.as_f64() <= Some(0.0)));
    assert!(run["timings"]["ttft_ms"].as_f64() > Some(0.0));
    let tokenized = json(&["tokenize", "-m", &llama, "--json", "ab"]);
    assert_documented("tokenize", &tokenized, &[]);
    assert_eq!(run["prompt_ids"], tokenized["ids"]);
    let list = json(&["tokenize", "-m", &llama, "--json", "--list", r#"["ab", ""]"#]);
    assert_eq!(list["ids"][0], tokenized["ids"]);
    assert_eq!(list["ids"].as_array().expect("lists").len(), 2);
}

#[test]
fn convert_has_the_documented_fields() {
    let new = tempfile::tempdir().expect("a folder");
    let new = new.path().join("new.gguf").display().to_string();
    assert_documented("convert", &json(&["convert", &model("llama.gguf"), &new, "--json"]), &[]);
}

#[test]
fn embed_has_the_documented_fields() {
    let llama = model("llama.gguf");
    let printed = json(&["embed", "-m", &llama, "--normalize", "--json", "ab", "abc"]);
    assert_documented("embed", &printed, &[]);
    let width = printed["width"].as_u64().expect("a width") as usize;
    let vectors = |printed: &Value, at: usize| -> Vec<Vec<f64>> {
        serde_json::from_value(printed["embeddings"][at]["vectors"].clone()).expect("vectors")
    };
    assert_eq!((vectors(&printed, 0).len(), vectors(&printed, 1)[0].len()), (1, width));
    let length: f64 = vectors(&printed, 0)[0].iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-6, "{printed}");
    // Lines of stdin are texts; as text, each vector is a line.
    let lines = ["embed", "-m", &llama, "--normalize", "--lines", "-"];
    let plain = ended_with_input(lapwing(&lines), "ab\n\nabc\n").stdout;
    for (at, line) in plain.lines().enumerate() {
        let values: Vec<f32> = line.split(' ').map(|x| x.parse().expect("a number")).collect();
        let same = |(a, b): (&f64, &f32)| *a as f32 == *b;
        assert!(vectors(&printed, at)[0].iter().zip(&values).all(same), "{line}");
    }
    assert_eq!(plain.lines().count(), 2);
    let each = json(&["embed", "-m", &llama, "--pooling", "none", "--json", "abc"]);
    assert_eq!(
        vectors(&each, 0).len() as u64,
        each["embeddings"][0]["tokens"].as_u64().expect("N")
    );
}

#[test]
fn rerank_has_the_documented_fields() {
    let reranker = model("../encoders/bert-rank.gguf");
    let documents = ["abc", "a b", "the"];
    let with = |more: &[&'static str]| {
        [&["rerank", "-m", &*reranker, "ab"][..], &documents, more].concat()
    };
    let printed = json(&with(&["--json"]));
    assert_documented("rerank", &printed, &[]);
    let results = printed["results"].as_array().expect("results");
    let score = |at: usize| results[at]["score"].as_f64().expect("a score");
    assert!(results.len() == 3 && score(0) >= score(1) && score(1) >= score(2), "{printed}");
    for found in results {
        let index = found["index"].as_u64().expect("an index") as usize;
        assert_eq!(found["document"], documents[index], "{printed}");
    }
    let best = json(&with(&["--json", "--top", "1"]));
    assert_eq!(best["results"].as_array().expect("results"), &results[..1]);
    // Lines of stdin are documents; as text, each is a line, best first.
    let lines = ["rerank", "-m", &*reranker, "ab", "--lines", "-"];
    let plain = ended_with_input(lapwing(&lines), "abc\n\na b\nthe\n").stdout;
    let order: Vec<&str> = plain.lines().filter_map(|line| line.split('\t').nth(2)).collect();
    let wanted: Vec<&str> = results.iter().filter_map(|found| found["document"].as_str()).collect();
    assert_eq!(order, wanted);
}

#[test]
fn chat_has_the_documented_fields() {
    let folder = tempfile::tempdir().expect("folder");
    let chat = chat_model(folder.path());
    let args = ["chat", "-m", &chat, "-n", "3", "--json"];
    let answers = ended_with_input(lapwing(&args), "one\ntwo\n");
    assert_eq!((answers.code, answers.stdout.lines().count()), (Some(0), 2), "{answers:?}");
    for line in answers.stdout.lines() {
        let answer: Value = serde_json::from_str(line).expect("JSON");
        assert_documented("chat", &answer, &["timings"]);
        assert_eq!(fields(&answer["timings"], &[]), fields(&documented("run")["timings"], &[]));
    }
}

#[test]
fn perplexity_has_the_documented_fields() {
    let folder = tempfile::tempdir().expect("folder");
    let text = folder.path().join("text");
    std::fs::write(&text, "The quick brown fox jumps over the lazy dog. ".repeat(8))
        .expect("write");
    let text = text.display().to_string();
    let args = ["perplexity", "-m", &model("llama.gguf"), "-c", "32", "--json", &text];
    let printed = json(&args);
    assert_documented("perplexity", &printed, &[]);
    let number = |field: &str| printed[field].as_f64().expect(field);
    assert_eq!(number("windows"), (number("tokens") / 32.0).floor());
    // Of each window, ids 17 to 31 are scored.
    assert_eq!(number("scored"), number("windows") * 15.0);
    let nll = printed["window_mean_nll"].as_array().expect("array");
    let mean = nll.iter().filter_map(Value::as_f64).sum::<f64>() / nll.len() as f64;
    assert!((mean.exp() / number("perplexity") - 1.0).abs() < 1e-9, "{printed}");
}

#[test]
fn requantised_weights_have_the_documented_fields() {
    let (llama, requant) = (model("llama.gguf"), ["--requant", "q8_0", "--json"]);
    let inspected = json(&[&["inspect", &llama], &requant[..]].concat())["requant"].clone();
    let example = fields(&documented("requantised weights"), &["kept"]);
    assert_eq!(fields(&inspected, &["kept"]), example);
    // `--requant` has no effect on this model: every matrix is kept.
    let small = json(&[&["inspect", &model("format-q4_0.gguf")], &requant[..]].concat());
    assert_documented("requantised weights", &small["requant"], &[]);
    let run = ["run", "-m", &llama, "--raw", "-n", "1", "ab"];
    assert_eq!(json(&[&run[..], &requant].concat())["requant"], inspected);
    let bench = ["bench", "-m", &llama, "-p", "4", "-n", "0", "-r", "1"];
    assert_eq!(json(&[&bench[..], &requant].concat())["requant"], inspected);
    let compared = ["--strategy", "pipe,cpu-only", "-p", "9", "-n", "2"];
    let compared = json(&[&["bench", "-m", &llama, "-r", "1"], &compared[..], &requant].concat());
    assert_eq!(compared["requant"], inspected);
}

#[test]
fn inspect_has_the_documented_fields() {
    let printed = json(&["inspect", &model("llama.gguf"), "--json"]);
    assert_documented("inspect", &printed, &["metadata", "matrices"]);
    assert_eq!(printed["architecture"], "llama");
    assert_eq!(printed["metadata"]["tokenizer.ggml.bos_token_id"]["value"], 1);
    let tokens = &printed["metadata"]["tokenizer.ggml.tokens"];
    assert_eq!(tokens["value"].as_array().map(Vec::len), Some(8));
    assert!(tokens["length"].as_u64() > Some(256), "{tokens}");
    let sum = |list: &str| -> u64 {
        let items = printed[list].as_array().expect(list);
        items.iter().filter_map(|item| item["bytes"].as_u64()).sum()
    };
    assert_eq!(sum("tensors"), sum("formats"));
    let full = json(&["inspect", &model("llama.gguf"), "--json", "--full"]);
    let all = full["metadata"]["tokenizer.ggml.tokens"]["value"].as_array().map(Vec::len);
    assert_eq!(all, tokens["length"].as_u64().map(|n| n as usize));
}

#[test]
fn inspect_says_how_many_experts_there_are() {
    let mixture = model("qwen3moe.gguf");
    let printed = json(&["inspect", &mixture, "--json"]);
    let experts = serde_json::json!({ "count": 8, "used": 3 });
    assert_eq!(printed["hyper_parameters"]["experts"], experts);
}

#[test]
fn plan_has_the_documented_fields() {
    let llama = model("llama.gguf");
    let plan = ["plan", "-m", &llama, "-p", "135", "--device", "phone", "--json"];
    let more = ["--explain", "--strategy", "sequence-cut", "--draft", "self:q8_0"];
    let beside = ["--with", "streams=1,prompts=135"];
    let explained = json(&[&plan[..], &more, &beside].concat());
    // Devices without memory of their own need no transfers.
    assert_documented("plan", &explained, &["matrices", "transfers"]);
    let mut kinds = explained["chunks"][0]["kinds"].as_array().expect("kinds").iter();
    let divided = kinds.find(|kind| kind["parts"].as_array().map(Vec::len) == Some(2));
    let divided = divided.expect("a stage of two devices");
    assert_eq!(divided["parts"][0]["graphs"], serde_json::json!([128]));
    assert_eq!(divided["parts"][1]["rows"], serde_json::json!([128, 135]));
    let times = explained["candidates"].as_array().expect("candidates").iter();
    let times: Vec<f64> = times.filter_map(|c| c["predicted_ms"].as_f64()).collect();
    assert!(times.len() > 10 && times.is_sorted(), "{times:?}");
    // Options reach the strategies: another ratio makes another plan.
    let cut = |ratio: &str| {
        let row_cut = json(&[&plan[..], &["--strategy", "row-cut", "--ratio", ratio]].concat());
        row_cut["chunks"][0]["kinds"].to_string()
    };
    assert!(cut("1:1").contains("[0,1,2]"));
    assert!(cut("1:1:1").contains("[1,2,3]"));
    let gpu = ["inspect", &llama, "--device", "gpu=throttled", "--json"];
    assert_eq!(json(&gpu)["placement"]["strategy"], "gpu-only");
}

#[test]
fn the_other_commands_have_the_documented_fields() {
    let devices = json(&["devices", "--json"]);
    // A machine without a driver or library lists none of its devices, and one whose drivers work none that failed.
    let absent = |key: &&str| devices[*key].as_array().is_some_and(Vec::is_empty);
    let absent: Vec<&str> =
        ["opencl", "openvino", "qnn", "failed"].into_iter().filter(absent).collect();
    assert_documented("devices", &devices, &absent);
    let best = &devices["isa"]["best"];
    assert!(devices["isa"]["available"].as_array().expect("array").contains(best), "{devices}");
    let total = devices["memory"]["total_bytes"].as_u64();
    assert!(total > Some(1 << 20) && devices["memory"]["available_bytes"].as_u64() <= total);

    let models = json(&["models", "--json"]);
    assert_documented("models", &models, &[]);
    assert!(models["models"].as_array().expect("array").iter().all(|m| m["cached"] == false));

    let completions = json(&["completions", "bash", "--json"]);
    assert_documented("completions", &completions, &[]);
    assert!(completions["script"].as_str().is_some_and(|s| s.contains("tokenize")));
    assert_eq!(json(&["models", "--verify", "--json"]), serde_json::json!({"verified": []}));
}

#[test]
fn timeline_has_the_documented_fields() {
    let folder = tempfile::tempdir().expect("folder");
    let run = saved_reading(folder.path(), "run.lwt", 60_000);
    let other = saved_reading(folder.path(), "other.lwt", 70_000);
    let asked = ["--json", "--assert", "spans>0", "--what-if", "sync*0"];
    let one = json(&[&["timeline", &run], &asked[..]].concat());
    assert_documented("timeline", &one, &["meta"]);
    let two = json(&["timeline", &run, &other, "--json", "--assert", "a.spans>0"]);
    let mut both = fields(&documented("timeline of two files"), &["meta", "a", "b"]);
    both.insert(".asserts".to_owned());
    for field in ["metric", "expected", "value", "ok"] {
        both.insert(format!(".asserts[].{field}"));
    }
    assert_eq!(fields(&two, &["meta", "a", "b"]), both);
    let mut plain = one;
    for asked in ["asserts", "what_if"] {
        plain.as_object_mut().expect("object").remove(asked);
    }
    assert_eq!(fields(&two["a"], &["meta"]), fields(&plain, &["meta"]));
}

#[test]
fn simulations_have_the_documented_fields() {
    let short = ["-p", "64", "-n", "1", "--json"];
    let print = |args: &[&str]| json(&[args, &short[..]].concat());
    assert_documented("simulate", &print(&["simulate"]), &[]);
    let sweep = ["sweep", "--over", "strategy=pipe,auto", "--against", "strategy=pipe"];
    let sweep = [&sweep[..], &["--repeat", "2"]].concat();
    assert_documented("sweep", &print(&sweep), &["settings"]);
    assert_documented("what-if", &print(&["what-if", "npu.rate=2x"]), &[]);
    assert_documented("sensitivity", &print(&["sensitivity"]), &[]);
    let load = json(&["load", "--experiment", "vtc-proportional", "--until", "30", "--json"]);
    assert_documented("load", &load, &[]);
    let speculate = json(&["speculate", "-n", "50", "--json"]);
    assert_documented("speculate", &speculate, &[]);
    assert_documented("reproduce", &json(&["reproduce", "--json"]), &[]);
    // It takes as long as all other commands together.
    if all() {
        assert_documented("fit", &json(&["fit", "--json"]), &[]);
    }
}
