//! Errors go to stderr, say what to do, and leave stdout empty.

use std::fs;

use crate::support::{Ended, ended, ended_with_input, lapwing, model};

#[track_caller]
fn assert_fails(ended: &Ended, code: i32, says: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_eq!(ended.stdout, "", "{ended:?}");
    // Emulated devices are named before.
    let error = ended.stderr.lines().find(|line| !line.starts_with("note: "));
    assert!(error.is_some_and(|line| line.starts_with("error: ")), "{ended:?}");
    for part in says {
        assert!(ended.stderr.contains(part), "{part:?} is not in {ended:?}");
    }
}

/// Arguments, the exit code, and what the error says.
type Row<'a> = (&'a [&'a str], i32, &'a [&'a str]);

/// Each command line fails in that way, with and without `--json`.
#[track_caller]
fn assert_all_fail(rows: &[Row<'_>]) {
    for (args, code, says) in rows {
        assert_fails(&ended(lapwing(args)), *code, says);
        assert_fails(&ended(lapwing(&[*args, &["--json"]].concat())), *code, says);
    }
}

#[test]
fn errors_of_arguments_say_what_is_accepted() {
    let llama = model("llama.gguf");
    let m = llama.as_str();
    let rows: [Row<'_>; 30] = [
        (&["run", "-m", m], 2, &["no prompt", "-f FILE", "stdin"]),
        (&["tokenize", "-m", m], 2, &["no text", "-f FILE", "stdin"]),
        (&["run", "-m", m, "-f", m, "x"], 2, &["--file"]),
        (&["run", "-m", m, "--bad", "x"], 2, &["--bad"]),
        (&["run", "-m", m, "-n", "0", "x"], 2, &["at least 1", "max"]),
        (&["run", "-m", m, "-t", "0", "x"], 2, &["at least 1"]),
        (&["run", "-m", m, "--temp", "-1", "x"], 2, &["temperature is -1", "0 or more"]),
        (&["run", "-m", m, "--top-p", "1.5", "x"], 2, &["top_p is 1.5"]),
        (&["run", "-m", m, "--isa", "mmx", "x"], 2, &["mmx", "generic"]),
        (&["run", "-m", m, "--kv", "int4", "x"], 2, &["int4", "f32, f16, int8"]),
        (&["run", "-m", m, "--requant", "q3_x", "x"], 2, &["q3_x", "one of q8_0, q4_1, q4_0"]),
        (&["run", "-m", m, "--requant", "int4:48", "x"], 2, &["int4:48", "a multiple of 32"]),
        (&["run", "-m", m, "--requant", "int8:row:min", "x"], 2, &["int8:row:min", "GGUF has no"]),
        (&["run", "-m", m, "--attention", "wide", "x"], 2, &["'wide'", "dilated=COUNTxSTRIDE"]),
        (&["run", "-m", m, "--attention", "window=0", "x"], 2, &["window", "is 0", "at least 1"]),
        (&["run", "-m", m, "--attention", "0-99:causal", "x"], 1, &["0-99:causal", "layers 0 to"]),
        (
            &["run", "-m", m, "--attention", "block-sparse=4:0-0,1-1", "-c", "9", "x"],
            1,
            &["context is 9", "at most 8", "block-sparse"],
        ),
        (&["run", "-m", m, "--logit-bias", "7", "x"], 2, &["ID=BIAS"]),
        (&["run", "-m", m, "--logit-bias", "99999=1", "x"], 2, &["99999", "0 to"]),
        (&["run", "-m", m, "--raw", "--system", "s", "x"], 2, &["--raw"]),
        (&["run", "-m", m, "--system", "s", "x"], 1, &["no chat template"]),
        (&["run", "-m", m, "-c", "9999", "x"], 1, &["context is 9999", "256"]),
        (&["run", "-m", m, "-t", "99999", "x"], 1, &["threads is 99999"]),
        (&["chat", "-m", m], 1, &["no chat template", "run --raw"]),
        (&["bench", "-m", m, "-p", "0", "-n", "0"], 2, &["nothing to measure"]),
        (&["bench", "-m", m, "-n", "0", "--reading"], 2, &["--reading needs a gen", "-n is 0"]),
        (&["bench", "-m", m, "--length", "9", "--reading"], 2, &["--reading", "compared"]),
        (&["perplexity", "-m", m, "-c", "2", m], 2, &["at least 4"]),
        (&["inspect"], 2, &["no model", "inspect FILE.gguf"]),
        (&["inspect", m, "-m", m], 2, &["cannot be used with"]),
    ];
    assert_all_fail(&rows);
}

#[test]
fn errors_of_devices_and_plans_say_what_is_accepted() {
    let llama = model("llama.gguf");
    let m = llama.as_str();
    let rows: [Row<'_>; 41] = [
        (
            &["run", "-m", m, "--device", "tpu", "x"],
            2,
            &["'tpu' (presets: cpu, gpu, npu, phone, laptop)"],
        ),
        (&["run", "-m", m, "--device", "gpu=warp", "x"], 2, &["warp", "throttled", "systolic"]),
        (&["run", "-m", m, "--device", "gpu=throttled:mhz=1", "x"], 2, &["mhz", "gflops, gbps"]),
        (&["run", "-m", m, "--device", "gpu=throttled:sync=9", "x"], 2, &["sync is '9'", "15us"]),
        (&["run", "-m", m, "--device", "cpu+cpu", "x"], 2, &["'cpu' is given twice"]),
        (&["run", "-m", m, "--strategy", "best", "x"], 2, &["best", "cpu-only", "row-cut", "auto"]),
        (&["run", "-m", m, "--strategy", "pip", "x"], 2, &["--strategy", "did you mean pipe?"]),
        (&["run", "-m", m, "--strategy", "chunked:x=1", "x"], 2, &["--strategy", "it has chunk"]),
        (&["run", "-m", m, "--strategy", "pipe", "x"], 1, &["pipe", "kind npu", "--device"]),
        (&["run", "-m", m, "--policy", "best", "x"], 2, &["--policy", "best", "one of fcfs"]),
        (&["run", "-m", m, "--wait", "devices", "x"], 2, &["LINK=MODE", "devices, scheduler"]),
        (&["run", "-m", m, "--wait", "devices=nap", "x"], 2, &["nap", "sleep-then-spin"]),
        (&["run", "-m", m, "--place", "ffn", "x"], 1, &["ffn", "PATTERN=DEVICE"]),
        (&["run", "-m", m, "--place", "ffn=npu", "x"], 1, &["ffn", "npu", "devices here: cpu"]),
        (&["bench", "-m", m, "--length", "0"], 2, &["at least 1"]),
        (&["bench", "-m", m, "--html", "x.html"], 2, &["NAME", "--strategy all"]),
        (&["bench", "-m", m, "--strategy", "all", "-p", "0"], 2, &["-p", "at least 1"]),
        (
            &["bench", "-m", m, "--strategy", "all", "--vs", "openvino"],
            2,
            &["--vs", "one strategy"],
        ),
        (&["bench", "-m", m, "-d", "9999", "-n", "0"], 1, &["context is 10512", "256"]),
        (
            &["bench", "-m", m, "--vs", "x", "--trace", "x.lwt"],
            2,
            &["--vs", "expected llama.cpp, openvino"],
        ),
        (&["plan", "-m", m], 2, &["--prompt-tokens"]),
        (&["plan", "-m", m, "-p", "0"], 2, &["at least 1"]),
        (&["plan", "-m", m, "-p", "9999"], 1, &["context is 10000", "256"]),
        (&["profile", "-m", m, "--seconds", "0"], 2, &["at least 1"]),
        (&["profile", "-m", m, "-r", "many"], 2, &["many"]),
        (&["plan", "-m", m, "-p", "9", "--ratio", "3"], 2, &["two or three", "6:2:1"]),
        (&["plan", "-m", m, "-p", "9", "--order-swap", "no"], 2, &["on", "off"]),
        (&["plan", "-m", m, "-p", "9", "--edge-rows", "few"], 2, &["few"]),
        (&["run", "-m", m, "--device", "npu=systolic:sizes=33/70", "x"], 2, &["multiples of 32"]),
        (&["run", "-m", m, "--device", "gpu=throttled:gbps=1e-9", "x"], 2, &["at least 0.001"]),
        (
            &["run", "-m", m, "--device", "gpu=throttled", "--strategy", "cpu-only", "x"],
            1,
            &["kind cpu"],
        ),
        (
            &["run", "-m", m, "--device", "cpu+npu=systolic", "--activations", "row", "x"],
            1,
            &["activations", "int8-row", "the device 'npu'", "in blocks"],
        ),
        (&["run", "-m", m, "--activations", "row", "--exact", "x"], 2, &["--exact"]),
        (
            &["run", "-m", m, "--device", "npu=systolic", "x"],
            1,
            &["an NPU alone", "--device cpu+npu"],
        ),
        (&["run", "-m", m, "--cores", "3-0", "x"], 2, &["3-0", "0,2-3"]),
        (&["run", "-m", m, "--cores", "1000", "x"], 2, &["--cores", "no core 1000", "it may use "]),
        (&["devices", "--kernels", "--device", "npu"], 2, &["--device gpu=opencl"]),
        (&["devices", "--kernels", "--cores", "999,1000"], 2, &["no core 999-1000"]),
        (&["bench", "-m", m, "--cores", "0", "--vs", "llama.cpp"], 2, &["taskset -c"]),
        (&["nonsense"], 2, &["nonsense"]),
        (&["completions", "tcsh"], 2, &["bash", "zsh"]),
    ];
    assert_all_fail(&rows);
}

#[test]
fn the_error_of_a_missing_model_says_where_to_get_one() {
    let rows: [(&[&str], &[&str]); 6] = [
        (&["run", "-m", "none.gguf", "x"], &["none.gguf", "hint:", "lapwing models"]),
        (&["run", "-m", "./none", "x"], &["./none", "hint:"]),
        (&["tokenize", "-m", "/", "x"], &["is a folder"]),
        (&["inspect", "smolm2"], &["did you mean \"smollm2\"?", "hf:owner/repo/file.gguf"]),
        (&["pull", "./x.gguf"], &["only models with a name", "lapwing models"]),
        (&["models", "--remove", "gemma3-270m"], &["not in the cache"]),
    ];
    for (args, says) in rows {
        assert_fails(&ended(lapwing(args)), 1, says);
    }
}

#[test]
fn errors_name_the_damaged_model_file() {
    let folder = tempfile::tempdir().expect("folder");
    let whole = fs::read(model("llama.gguf")).expect("read");
    let rows: [(&str, &[u8], &str); 4] = [
        ("cut-in-the-header.gguf", &whole[..20], "cut-in-the-header.gguf"),
        ("cut-in-the-data.gguf", &whole[..whole.len() / 2], "cut-in-the-data.gguf"),
        ("empty.gguf", b"", "empty.gguf"),
        ("text.gguf", b"This is no model but a text of some length.", "text.gguf"),
    ];
    for (name, bytes, says) in rows {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("write");
        let path = path.display().to_string();
        for args in
            [&["run", "-m", &path, "x"][..], &["inspect", &path], &["tokenize", "-m", &path, "x"]]
        {
            assert_fails(&ended(lapwing(args)), 1, &[says]);
        }
    }
}

#[test]
fn an_unsupported_model_can_be_inspected() {
    let folder = tempfile::tempdir().expect("folder");
    let mut bytes = fs::read(model("llama.gguf")).expect("read");
    let at = bytes.windows(13).position(|w| w == b"\x05\0\0\0\0\0\0\0llama").expect("architecture");
    bytes[at + 8..at + 13].copy_from_slice(b"rwkv6");
    let path = folder.path().join("rwkv6.gguf");
    fs::write(&path, bytes).expect("write");
    let path = path.display().to_string();
    assert_fails(&ended(lapwing(&["run", "-m", &path, "x"])), 1, &["'rwkv6'", "qwen3"]);
    let shown = ended(lapwing(&["inspect", &path]));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in ["general.architecture", "token_embd.weight", "cannot run: ", "'rwkv6'"] {
        assert!(shown.stdout.contains(part), "{part} is not in {shown:?}");
    }
    let json = ended(lapwing(&["inspect", &path, "--json"])).json();
    assert!(json["cannot_run"].as_str().is_some_and(|why| why.contains("rwkv6")));
    assert!(json["placement"].is_null() && json["tensors"].as_array().is_some_and(|t| t.len() > 3));
}

#[test]
fn a_prompt_that_does_not_fit_gets_a_hint() {
    let llama = model("llama.gguf");
    let long = "x".repeat(300);
    let ended_long = ended(lapwing(&["run", "-m", &llama, "--raw", &long]));
    assert_fails(&ended_long, 1, &["tokens, but the context holds 256", "hint: -c TOKENS"]);
    let folder = tempfile::tempdir().expect("folder");
    let chat = crate::support::chat_model(folder.path());
    // Refused by its length alone, before it is tokenised.
    let far_too_long = "word ".repeat(400_000);
    for args in [&["run", "-m", &llama, "--raw", "-"][..], &["run", "-m", &chat, "-"]] {
        let refused = ended_with_input(lapwing(args), &far_too_long);
        let parts = ["bytes, which are at least", "the context holds 256", "hint: -c TOKENS"];
        assert_fails(&refused, 1, &parts);
    }
    let short = ended(lapwing(&["perplexity", "-m", &llama, "-c", "64", "Cargo.toml.none"]));
    assert_fails(&short, 1, &["Cargo.toml.none"]);
    let few = ended_with_input(lapwing(&["perplexity", "-m", &llama, "-c", "64", "-"]), "few");
    assert_fails(&few, 1, &["less than one window of 64", "smaller --ctx"]);
}

#[test]
fn text_must_be_utf8() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("latin1");
    fs::write(&path, b"caf\xe9").expect("write");
    let path = path.display().to_string();
    let ended = ended(lapwing(&["run", "-m", &model("llama.gguf"), "-f", &path]));
    assert_fails(&ended, 1, &["latin1 is not UTF-8", "invalid byte at 3"]);
}
