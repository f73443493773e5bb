//! Drivers that abort, crash, hang or print while they are listed. A small library, compiled here, stands in for each.
#![cfg(all(unix, not(target_os = "macos")))]

use std::path::{Path, PathBuf};
use std::process::Command;

use lapwing::drivers::{DriverKind, Lister};

use crate::cases;
use crate::support::{ended, lapwing, model};

/// A driver of OpenCL that does something when it is asked for its platforms, by a program or by a loader.
const DRIVER: &str = "
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int clGetPlatformIDs(unsigned n, void *platforms, unsigned *found) {
    fprintf(stderr, \"a first line\\nno memory for this device\\n\");
    FAIL;
    if (found) *found = 0;
    return 0;
}
int clIcdGetPlatformIDsKHR(unsigned n, void *platforms, unsigned *found) {
    return clGetPlatformIDs(n, platforms, found);
}
int clGetPlatformInfo(void *platform, unsigned what, size_t size, void *to, size_t *length) { return -1; }
void *clGetExtensionFunctionAddress(const char *name) {
    return strcmp(name, \"clIcdGetPlatformIDsKHR\") ? 0 : (void *)clIcdGetPlatformIDsKHR;
}
";

/// A library that does something when it is loaded.
const LOADED: &str = "
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) { FAIL; }
";

/// Compiles a library in a folder.
fn library(folder: &Path, source: &str, fail: &str) -> PathBuf {
    let (from, to) = (folder.join("driver.c"), folder.join("libdriver.so"));
    std::fs::write(&from, source.replace("FAIL", fail)).expect("a source");
    let compiled =
        Command::new("cc").args(["-w", "-shared", "-fPIC", "-o"]).args([&to, &from]).status();
    assert!(compiled.expect("a C compiler, cc").success());
    to
}

/// The program with this driver in place of any library of OpenCL.
fn with_driver(args: &[&str], driver: &Path) -> Command {
    let mut command = lapwing(args);
    command
        .env("OPENCL_DYLIB_PATH", driver)
        .env("LAPWING_OPENVINO", "/no/openvino")
        .env("LAPWING_QNN", "/no/qnn");
    command
}

#[test]
fn a_driver_that_ends_its_process_is_named_and_everything_else_is_listed() {
    let rows = [
        ("abort()", "ended its process with SIGABRT"),
        ("*(volatile int *)0 = 0", "ended its process with SIGSEGV"),
        ("_exit(7)", "ended its process with exit code 7"),
        ("exit(0)", "ended its process while"),
    ];
    for (fail, what) in rows {
        let folder = tempfile::tempdir().expect("a folder");
        let driver = library(folder.path(), DRIVER, fail);
        let path = driver.display().to_string();
        let listed = ended(with_driver(&["devices"], &driver));
        assert_eq!(listed.code, Some(0), "{listed:?}");
        let failed = listed.stdout.lines().find(|line| line.contains("failed:")).expect(fail);
        for wanted in [&*path, what, "it wrote: no memory for this device", "repair or remove it"] {
            assert!(failed.contains(wanted), "{wanted}: {failed}");
        }
        for wanted in ["OpenCL: absent", "OpenVINO: absent", "CPU: present", "chunk-graph"] {
            assert!(listed.stdout.contains(wanted), "{wanted}: {listed:?}");
        }
        let json = ended(with_driver(&["devices", "--json"], &driver)).json();
        assert_eq!(json["opencl"], serde_json::json!([]));
        let failed = json["failed"].as_array().expect("a list");
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!(
            (&failed[0]["kind"], &failed[0]["said"]),
            (&"opencl".into(), &"no memory for this device".into())
        );
    }
}

#[test]
fn a_run_on_such_a_driver_is_an_error_that_names_it_and_other_devices_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let driver = library(folder.path(), DRIVER, "abort()");
    let llama = model("llama.gguf");
    let run = ["run", "-m", &llama, "--raw", "--temp", "0", "-n", "2", "ab", "--device"];
    let kernels = ["devices", "--kernels", "--device", "gpu=opencl"];
    for args in [&[&run[..], &["gpu=opencl"]].concat()[..], &kernels] {
        let refused = ended(with_driver(args, &driver));
        assert_eq!(refused.code, Some(1), "{refused:?}");
        for wanted in [&*driver.display().to_string(), "SIGABRT", "OPENCL_DYLIB_PATH"] {
            assert!(refused.stderr.contains(wanted), "{wanted}: {refused:?}");
        }
        assert!(refused.stdout.is_empty(), "{refused:?}");
    }
    let on_cpu = ended(with_driver(&[&run[..], &["cpu"]].concat(), &driver));
    assert_eq!(on_cpu.code, Some(0), "{on_cpu:?}");
}

#[test]
fn what_a_driver_prints_is_not_in_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let driver = library(folder.path(), DRIVER, "printf(\"{garbage\\n\"); fflush(stdout)");
    let json = ended(with_driver(&["devices", "--json"], &driver)).json();
    assert_eq!(
        (&json["opencl"], &json["failed"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
}

/// The bound is of the process that lists, so nothing here depends on how fast it is.
#[test]
fn a_library_that_hangs_or_aborts_while_it_is_loaded_is_named() {
    let lister = Lister::new(env!("CARGO_BIN_EXE_lapwing")).within(1);
    for (fail, what) in [
        ("for (;;) pause()", "gave no answer within 1 s"),
        ("abort()", "ended its process with SIGABRT"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let library = library(folder.path(), LOADED, fail);
        let listed = lister.list(&DriverKind::Qnn(Some(library.clone())));
        assert_eq!(listed.answer, None);
        let [fault] = &listed.faults[..] else { panic!("{listed:?}") };
        assert_eq!((fault.kind, &*fault.what), ("qnn", what));
        assert!(fault.driver.contains(&library.display().to_string()), "{fault}");
    }
    let missing = lister.list(&DriverKind::Qnn(Some("/no/such/library".into())));
    assert!(missing.faults.is_empty() && missing.answer.is_some(), "{missing:?}");
}

/// Needs a loader of OpenCL and a driver that works.
#[test]
fn the_opencl_drivers_beside_one_that_aborts_are_listed() {
    let good = Path::new("/etc/OpenCL/vendors/pocl.icd");
    let mut plain = lapwing(&["devices", "--json"]);
    plain.env("OCL_ICD_VENDORS", "/etc/OpenCL/vendors").env_remove("OPENCL_DYLIB_PATH");
    let has_pocl = good.exists()
        && ended(plain).json()["opencl"].as_array().is_some_and(|all| !all.is_empty());
    if !has_pocl {
        assert!(
            !cases::needed(),
            "PoCL is missing; install it with: sh tests/opencl/install.sh FOLDER"
        );
        eprintln!("SKIPPED a test of several OpenCL drivers: PoCL is missing");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let driver = library(folder.path(), DRIVER, "abort()");
    let vendors = folder.path().join("vendors");
    std::fs::create_dir(&vendors).expect("a folder");
    std::fs::copy(good, vendors.join("good.icd")).expect("a copy");
    let bad = vendors.join("bad.icd");
    std::fs::write(&bad, format!("{}\n", driver.display())).expect("a file");
    let with_both = |args: &[&str]| {
        let mut command = lapwing(args);
        command.env("OCL_ICD_VENDORS", &vendors).env_remove("OPENCL_DYLIB_PATH");
        ended(command)
    };
    let json = with_both(&["devices", "--json"]).json();
    let platforms: Vec<_> =
        json["opencl"].as_array().expect("a list").iter().map(|d| &d["platform"]).collect();
    assert_eq!(platforms, ["Portable Computing Language"], "{json}");
    let failed = json["failed"].as_array().expect("a list");
    let named = format!("the OpenCL driver {} ({})", bad.display(), driver.display());
    assert_eq!((failed.len(), &failed[0]["driver"]), (1, &named.as_str().into()), "{failed:?}");
    let llama = model("llama.gguf");
    let run = with_both(&["run", "-m", &llama, "--raw", "-n", "2", "ab", "--device", "gpu=opencl"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains(&named) && run.stderr.contains("OCL_ICD_VENDORS"), "{run:?}");
}
