//! Every option has the documented effect.

use serde_json::Value;

use crate::support::{
    ended, ended_with_input, greedy_with_cache, json, lapwing, model, packed_files,
};

/// JSON of `run --raw` on the tiny model.
pub(crate) fn run(args: &[&str]) -> Value {
    let llama = model("llama.gguf");
    json(&[&["run", "-m", &llama, "--raw", "--json"], args].concat())
}

#[test]
fn a_seed_repeats_the_text() {
    let hot = ["--temp", "2", "--top-k", "0", "--min-p", "0", "--ignore-eos", "-n", "24", "ab"];
    let first = run(&hot);
    let seed = first["seed"].to_string();
    let again = run(&[&["--seed", &seed], &hot[..]].concat());
    assert_eq!((&again["ids"], &again["text"]), (&first["ids"], &first["text"]));
    let other = run(&[&["--seed", "1"], &hot[..]].concat());
    assert_ne!(other["ids"], first["ids"]);
}

#[test]
fn threads_chunks_and_instruction_sets_never_change_the_text() {
    let prompt = "some words that make a prompt of more than one chunk";
    let greedy = ["--temp", "0", "-n", "12", "--ignore-eos", prompt];
    let ids = run(&greedy)["ids"].clone();
    assert_eq!(ids.as_array().map(Vec::len), Some(12));
    for setting in [["-t", "1"], ["-t", "2"], ["--chunk", "7"], ["--isa", "generic"]] {
        assert_eq!(run(&[&setting[..], &greedy].concat())["ids"], ids, "{setting:?}");
    }
}

#[test]
#[cfg(any(target_os = "linux", target_os = "android"))]
fn cores_set_the_number_of_threads_and_are_reported() {
    let llama = model("llama.gguf");
    let available = lapwing_kernels::cpu::CoreSet::available().expect("affinity");
    let (first, all) = (available.cores()[0].to_string(), available.to_string());
    for (cores, more, threads) in
        [(&first, &[][..], 1), (&first, &["-t", "2"], 2), (&all, &[], available.cores().len())]
    {
        let args = [&["inspect", &llama, "--json", "--cores", cores], more].concat();
        let placed = json(&args)["placement"]["stages"][0]["kernels"].to_string();
        let plural = if threads == 1 { "" } else { "s" };
        let expected = format!("on {threads} thread{plural}, pinned to cores {cores} (");
        assert!(placed.contains(&expected), "{placed}: {expected}");
    }
    let bench = ["bench", "-m", &llama, "-p", "4", "-n", "0", "-r", "1", "--json"];
    assert_eq!(json(&bench)["cores"], Value::Null);
    let pinned = json(&[&bench[..], &["--cores", &first]].concat());
    assert_eq!((&pinned["cores"], &pinned["threads"]), (&first.into(), &1.into()));
    let devices = ended(lapwing(&["devices"])).stdout;
    assert!(devices.contains(&format!("(cores {all}; choose with --cores)")), "{devices}");
}

#[test]
fn inspect_summarises_before_it_lists_and_full_lists_every_tensor() {
    let llama = model("llama.gguf");
    let count = json(&["inspect", &llama, "--json"])["tensors"].as_array().map_or(0, Vec::len);
    let show = |more: &[&str]| ended(lapwing(&[&["inspect", &llama], more].concat())).stdout;
    let (short, full) = (show(&[]), show(&["--full"]));
    let rows = |text: &str| {
        let tensors = text.split("\ntensors (").nth(1).expect("tensors");
        let tensors = tensors.split("\n\n").next().expect("their end");
        tensors.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rows(&full).len(), count);
    let layers = rows(&short).into_iter().filter(|row| row.starts_with("blk.0-")).count();
    assert!(layers > 5 && rows(&short).len() < count, "{short}");
    let parts =
        ["layers ", "KV cache", "\nplacement\n", "\nformats\n", "\ntensors (", "\nmetadata\n"];
    let at: Vec<usize> = parts.iter().map(|part| short.find(part).expect(part)).collect();
    assert!(at.is_sorted(), "{short}");
    let mixture = ended(lapwing(&["inspect", &model("qwen3moe.gguf")])).stdout;
    assert!(mixture.contains("\nexperts: 8 in a layer, 3 for each row\n"), "{mixture}");
}

#[test]
fn kv_selects_the_type_of_the_cache() {
    let greedy = ["--temp", "0", "-n", "12", "--ignore-eos", "words that make a prompt"];
    let logprobs = |kv: &[&str]| run(&[kv, &greedy].concat())["logprobs"].clone();
    let kept = ["f32", "f16", "int8"].map(|kv| logprobs(&["--kv", kv]));
    assert_eq!(logprobs(&[]), kept[1]);
    assert!(kept[0] != kept[1] && kept[1] != kept[2], "{kept:?}");
    let first = |all: &Value| all[0].as_f64().expect("a number");
    for other in &kept[1..] {
        assert!((first(other) - first(&kept[0])).abs() < 0.1, "{kept:?}");
    }
}

#[test]
fn exact_activations_are_not_rounded() {
    let logprobs = |name: &str, more: &[&str]| {
        let model = model(name);
        let greedy = ["run", "-m", &model, "--raw", "--json", "--temp", "0", "-n", "4", "words"];
        json(&[&greedy[..], more].concat())["logprobs"].clone()
    };
    let first = |all: &Value| all[0].as_f64().expect("a number");
    let [rounded, exact] = [&[][..], &["--exact"]].map(|more| logprobs("format-q4_1.gguf", more));
    assert_ne!(rounded, exact);
    assert!((first(&rounded) - first(&exact)).abs() < 0.1, "{rounded} {exact}");
    let kept = ["--kv", "f32"];
    let [floats, same] =
        [&kept[..], &["--kv", "f32", "--exact"]].map(|more| logprobs("llama.gguf", more));
    assert_eq!(floats, same, "floats take activations as they are anyway");
}

#[test]
fn activations_may_have_one_scale_for_each_row() {
    let small = model("format-q4_0.gguf");
    let run = |more: &[&str]| {
        let args = ["run", "-m", &small, "--raw", "--json", "--temp", "0", "-n", "1", "abcd"];
        json(&[&args, more].concat())["logprobs"][0].as_f64().expect("a number")
    };
    let exact = run(&["--exact"]);
    let scales = ["block", "row", "row-min"].map(|scales| run(&["--activations", scales]));
    assert_eq!(scales[0], run(&[]));
    let distinct = |a: f64, b: f64| a != b && (a - b).abs() < 0.1;
    assert!(scales.iter().all(|scales| distinct(*scales, exact)), "{scales:?} {exact}");
    assert!(distinct(scales[0], scales[1]) && distinct(scales[1], scales[2]), "{scales:?}");
}

#[test]
fn the_size_of_the_cache_depends_on_its_type() {
    let bytes = |kv: &str| {
        let report = crate::support::json(&["inspect", &model("llama.gguf"), "--kv", kv, "--json"]);
        report["kv_bytes_per_token"].as_u64().expect("a number")
    };
    assert_eq!(bytes("f32"), 2 * bytes("f16"));
    assert!(bytes("int8") < bytes("f16"));
}

#[test]
fn packed_weights_are_cached_and_never_change_the_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = |more: &[&str]| {
        let ended = greedy_with_cache(folder.path(), more);
        (ended.json()["ids"].clone(), ended.stderr)
    };
    let packed = folder.path().join("packed");
    let (want, said) = answer(&["--no-packed-cache"]);
    assert_eq!((said, packed.exists()), (String::new(), false));
    for way in [&[][..], &[], &["--no-mmap"]] {
        assert_eq!(answer(way), (want.clone(), String::new()), "{way:?}");
    }
    // Where no file can be mapped, this option says why.
    let (ids, said) = answer(&["--mmap"]);
    assert!(ids == want && (said.is_empty() || said.contains("are not mapped: ")), "{said}");
    let kept = packed_files(folder.path());
    assert_eq!(kept.len(), 1);
    let file = &kept[0];
    let bytes = std::fs::read(file).expect("read");
    std::fs::remove_file(file).expect("removed");
    std::fs::write(file, &bytes[..bytes.len() / 2]).expect("written");
    let (ids, said) = answer(&[]);
    assert_eq!(ids, want);
    assert!(said.contains("are not used: it is damaged"), "{said}");
    assert_eq!(answer(&[]), (want.clone(), String::new()), "it was made again");
    std::fs::remove_dir_all(&packed).expect("removed");
    std::fs::write(&packed, b"").expect("a file in the folder's place");
    let (ids, said) = answer(&[]);
    assert!(ids == want && said.contains("could not be saved: cannot create"), "{said}");
}

#[test]
fn the_answer_ends_where_requested() {
    let llama = model("llama.gguf");
    let greedy = ["--temp", "0", "--ignore-eos", "-n", "30", "ab"];
    let whole = run(&greedy);
    let text = whole["text"].as_str().expect("text");
    assert_eq!(
        (&whole["finish_reason"], whole["ids"].as_array().map(Vec::len)),
        (&"length".into(), Some(30))
    );
    let stop: String = text.chars().skip(3).take(2).collect();
    let cut = run(&[&["--stop", &stop], &greedy[..]].concat());
    let expected = &text[..text.find(&stop).expect("it is in the text")];
    assert_eq!((cut["text"].as_str(), &cut["finish_reason"]), (Some(expected), &"stop".into()));
    let max = run(&["--temp", "0", "--ignore-eos", "-n", "max", "-c", "20", "ab"]);
    let tokens = |v: &Value| v.as_array().map_or(0, Vec::len);
    assert_eq!(tokens(&max["prompt_ids"]) + tokens(&max["ids"]), 20);
    let plain = ended(lapwing(&[&["run", "-m", &llama, "--raw"], &greedy[..]].concat()));
    assert_eq!((plain.stdout, plain.stderr), (format!("{text}\n"), String::new()));
}

#[test]
fn biases_and_penalties_have_an_effect() {
    let greedy = ["--temp", "0", "--ignore-eos", "-n", "16", "ab"];
    let plain = run(&greedy)["ids"].clone();
    let first = plain[0].as_u64().expect("an id");
    let forbidden = run(&[&["--logit-bias", &format!("{first}=-inf")], &greedy[..]].concat());
    assert!(!forbidden["ids"].as_array().expect("ids").contains(&first.into()), "{forbidden}");
    let wanted = run(&[&["--logit-bias", "42=1000"], &greedy[..]].concat());
    assert!(wanted["ids"].as_array().expect("ids").iter().all(|id| *id == 42), "{wanted}");
    for penalty in ["--repeat-penalty", "--presence-penalty", "--frequency-penalty"] {
        let bias = ["--logit-bias", "42=9", penalty, "100"];
        let ids = run(&[&bias[..], &greedy[..]].concat())["ids"].clone();
        let count = ids.as_array().expect("ids").iter().filter(|id| **id == 42).count();
        assert!(count <= 1, "{penalty}: {ids}");
    }
}

#[test]
fn a_prompt_is_the_same_as_argument_on_stdin_and_in_a_file() {
    let llama = model("llama.gguf");
    let base = ["run", "-m", &llama, "--raw", "--json", "--temp", "0", "-n", "4"];
    let expected = json(&[&base[..], &["two\nlines"]].concat())["prompt_ids"].clone();
    for end in ["", "\n", "\r\n"] {
        let input = format!("two\nlines{end}");
        let stdin = ended_with_input(lapwing(&[&base[..], &["-"]].concat()), &input).json();
        assert_eq!(stdin["prompt_ids"], expected, "{end:?}");
        let file = ended_with_input(lapwing(&[&base[..], &["-f", "-"]].concat()), &input).json();
        assert_eq!(file["prompt_ids"], expected, "{end:?}");
    }
}

#[test]
fn begin_and_control_tokens_follow_the_options() {
    let llama = model("llama.gguf");
    let ids = |args: &[&str]| {
        json(&[&["tokenize", "-m", &llama, "--json"], args].concat())["ids"].clone()
    };
    let with = ids(&["ab</s>"]);
    assert_eq!(with[0], 1, "the file requests the begin token");
    let count = |v: &Value| v.as_array().map_or(0, Vec::len);
    let without = ids(&["--no-bos", "ab</s>"]);
    assert_eq!(count(&without) + 1, count(&with));
    assert!(with.as_array().is_some_and(|ids| ids.contains(&2.into())), "{with}");
    let plain = ids(&["--no-special", "ab</s>"]);
    assert!(plain.as_array().is_some_and(|ids| !ids.contains(&2.into())), "{plain}");
    let kept = ended_with_input(lapwing(&["tokenize", "-m", &llama, "--json", "-"]), "ab\n").json();
    assert_eq!(kept["ids"], ids(&["ab\n"]), "the line feed at the end of stdin is text");
    let lines = ended(lapwing(&["tokenize", "-m", &llama, "ab</s>"])).stdout;
    assert_eq!(lines.lines().count(), count(&with));
    assert!(lines.contains("      1  '<s>'"), "{lines}");
}

#[test]
fn a_missing_chat_template_is_noted() {
    let llama = model("llama.gguf");
    let args = ["run", "-m", &llama, "--temp", "0", "-n", "4", "--json", "ab"];
    let ended = ended(lapwing(&args));
    assert!(ended.stderr.contains("no chat template"), "{ended:?}");
    assert_eq!(ended.json()["prompt_ids"], run(&["-n", "1", "ab"])["prompt_ids"]);
}

#[test]
fn statistics_go_to_stderr() {
    let llama = model("llama.gguf");
    let ended = ended(lapwing(&["run", "-m", &llama, "--raw", "-n", "4", "--stats", "ab"]));
    assert!(
        ended.stderr.contains("tok/s") && ended.stderr.contains("first token after"),
        "{ended:?}"
    );
    assert!(!ended.stdout.contains("tok/s"), "{ended:?}");
}

/// Placement of a prompt chunk on those devices, as reported by `inspect`.
fn placement(args: &[&str]) -> Value {
    let llama = model("llama.gguf");
    json(&[&["inspect", &llama, "--json"], args].concat())["placement"].clone()
}

#[test]
fn devices_strategies_and_placements_have_an_effect_and_never_change_the_text() {
    let prompt = "some words that make a prompt of more than one chunk of the least size there is";
    let greedy = ["--temp", "0", "-n", "12", "--ignore-eos", prompt];
    let ids = run(&greedy)["ids"].clone();
    let devices = ["--device", "cpu", "--device", "gpu=throttled+npu=systolic"];
    let names = |placement: &Value| -> Vec<String> {
        let stages = placement["stages"].as_array().expect("stages").iter();
        let parts = stages.flat_map(|s| s["parts"].as_array().expect("parts"));
        parts.map(|p| p["device"].as_str().expect("a name").to_owned()).collect()
    };
    for (strategy, runs) in [("cpu-only", "cpu"), ("gpu-only", "gpu"), ("row-cut", "npu")] {
        let chosen = [&devices[..], &["--strategy", strategy]].concat();
        let placed = placement(&chosen);
        assert_eq!(placed["strategy"], strategy);
        assert!(names(&placed).iter().any(|name| name == runs), "{strategy}: {placed}");
        assert_eq!(run(&[&chosen[..], &greedy].concat())["ids"], ids, "{strategy}");
    }
    let place = [&devices[..], &["--strategy", "cpu-only", "--place", "layers.*.ffn=npu"]].concat();
    let placed = placement(&place);
    assert!(names(&placed).iter().any(|name| name == "npu"), "{placed}");
    assert!(names(&placed).iter().any(|name| name == "cpu"), "{placed}");
    assert_eq!(run(&[&place[..], &greedy].concat())["ids"], ids, "placed by hand");
    let others = [
        ["--wait", "devices=spin"],
        ["--wait", "scheduler=blocking"],
        ["--permits", "1"],
        ["--policy", "fcfs"],
    ];
    for other in others {
        assert_eq!(run(&[&devices[..], &other, &greedy].concat())["ids"], ids, "{other:?}");
    }
}
