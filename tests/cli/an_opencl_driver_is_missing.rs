//! A machine without an OpenCL driver: everything else works, and what is missing is named.

use std::process::Command;

use crate::support::{ended, lapwing, model};

/// The program in an environment in which loaders of OpenCL find no driver.
fn without_drivers(args: &[&str]) -> (Command, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = lapwing(args);
    command.env("OCL_ICD_VENDORS", folder.path()).env_remove("OPENCL_DYLIB_PATH");
    (command, folder)
}

/// What is missing: the library, or a driver.
fn names_what_is_missing(text: &str) -> bool {
    text.contains("no OpenCL library was found") || text.contains("lists no device")
}

#[test]
fn devices_are_listed_with_what_is_missing() {
    let (command, _folder) = without_drivers(&["devices"]);
    let listed = ended(command);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("OpenCL: absent"), "{listed:?}");
    assert!(names_what_is_missing(&listed.stdout), "{listed:?}");
    let (command, _folder) = without_drivers(&["devices", "--json"]);
    let json = ended(command).json();
    assert_eq!(json["opencl"], serde_json::json!([]));
    let kinds = json["devices"].as_array().expect("devices");
    let opencl = kinds.iter().find(|kind| kind["kind"] == "opencl").expect("the kind");
    assert_eq!(opencl["present"], false);
}

#[test]
fn a_run_on_such_a_device_is_refused_and_other_devices_run() {
    let llama = model("llama.gguf");
    let run = ["run", "-m", &llama, "--raw", "--temp", "0", "-n", "2", "ab"];
    for device in ["gpu=opencl", "gpu=opencl:0", "gpu=opencl:name"] {
        let (command, _folder) = without_drivers(&[&run[..], &["--device", device]].concat());
        let refused = ended(command);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(names_what_is_missing(&refused.stderr), "{refused:?}");
        assert!(refused.stdout.is_empty(), "{refused:?}");
    }
    let (command, _folder) = without_drivers(&[&run[..], &["--device", "gpu"]].concat());
    let emulated = ended(command);
    assert_eq!(emulated.code, Some(0), "{emulated:?}");
    for part in ["gpu is emulated", "CPU threads", "no driver of this machine has a usable GPU"] {
        assert_eq!(emulated.stderr.matches(part).count(), 1, "said once: {emulated:?}");
    }
}

/// Explicit stand-ins and the phone are emulated on every machine, and say so.
#[test]
fn an_emulation_is_never_silent() {
    let llama = model("llama.gguf");
    let run = ["run", "-m", &llama, "--raw", "-n", "2", "ab", "--json"];
    let said = |args: &[&str], device: &str, names: &str| {
        let said = ended(lapwing(&[args, &["--device", device]].concat()));
        assert_eq!(said.stderr.matches(names).count(), 1, "{args:?}: {said:?}");
    };
    said(&run, "gpu=throttled", "gpu is emulated");
    said(&run, "cpu+npu=systolic", "npu is emulated");
    for args in [
        &run[..],
        &["plan", "-m", &llama, "-p", "8"],
        &["bench", "-m", &llama, "-p", "8", "-n", "1", "-r", "1"],
        &[
            "bench",
            "-m",
            &llama,
            "--strategy",
            "gpu-only,cpu-only",
            "-p",
            "8",
            "-n",
            "1",
            "-r",
            "1",
        ],
    ] {
        said(args, "phone", "cpu, gpu and npu are emulated");
    }
    let placed = ended(lapwing(&["inspect", &llama, "--device", "gpu=throttled"]));
    assert!(placed.stdout.contains("kernels: emulated: "), "{placed:?}");
    let real = ended(lapwing(&["run", "-m", &llama, "--raw", "-n", "2", "ab", "--device", "cpu"]));
    assert!(!real.stderr.contains("emulated"), "{real:?}");
}

/// The program with a variable that names libraries, none of which is there.
fn with_wrong_library(args: &[&str]) -> Command {
    let mut command = lapwing(args);
    command.env("OPENCL_DYLIB_PATH", "no-such-library.so;/no/other.so");
    command
}

/// Each path, and what to do.
fn names_the_paths(text: &str) -> bool {
    let wanted = ["OPENCL_DYLIB_PATH", "'no-such-library.so'", "'/no/other.so'", "set it to"];
    wanted.iter().all(|wanted| text.contains(wanted))
}

/// Another library than the named one is not used, even if the system has one.
#[test]
fn a_library_that_is_named_and_missing_is_an_error() {
    let listed = ended(with_wrong_library(&["devices"]));
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("OpenCL: absent"), "{listed:?}");
    assert!(names_the_paths(&listed.stdout), "{listed:?}");
    let json = ended(with_wrong_library(&["devices", "--json"])).json();
    assert_eq!(json["opencl"], serde_json::json!([]));
    let llama = model("llama.gguf");
    let run = ["run", "-m", &llama, "--raw", "--temp", "0", "-n", "2", "ab", "--device"];
    let refused = ended(with_wrong_library(&[&run[..], &["gpu=opencl"]].concat()));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(names_the_paths(&refused.stderr), "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    let on_cpu = ended(with_wrong_library(&[&run[..], &["cpu"]].concat()));
    assert_eq!(on_cpu.code, Some(0), "{on_cpu:?}");
}

#[test]
fn layers_on_a_gpu_need_one_and_a_strategy_does_not_go_with_them() {
    let llama = model("llama.gguf");
    let run = ["run", "-m", &llama, "--raw", "-n", "2", "ab", "--gpu-layers", "1"];
    let alone = ended(lapwing(&run));
    assert_eq!(alone.code, Some(1), "{alone:?}");
    assert!(alone.stderr.contains("gpu"), "{alone:?}");
    let both = ended(lapwing(&[&run[..], &["--strategy", "auto"]].concat()));
    assert_eq!(both.code, Some(2), "{both:?}");
    let split =
        ended(lapwing(&[&run[..], &["--device", "cpu", "--device", "gpu=throttled"]].concat()));
    assert_eq!(split.code, Some(0), "{split:?}");
}
