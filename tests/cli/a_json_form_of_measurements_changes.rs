//! The JSON of the commands that measure has exactly the fields that `docs/json.md` documents.

use serde_json::Value;

use crate::a_json_form_changes::{assert_documented, fields};
use crate::cases::needed;
use crate::support::{json, lapwing, model};

#[test]
fn bench_has_the_documented_fields() {
    let args = ["bench", "-m", &model("llama.gguf"), "-p", "8,16", "-n", "4", "-t", "2", "-r", "3"];
    let printed = json(&[&args[..], &["--json"]].concat());
    assert_documented("bench", &printed, &[]);
    let results = printed["results"].as_array().expect("array");
    let tests: Vec<_> = results.iter().map(|result| result["test"].as_str()).collect();
    assert_eq!(tests, [Some("pp8"), Some("pp16"), Some("tg4")]);
    for result in results {
        let speed = |field: &str| result["tokens_per_second"][field].as_f64().expect(field);
        assert!(0.0 < speed("min") && speed("min") <= speed("median"), "{result}");
        assert!(speed("median") <= speed("max"), "{result}");
        assert_eq!(result["tokens_per_second"]["all"].as_array().map(Vec::len), Some(3));
    }
    assert_eq!((&printed["threads"], &printed["repetitions"]), (&2.into(), &3.into()));
    if cfg!(target_os = "linux") {
        let peak = printed["peak_resident_bytes"].as_u64();
        assert!(peak.is_some_and(|peak| peak > 1 << 20), "{printed}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn bench_with_other_engines_has_the_documented_fields() {
    use crate::a_peer_misleads::{HONEST, program};
    let folder = tempfile::tempdir().expect("folder");
    let vs = format!("llama.cpp={}", program(folder.path(), "fake", HONEST));
    let kept = folder.path().join("run.json").display().to_string();
    let llama = model("llama.gguf");
    let args = ["bench", "-m", &llama, "-p", "8", "-n", "0", "-r", "1", "--vs", &vs, "--json"];
    json(&[&args[..], &["-o", &kept]].concat());
    let printed = json(&[&args[..], &["--against", &kept]].concat());
    assert_documented("bench with other engines", &printed, &[]);
    let record = std::fs::read_to_string(&kept).expect("kept");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let mut without = printed;
    for more in ["pairs", "same_weights", "ratios", "against"] {
        without.as_object_mut().expect("object").remove(more);
    }
    assert_eq!(fields(&record, &[]), fields(&without, &[]));
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_bound_is_measured_only_with_reading_and_with_each_run() {
    use crate::a_peer_misleads::{HONEST, program};
    let folder = tempfile::tempdir().expect("folder");
    let vs = format!("llama.cpp={}", program(folder.path(), "fake", HONEST));
    let llama = model("llama.gguf");
    let args = ["bench", "-m", &llama, "-p", "8", "-n", "4,5", "-r", "2", "--json", "--reading"];
    let alone = json(&args);
    let pairs = json(&[&args[..], &["--vs", &vs]].concat());
    assert_eq!(alone["peak_resident_bytes"], Value::Null, "it is that of what was read, too");
    for results in [&alone["results"], &pairs["engines"][0]["results"]] {
        let results = results.as_array().expect("array");
        let runs = |at: usize| results[at]["reading"]["all"].as_array().map(Vec::len);
        assert_eq!([runs(0), runs(1), runs(2)], [None, Some(2), Some(2)], "{results:?}");
        for result in &results[1..] {
            let [reading, own] = ["reading", "tokens_per_second"].map(|of| &result[of]["median"]);
            assert!(reading.as_f64() > own.as_f64(), "a model this small is computed: {result}");
        }
    }
    let shares = pairs["by_reading"].as_array().expect("array");
    let of: Vec<_> = shares.iter().map(|share| (&share["engine"], &share["what"])).collect();
    let engines = ["lapwing", "lapwing", "llama.cpp", "llama.cpp"];
    let want: Vec<_> = engines.into_iter().zip(["tg4", "tg5"].into_iter().cycle()).collect();
    assert!(
        of.iter()
            .zip(&want)
            .all(|((e, w), want)| (e.as_str(), w.as_str()) == (Some(want.0), Some(want.1))),
        "{of:?}"
    );
    assert_eq!(of.len(), want.len());
    assert_eq!(pairs["engines"][1]["results"][1]["reading"], Value::Null);
}

#[test]
fn kernels_have_the_documented_fields() {
    let llama = model("llama.gguf");
    let args = ["devices", "--kernels", "-t", "1", "--json"];
    let printed = json(&[&args[..], &["-m", &llama]].concat());
    let null = |name: &&str| printed["roofline"][*name].is_null();
    let shown: Vec<&str> = ["int8", "bf16"].into_iter().filter(null).collect();
    assert_documented("devices --kernels", &printed, &shown);
    let all = json(&args);
    assert!(all["measured"].is_null(), "{all}");
    assert_eq!(fields(&all["kernels"], &[]), fields(&printed["kernels"], &[]));
}

#[test]
fn kernels_of_an_opencl_device_have_the_documented_fields() {
    if json(&["devices", "--json"])["opencl"].as_array().is_some_and(Vec::is_empty) {
        assert!(!needed(), "no OpenCL driver is installed");
        return;
    }
    let cache = tempfile::tempdir().expect("folder");
    let llama = model("llama.gguf");
    let args = ["devices", "--kernels", "--device", "gpu=opencl", "-m", &llama, "--json"];
    let shown = || {
        let mut command = lapwing(&args);
        command.env("LAPWING_CACHE", cache.path());
        crate::support::ended(command).json()
    };
    let first = shown();
    // A device whose features leave no choice has no times.
    let few = first["matmuls"][0]["few_us"].as_array().is_some_and(Vec::is_empty);
    let many = first["matmuls"][0]["many_us"].as_array().is_some_and(Vec::is_empty);
    let empty: Vec<&str> =
        [("few_us", few), ("many_us", many)].iter().filter(|of| of.1).map(|of| of.0).collect();
    assert_documented("devices --kernels --device", &first, &empty);
    assert_eq!(first["matmuls"][0]["format"], "F32");
    assert_eq!(shown(), first, "the second call measures nothing");
}

#[test]
fn compared_strategies_have_the_documented_fields() {
    let llama = model("llama.gguf");
    let strategies = ["--strategy", "pipe,cpu-only", "-p", "9", "-r", "1", "-n", "2"];
    let printed = json(&[&["bench", "-m", &llama, "--json"], &strategies[..]].concat());
    assert_documented("bench of strategies", &printed, &[]);
}

#[test]
fn profile_has_the_documented_fields() {
    let cache = tempfile::tempdir().expect("folder");
    let llama = model("llama.gguf");
    let args =
        ["profile", "-m", &llama, "--device", "cpu+npu=systolic", "--seconds", "1", "-r", "1"];
    let mut command = lapwing(&[&args[..], &["--json"]].concat());
    command.env("LAPWING_CACHE", cache.path());
    let profile = crate::support::ended(command).json();
    assert_documented("profile", &profile, &[]);
    assert!(std::path::Path::new(profile["file"].as_str().expect("a path")).exists());
}

#[test]
fn ranges_have_the_documented_fields() {
    let cache = tempfile::tempdir().expect("folder");
    let text = cache.path().join("text");
    std::fs::write(&text, "The quick brown fox jumps over the lazy dog.").expect("write");
    let (llama, text) = (model("llama.gguf"), text.display().to_string());
    let mut command = lapwing(&["ranges", "-m", &llama, "-c", "16", "--json", &text]);
    command.env("LAPWING_CACHE", cache.path());
    let ranges = crate::support::ended(command).json();
    assert_documented("ranges", &ranges, &[]);
    assert!(std::path::Path::new(ranges["file"].as_str().expect("a path")).exists());
}

#[test]
fn prepare_has_the_documented_fields() {
    let cache = tempfile::tempdir().expect("folder");
    let llama = model("llama.gguf");
    let args =
        ["prepare", "-m", &llama, "--device", "cpu+npu=systolic", "--seconds", "1", "-p", "8"];
    let mut command = lapwing(&[&args[..], &["--json"]].concat());
    command.env("LAPWING_CACHE", cache.path());
    let prepared = crate::support::ended(command).json();
    assert_documented("prepare", &prepared, &[]);
    assert!(std::path::Path::new(prepared["plans"]["file"].as_str().expect("a path")).exists());
}
