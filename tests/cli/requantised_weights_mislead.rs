//! `--requant` changes exactly the reported weights, and nothing changes without it.

use lapwing_kernels::weights::WeightFile;
use serde_json::{Value, json as value};

use crate::support::{ended, greedy_with_cache, json, lapwing, model, packed_files};

#[test]
fn requant_changes_the_weights() {
    let greedy = ["--temp", "0", "-n", "12", "--ignore-eos", "words that make a prompt"];
    let run = |more: &[&str]| {
        let llama = model("llama.gguf");
        let args =
            [&["run", "-m", &llama, "--raw", "--json", "--no-packed-cache"], &greedy[..], more];
        let ended = ended(lapwing(&args.concat()));
        (ended.json(), ended.stderr)
    };
    let first = |run: &Value| run["logprobs"][0].as_f64().expect("a number");
    let (stored, said) = run(&[]);
    assert!(stored["requant"].is_null() && said.is_empty(), "{said}");
    let mut seen = vec![stored["logprobs"].clone()];
    for (name, format, most) in [
        ("q8_0", "Q8_0", 0.1),
        ("Q4_1", "Q4_1", 1.0),
        ("q4_0", "Q4_0", 1.0),
        ("int8:row", "int8:row, stored as Q8_0", 0.1),
        ("int4:64:min", "int4:64:min, stored as Q4_1", 1.0),
        ("q5_1", "Q5_1", 0.5),
        // Rows have 64 and 96 columns.
        ("q4_k", "of them to Q5_0 because rows are not whole blocks of 256", 0.5),
    ] {
        let (run, said) = run(&["--requant", name]);
        let text = run["requant"]["text"].as_str().expect("text");
        assert_eq!(said, format!("{text}\n"));
        assert!(text.starts_with("requantised: ") && text.contains(format), "{text}");
        assert!(run["requant"]["bytes"].as_u64() < run["requant"]["stored_bytes"].as_u64());
        assert!(!seen.contains(&run["logprobs"]), "{name}");
        assert!((first(&run) - first(&stored)).abs() < most, "{name}: {run} {stored}");
        seen.push(run["logprobs"].clone());
    }
}

#[test]
fn a_converted_file_computes_what_requantising_at_load_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (llama, new) = (model("llama.gguf"), folder.path().join("new.gguf"));
    let path = new.display().to_string();
    for (form, file_type) in
        [("int8:row", 7), ("int4:64:min", 3), ("iq4_nl", 25), ("q3_k", 2), ("q4_0", 2)]
    {
        let convert = ["convert", &llama, &path, "--force", "--requant", form, "--json"];
        let converted = ended(lapwing(&convert));
        let (said, report) = (converted.stderr.clone(), converted.json());
        assert_eq!(said, format!("{}\n", report["requant"]["text"].as_str().expect("text")));
        let copied = report["formats"].as_array().expect("formats").iter();
        let changed = copied.filter(|of| of["copied"] == false).map(|of| &of["tensors"]);
        assert_eq!(changed.collect::<Vec<_>>(), [&report["requant"]["changed"]], "{report}");
        let run = |file: &str, more: &[&str]| {
            let prompt = ["--temp", "0", "-n", "12", "--ignore-eos", "words that make a prompt"];
            let args = ["run", "-m", file, "--raw", "--json", "--no-packed-cache"];
            ended(lapwing(&[&args, &prompt[..], more].concat())).json()
        };
        let (of_file, at_load) = (run(&path, &[]), run(&llama, &["--requant", form]));
        for field in ["prompt_ids", "ids", "logprobs"] {
            assert_eq!(of_file[field], at_load[field], "{form}: {field}");
        }
        assert_eq!(at_load["requant"], report["requant"]);
        let [old, new] = [&llama, &path]
            .map(|path| WeightFile::open(std::path::Path::new(path)).expect("a GGUF file"));
        let is_file_type = |key: &str| key == "general.file_type";
        for (key, value) in old.metadata().iter().filter(|(key, _)| !is_file_type(key)) {
            let kept = new.metadata().get(key).map(|value| format!("{value:?}"));
            assert_eq!(kept, Some(format!("{value:?}")), "{key}");
        }
        assert_eq!(new.metadata().u32("general.file_type").expect("a number"), file_type);
        assert!(new.metadata().get("general.quantization_version").is_some());
    }
    // The tensors have the form already.
    let again = folder.path().join("again.gguf").display().to_string();
    let again = ended(lapwing(&["convert", &path, &again, "--requant", "q4_0"]));
    assert!(again.stderr.contains("requantised to Q4_0: nothing"), "{}", again.stderr);
    let legacy = "tests/reference/legacy/ggjt-v1-f16.bin";
    let mut refused = lapwing(&["convert", legacy, &path, "--force", "--requant", "q4_0"]);
    let refused = refused.output().expect("an outcome");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("needs a GGUF file"), "{said}");
}

#[test]
fn requantising_nothing_is_reported() {
    let small = model("format-q4_0.gguf");
    let args = ["run", "-m", &small, "--raw", "--json", "--temp", "0", "-n", "4", "ab"];
    let stored = ended(lapwing(&args));
    let asked = ended(lapwing(&[&args[..], &["--requant", "q8_0"]].concat()));
    assert_eq!(asked.json()["logprobs"], stored.json()["logprobs"]);
    assert!(asked.stderr.contains("requantised to Q8_0: nothing"), "{}", asked.stderr);
}

#[test]
fn plans_and_kernels_are_of_the_requantised_format() {
    let llama = model("llama.gguf");
    let inspected = |more: &[&str]| json(&[&["inspect", &llama, "--json"], more].concat());
    let (stored, requantised) = (inspected(&[]), inspected(&["--requant", "q4_1"]));
    assert_eq!(stored["formats"], requantised["formats"], "the file is the same");
    let formats = |report: &Value| {
        let stages = report["placement"]["stages"].as_array().expect("stages").clone();
        let all = stages.into_iter().flat_map(|stage| {
            stage["matrices"].as_object().expect("matrices").keys().cloned().collect::<Vec<_>>()
        });
        all.collect::<Vec<String>>()
    };
    assert!(!formats(&stored).contains(&"Q4_1".to_owned()));
    assert!(formats(&requantised).iter().all(|format| format == "Q4_1"), "{requantised}");
    let kernels = ["devices", "--kernels", "-t", "1", "-m", &llama, "--requant", "q4_1", "--json"];
    let kernels = json(&kernels);
    assert_eq!(kernels["requant"], requantised["requant"]);
    for list in ["kernels", "measured"] {
        let all = kernels[list].as_array().expect(list);
        let mut products = all.iter().filter(|of| of["op"] == "matmul").peekable();
        assert!(products.peek().is_some(), "{kernels}");
        assert!(products.all(|of| of["format"] == "Q4_1"), "{kernels}");
    }
    let text = ended(lapwing(&["inspect", &llama, "--requant", "q4_1"])).stdout;
    assert!(text.contains(requantised["requant"]["text"].as_str().expect("text")), "{text}");
}

#[cfg(unix)]
#[test]
fn each_format_has_its_own_packed_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = |more: &[&str]| {
        let ended = greedy_with_cache(folder.path(), more);
        (ended.json()["logprobs"].clone(), ended.stderr)
    };
    let ways: [&[&str]; 3] = [&[], &["--requant", "q8_0"], &["--requant", "q4_0"]];
    let want = ways.map(|way| answer(&[way, &["--no-packed-cache"]].concat()));
    let kept = || {
        let inode =
            |path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).expect("a file"));
        let inodes = packed_files(folder.path()).into_iter().map(inode);
        inodes.collect::<std::collections::BTreeSet<u64>>()
    };
    assert_eq!(ways.map(&answer), want);
    let files = kept();
    assert_eq!(files.len(), 3);
    assert_eq!(ways.map(&answer), want);
    assert_eq!(kept(), files, "a file is made again");
}

#[cfg(unix)]
#[test]
fn ratios_of_different_weights_are_marked() {
    use crate::a_peer_misleads::{HONEST, program};
    let folder = tempfile::tempdir().expect("folder");
    let llama = model("llama.gguf");
    let bench = |args: &[&str]| lapwing(&[&["bench", "-m", &llama, "-t", "1"], args].concat());
    let vs = format!("llama.cpp={}", program(folder.path(), "fake", HONEST));
    let kept = folder.path().join("run.json").display().to_string();
    let args = ["-p", "8", "-n", "0", "-r", "1", "--vs", &vs];
    let stored = ended(bench(&[&args[..], &["-o", &kept, "--json"]].concat())).json();
    assert_eq!((&stored["same_weights"], &stored["requant"]), (&value!(true), &Value::Null));
    let asked = [&args[..], &["--requant", "q8_0", "--against", &kept]].concat();
    let requantised = ended(bench(&[&asked[..], &["--json"]].concat())).json();
    assert_eq!(requantised["same_weights"], false);
    assert_eq!(requantised["requant"]["format"], "Q8_0");
    let differs = requantised["against"]["differs"].to_string();
    assert!(differs.contains("was as stored") && differs.contains("Q8_0"), "{differs}");
    let text = ended(bench(&asked)).stdout;
    assert!(text.contains("on different weights"), "{text}");
    let calls = std::fs::read_to_string(format!("{}/fake.calls", folder.path().display()));
    assert!(!calls.expect("calls").contains("requant"), "it is ours only");
    // If nothing is changed, the weights are the same.
    let small = model("format-q4_0.gguf");
    let args = [&["bench", "-m", &small, "-t", "1", "--requant", "q8_0"], &args[..]].concat();
    assert_eq!(ended(lapwing(&[&args[..], &["--json"]].concat())).json()["same_weights"], true);
    let text = ended(lapwing(&args)).stdout;
    assert!(text.contains("requantised to Q8_0: nothing") && !text.contains("different"), "{text}");
}
