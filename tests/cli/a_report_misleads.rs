//! A report: what it has, what it must not have, and files that only look like one.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::a_json_form_changes::assert_documented;
#[cfg(target_os = "linux")]
use crate::a_run_cannot_be_stopped::wait_until;
use crate::support::{Ended, ended, lapwing, model};

const DEVICES: [&str; 2] = ["--device", "cpu+npu=systolic:gflops=20,gbps=2,sizes=1/32/64"];

/// Names that nothing else has.
const HOME: &str = "home-of-quixotina";
const USER: &str = "quixotina";

/// The program as a user with a home, in which model, cache and report are.
fn as_user(folder: &Path, args: &[&str]) -> Command {
    let mut command = lapwing(args);
    let home = folder.join(HOME);
    std::fs::create_dir_all(&home).expect("a home");
    command
        .env("HOME", &home)
        .env("USER", USER)
        .env("LOGNAME", USER)
        .env("LAPWING_CACHE", home.join("cache"))
        .env("OPENCL_DYLIB_PATH", home.join("lib/libOpenCL.so"))
        .env("LAPWING_OPENVINO", "/no/openvino")
        .env("LAPWING_QNN", "/no/qnn");
    command
}

/// A report of the tiny model, at that path below the home.
fn report(folder: &Path, more: &[&str]) -> (Ended, PathBuf) {
    let home = folder.join(HOME);
    std::fs::create_dir_all(&home).expect("a home");
    let llama = home.join("llama.gguf");
    std::fs::copy(model("llama.gguf"), &llama).expect("a copy");
    let (llama, file) = (llama.display().to_string(), home.join("mine.json"));
    let output = file.display().to_string();
    let args = ["report", "-m", &llama, "-p", "40", "-t", "1", "-o", &output, "--json"];
    (ended(as_user(folder, &[&args[..], more].concat())), file)
}

fn runs(report: &Value) -> &Vec<Value> {
    report["strategies"]["runs"].as_array().expect("strategies")
}

#[test]
fn a_report_has_every_part_and_nothing_private_and_its_profile_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let (made, file) = report(folder.path(), &[&DEVICES[..], &["--seconds", "600"]].concat());
    let report = made.json();
    assert!(made.stderr.starts_with("the report will have: the processor"), "{made:?}");
    let open = ["opencl", "openvino", "qnn", "failed", "profile", "numa"];
    assert_documented("report", &report, &open);

    let devices = report["devices"].as_array().expect("devices");
    let names: Vec<_> = devices.iter().map(|device| device["device"].as_str()).collect();
    assert_eq!(names, [Some("cpu"), Some("npu")]);
    for device in devices {
        let ids = device["ids"].as_array().map(Vec::len);
        assert_eq!((&device["equal"], ids), (&json!(true), Some(16)), "{device}");
    }
    assert_eq!(
        (&devices[1]["beside"], &devices[1]["emulated"]),
        (&json!("cpu=cores"), &json!(true))
    );
    let of =
        |name: &str| runs(&report).iter().find(|run| run["strategy"] == name).expect("a strategy");
    for name in ["cpu-only", "layer-level", "row-cut"] {
        let run = of(name);
        assert!(run["predicted_ms"].as_f64() > Some(0.0), "{run}");
        assert!(run["measured"]["ttft_ms"].as_f64() > Some(0.0), "{run}");
        assert_eq!(run["equal"], true, "{run}");
    }
    let impossible = of("gpu-only");
    assert!(impossible["failed"].as_str().is_some_and(|why| why.contains("gpu")), "{impossible}");
    assert!(report["strategies"]["source"].as_str().is_some_and(|from| from.contains("measured")));

    let text = std::fs::read_to_string(&file).expect("the file");
    assert_eq!(
        serde_json::from_str::<Value>(&text).expect("JSON"),
        report,
        "the file has the same"
    );
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let folder_name = folder.path().display().to_string();
    // A machine may bear the name of its system, which drivers say.
    let public = format!("{}{}", report["machine"], report["drivers"]);
    let host = Some(host.trim()).filter(|host| host.len() > 2 && !public.contains(*host));
    for private in [HOME, USER, &folder_name].into_iter().chain(host) {
        assert!(!text.contains(private), "{private} is in the report");
    }
    assert!(!public.contains(HOME) && !public.contains(&folder_name), "{public}");

    let shown = ended(lapwing(&["report", "--show", &file.display().to_string()]));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in ["npu=systolic", "equal", "row-cut", "profile", "memory:"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let (llama, file) = (folder.path().join(HOME).join("llama.gguf"), file.display().to_string());
    let llama = llama.display().to_string();
    let plan = ["plan", "-m", &llama, "-t", "1", "-p", "40", "--json"];
    let plan = [&plan[..], &DEVICES, &["--profile", &file]].concat();
    let planned = ended(as_user(folder.path(), &plan)).json();
    assert!(planned["source"].as_str().is_some_and(|from| from.contains("measured")), "{planned}");
    let other = [&plan[..], &["--chunk", "32"]].concat();
    let refused = ended(as_user(folder.path(), &other));
    assert!(refused.code == Some(1) && refused.stderr.contains("measured with"), "{refused:?}");
    let calibrated = ended(lapwing(&["calibrate", "--profile", &file, "--json"])).json();
    assert!(calibrated["toml"].as_str().is_some_and(|toml| toml.contains("npu")), "{calibrated}");
    let timeline = ended(lapwing(&["timeline", &file]));
    assert!(timeline.stderr.contains("lapwing report --show"), "{timeline:?}");
}

#[test]
fn a_step_that_fails_is_named_and_the_others_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let devices = ["--device", "cpu+gpu=opencl", "--seconds", "600"];
    let (made, _) = report(folder.path(), &devices);
    let report = made.json();
    let gpu = &report["devices"][1];
    assert_eq!((&gpu["ids"], &gpu["equal"]), (&Value::Null, &Value::Null), "{gpu}");
    let why = gpu["failed"].as_str().expect("a reason");
    assert!(why.contains("…/libOpenCL.so") && !why.contains(HOME), "{why}");
    assert_eq!(report["strategies"]["devices"], json!(["cpu=cores"]));
    assert!(report["profile"]["devices"].as_array().is_some_and(|all| all.len() == 1), "{report}");
    let on_cpu = runs(&report).iter().find(|run| run["strategy"] == "cpu-only");
    assert!(on_cpu.is_some_and(|run| run["equal"] == true), "{report}");
}

#[test]
fn a_report_of_a_model_that_cannot_be_read_is_an_error_and_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (model, output) = (folder.path().join("bad.gguf"), folder.path().join("x.json"));
    std::fs::write(&model, "no model").expect("a file");
    let [model, path] = [&model, &output].map(|path| path.display().to_string());
    let made = ended(lapwing(&["report", "-m", &model, "-o", &path]));
    assert!(made.code == Some(1) && made.stderr.contains("bad.gguf"), "{made:?}");
    assert!(!output.exists());
    let both = ended(lapwing(&["report", "--show", &path, "-o", &path]));
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn files_that_are_no_reports_are_errors_that_say_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.json");
    let shown = |text: &[u8]| {
        std::fs::write(&path, text).expect("a file");
        ended(lapwing(&["report", "--show", &path.display().to_string()]))
    };
    let deep = "[".repeat(100_000);
    let rows: [(&str, &str); 9] = [
        ("", "is no report"),
        ("{", "is no report"),
        (&deep, "is no report"),
        ("[1]", "is no report"),
        ("{\"version\":2}", "is no report"),
        ("{\"lapwing_report\":2}", "has version 2, but this program reads version 1"),
        ("{\"lapwing_report\":\"\\u001b[2J\"}", "has version"),
        ("{\"lapwing_report\":1}", "missing field"),
        ("{\"lapwing_report\":1,\"program\":7}", "field 'program'"),
    ];
    for (text, what) in rows {
        let refused = shown(text.as_bytes());
        assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.contains(what), "{what}: {}", refused.stderr);
    }
    assert!(shown(b"\xff\xfe").stderr.contains("is no report"));
    let gone = ended(lapwing(&["report", "--show", "no/such/file.json"]));
    assert!(gone.code == Some(1) && gone.stderr.contains("no/such/file.json"), "{gone:?}");

    // A profile in a report is checked as any other.
    let used = |text: &str| {
        std::fs::write(&path, text).expect("a file");
        let llama = model("llama.gguf");
        ended(lapwing(&["plan", "-m", &llama, "-p", "8", "--profile", &path.display().to_string()]))
    };
    for (text, what) in [
        ("{\"lapwing_report\":1}", "it has no profile"),
        ("{\"lapwing_report\":1,\"profile\":null}", "it has no profile"),
        ("{\"lapwing_report\":1,\"profile\":{\"version\":99}}", "version is 99"),
        ("{\"lapwing_report\":1,\"profile\":{\"version\":2}}", "field 'profile':"),
        ("{\"lapwing_report\":1,\"profile\":[]}", "field 'profile':"),
    ] {
        let refused = used(text);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(what), "{what}: {}", refused.stderr);
    }
}

/// Whether a process has a word among its arguments.
#[cfg(target_os = "linux")]
fn has_process_with(word: &str) -> bool {
    let all = std::fs::read_dir("/proc").expect("processes");
    all.flatten().any(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').any(|argument| argument == word)
    })
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_leaves_no_file_and_no_process() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let folder = tempfile::tempdir().expect("a folder");
    let llama = model("llama.gguf");
    let path = folder.path().join("x.json").display().to_string();
    // A device that computes a token in seconds, with a name that no other process knows.
    let slow = format!("slow{}=throttled:kind=gpu,gflops=0.001,gbps=0.001", std::process::id());
    let args = ["report", "-m", &llama, "-o", &path, "--seconds", "600", "--device", &slow];
    let mut child = lapwing(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let step = format!("slow{}: the ids of a prompt", std::process::id());
    let mut lines = lines.map(|line| line.expect("UTF-8"));
    assert!(lines.any(|line| line == step), "no step of the device");
    let full = || {
        let spec: lapwing::devices::DeviceSpec = slow.parse().expect("a device");
        spec.to_string()
    };
    wait_until("the step runs", || has_process_with(&full()));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    wait_until("the step ends", || !has_process_with(&full()));
    assert_eq!(folder.path().read_dir().expect("the folder").count(), 0, "not even a part");
}
