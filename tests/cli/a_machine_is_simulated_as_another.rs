//! The devices of a live engine in virtual time: `simulate` runs what `calibrate` writes, and its
//! recordings compare with live ones.

use std::path::Path;

use lapwing_kernels::weights::WeightFile;
use serde_json::Value;

use crate::a_json_form_changes::assert_documented;
use crate::support::{ended, json, lapwing, model};

/// Devices that are slow compared with what the tiny model needs.
const DEVICES: &str = "cpu=throttled:gflops=0.5,gbps=1+gpu=throttled:gflops=2,gbps=1+\
                       npu=systolic:gflops=6,gbps=1,sizes=32/64/128";

struct Machine {
    folder: tempfile::TempDir,
    file: String,
}

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("machine.toml").display().to_string();
        let call = ended(lapwing(&["calibrate", "--device", DEVICES, "-o", &file]));
        assert_eq!(call.code, Some(0), "{call:?}");
        Machine { folder, file }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs the tiny model on it.
    fn simulate(&self, more: &[&str]) -> Value {
        let llama = model("llama.gguf");
        let args = ["simulate", "--json", "--soc", &self.file, "--model", &llama];
        json(&[&args[..], more].concat())
    }
}

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} of {value}"))
}

#[test]
fn a_live_run_and_its_simulation_can_be_compared() {
    let machine = Machine::new();
    let (real, simulated) = (machine.path("real.lwt"), machine.path("sim.lwt"));
    let llama = model("llama.gguf");
    let strategy = ["--strategy", "sequence-cut"];
    let bench = ["bench", "-m", &llama, "-p", "100", "-n", "0", "-r", "1", "--json"];
    let live = ["--device", DEVICES, "--trace", &real];
    json(&[&bench[..], &live, &strategy].concat());
    let options = ["-p", "100", "-n", "0", "--trace", &simulated];
    let run = machine.simulate(&[&options[..], &strategy].concat());
    let both = json(&["timeline", "--json", &real, &simulated]);
    let (a, b) = (&both["a"], &both["b"]);
    let clocks = (&a["meta"]["clock"], &b["meta"]["clock"]);
    assert_eq!(clocks, (&"monotonic".into(), &"virtual".into()));
    assert_eq!(a["meta"]["devices"], b["meta"]["devices"]);
    assert_eq!(b["idle_unattributed_ns"], 0);
    let ms = number(b, "makespan_ns") / 1e6;
    assert!((ms / number(&run, "makespan_ms") - 1.0).abs() < 1e-3, "{ms} {run}");
    // The live devices do everything that the simulated ones do, including conversions, but the part
    // that ends last joins the parts.
    let ops = both["diff"]["ops"].as_array().expect("ops").iter();
    let is_device = |op: &&Value| {
        ["cpu", "gpu", "npu"].iter().any(|lane| op["lane"] == *lane) && op["name"] != "merge"
    };
    let ops: Vec<&Value> = ops.filter(is_device).collect();
    assert!(ops.iter().any(|op| op["lane"] == "npu"), "{both}");
    for op in &ops {
        assert!(number(op, "matched") > 0.0 && number(op, "only_b") == 0.0, "{op}");
    }
    let waterfall = both["diff"]["waterfall"].as_array().expect("steps");
    let sum: f64 = waterfall.iter().map(|step| number(step, "delta_ns")).sum();
    assert!((sum - number(&both["diff"], "delta_ns")).abs() < 1.0, "{both}");
    assert!(!waterfall.is_empty(), "{both}");
}

#[test]
fn numbers_of_a_machine_come_from_its_file() {
    let machine = Machine::new();
    let run = machine.simulate(&["-p", "64", "-n", "3"]);
    for unknown in ["energy_j", "power_w", "prefill_j", "decode_w", "frames_per_second"] {
        assert!(run[unknown].is_null(), "{unknown}: {run}");
    }
    let of = |field: &str| number(&run, field);
    assert!((of("makespan_ms") - of("prefill_ms") - of("decode_ms")).abs() < 1e-6, "{run}");
    assert!((of("decode_tokens_per_second") * of("decode_ms") / 3e3 - 1.0).abs() < 1e-9, "{run}");
    assert!(of("lower_bound_ms") <= of("makespan_ms"), "{run}");
    // Warm, as a live engine is when it is measured.
    let online = machine.simulate(&["-p", "64", "--strategy", "online-prepare"]);
    assert_eq!(number(&online, "preparation_ms"), 0.0, "{online}");
    let text = ended(lapwing(&["simulate", "--soc", &machine.file, "--show-soc"])).stdout;
    assert_eq!(text, std::fs::read_to_string(&machine.file).expect("the preset"));
}

#[test]
fn numbers_of_a_machine_can_be_varied() {
    let machine = Machine::new();
    let llama = model("llama.gguf");
    let options = ["--soc", &machine.file, "--model", &llama, "-p", "128", "-n", "0"];
    let faster = json(
        &[&["what-if", "--json"], &options[..], &["--strategy", "npu-padding", "npu.gflops=2x"]]
            .concat(),
    );
    assert!(number(&faster, "change") < 0.0, "{faster}");
    let sweep = [&["sweep", "--json", "--over", "npu.gflops=3,6,12"], &options[..]].concat();
    let points = json(&sweep)["points"].clone();
    let times: Vec<f64> = (0..3).map(|at| number(&points[at]["run"], "prefill_ms")).collect();
    assert!(times[0] > times[1] && times[1] > times[2], "{times:?}");
    let wrong = [
        (&["simulate", "--fast-sync", "off"][..], 2, "gpu.sync"),
        (&["simulate", "--interference", "game"], 2, "none"),
        (&["simulate", "--set", "npu.flops=1"], 2, "npu.floor"),
        (&["simulate", "--set", "npu.floor=1.5"], 2, "at most 1"),
    ];
    for (args, code, says) in wrong {
        let ended = ended(lapwing(&[args, &["--soc", &machine.file, "--model", &llama]].concat()));
        assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{args:?} {ended:?}");
        assert!(ended.stderr.contains(says), "{args:?} {ended:?}");
    }
    for command in ["reproduce", "fit"] {
        let ended = ended(lapwing(&[command, "--soc", &machine.file]));
        assert_eq!(&*ended.stdout, "", "{ended:?}");
        assert!(ended.code != Some(0) && ended.stderr.contains("sd8gen3"), "{command} {ended:?}");
    }
}

#[test]
fn a_model_without_tensor_data_can_be_simulated() {
    let machine = Machine::new();
    let whole = model("llama.gguf");
    let file = WeightFile::open(Path::new(&whole)).expect("a model");
    let data = file.tensors().map(|tensor| tensor.range().start).min().expect("tensors");
    let cut = machine.path("cut.gguf");
    let bytes = std::fs::read(&whole).expect("bytes");
    std::fs::write(&cut, &bytes[..data]).expect("write");
    for soc in ["sd8gen3", &machine.file] {
        let of = |model: &str| {
            let args = ["simulate", "--json", "--soc", soc, "-p", "64", "--model", model];
            json(&args)["makespan_ms"].clone()
        };
        assert_eq!(of(&cut), of(&whole), "{soc}");
    }
}

#[test]
fn numbers_of_a_measured_device_state_their_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().display().to_string();
    let llama = model("llama.gguf");
    let devices = "cpu+npu=systolic:gflops=6,gbps=1,sizes=32/96,floor=0.5,prepare=1ms";
    let args =
        ["profile", "-m", &llama, "--device", devices, "--seconds", "5", "-r", "3", "--json"];
    let mut command = lapwing(&args);
    command.env("LAPWING_CACHE", &cache);
    let profile = ended(command).json()["file"].as_str().expect("a path").to_owned();
    let file = folder.path().join("mine.toml").display().to_string();
    let made = ended(lapwing(&["calibrate", "--profile", &profile, "-o", &file]));
    assert_eq!(made.code, Some(0), "{made:?}");
    let text = std::fs::read_to_string(&file).expect("a preset");
    let preset: toml::Table = toml::from_str(&text).expect("TOML");
    let npu = &preset["device"][1];
    assert!(npu["spec"].as_str().is_some_and(|spec| spec.contains("sizes=32/96")), "{npu}");
    let is = |key: &str, kind: &str| {
        let number = &npu["numbers"][key];
        assert_eq!(number["kind"].as_str(), Some(kind), "{key}: {number}");
        assert!(number["source"].as_str().is_some_and(|source| !source.is_empty()), "{key}");
        number["value"].as_float().expect("a number")
    };
    for (key, kind, from, to) in [
        // Real time is added where this machine is slower than the model.
        ("gflops", "pinned", 3.0, 7.0),
        ("gbps", "pinned", 0.5, 1.1),
        ("prepare", "pinned", 500.0, 5000.0),
        ("floor", "derived", 0.5, 0.5),
        ("array", "derived", 32.0, 32.0),
    ] {
        let value = is(key, kind);
        assert!((from..=to).contains(&value), "{key}: {value}");
    }
    let run = ["simulate", "--json", "--soc", &file, "--model", &llama, "-p", "64"];
    assert!(number(&json(&run), "prefill_ms") > 0.0);
}

#[test]
fn every_strategy_is_simulated_and_those_that_a_fit_has_not_seen_are_predicted() {
    let llama = model("llama.gguf");
    let calibrate = ["calibrate", "--device", DEVICES, "-m", &llama, "-p", "40", "--json"];
    let simulated = json(&calibrate);
    assert_documented("calibrate", &simulated, &["left_out"]);
    let runs = simulated["runs"].as_array().expect("runs");
    assert!(runs.iter().all(|run| run["prefill_ms"].as_f64() > Some(0.0)), "{simulated}");

    let with = |names: &str| {
        let more = ["--leave-out", names, "-n", "3", "-r", "1"];
        json(&[&calibrate[..], &more].concat())
    };
    let (each, one) = (with("each"), with("pipe"));
    assert_documented("calibrate", &each, &["runs"]);
    let strategies = |report: &Value| {
        let runs = report["left_out"]["runs"].as_array().expect("runs").clone();
        let time = |run: &Value| {
            let [ttft, tpot] = ["ttft_ms", "tpot_ms"].map(|time| number(&run[time], "predicted"));
            assert!(ttft > 0.0 && tpot > 0.0, "{run}");
            run["strategy"].as_str().expect("a name").to_owned()
        };
        runs.iter().map(time).collect::<Vec<_>>()
    };
    assert!(strategies(&each).len() > 10, "{each}");
    assert_eq!(strategies(&one), ["pipe"]);
    let toml = one["toml"].as_str().expect("a preset");
    assert!(toml.contains("fitted to"), "{toml}");
    let wrong = ended(lapwing(&[&calibrate[..7], &["--leave-out", "pip"]].concat()));
    assert!(wrong.code == Some(2) && wrong.stderr.contains("pipe"), "{wrong:?}");
}
