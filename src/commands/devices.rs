//! `lapwing devices`: what this machine has, and what it has not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use indicatif::HumanBytes;
use lapwing::devices::DeviceSpec;
use lapwing::plan::strategies;
use lapwing_kernels::cpu::Isa;
use serde::Serialize;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use super::failure::Failure;
use super::output::{print, print_json, visible};
use super::session::Session;

const EXAMPLES: &str = "\
Examples:
  lapwing devices
  lapwing devices --json

With --json:
  {\"cores\":N,\"memory\":{\"total_bytes\":N,\"available_bytes\":N},
   \"isa\":{\"best\":\"…\",\"why\":\"…\",\"available\":[\"generic\",…]},
   \"devices\":[{\"kind\":\"cpu\",\"present\":true,\"why\":\"…\",\"libraries\":[]},
              {\"kind\":\"opencl\",\"present\":false,\"why\":\"…\",\"libraries\":[\"PATH\",…]},…],
   \"presets\":[{\"name\":\"gpu\",\"devices\":[\"gpu=throttled:…\"]},…],
   \"strategies\":[{\"name\":\"cpu-only\",\"about\":\"…\"},…]}
  presets: what --device takes by name; libraries: drivers of that kind found on the machine, whether or not they are used.";

/// Options of `devices`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Report {
    cores: usize,
    memory: Memory,
    isa: IsaReport,
    devices: Vec<Device>,
    presets: Vec<Preset>,
    strategies: Vec<StrategyReport>,
}

#[derive(Serialize)]
struct Preset {
    name: &'static str,
    devices: Vec<String>,
}

#[derive(Serialize)]
struct StrategyReport {
    name: &'static str,
    about: &'static str,
}

/// Names that `--device` takes alone.
const PRESETS: [&str; 4] = ["cpu", "gpu", "npu", "phone"];

/// How devices are written.
const FORMS: &str = "\
  --device NAME=FORM:KEY=VALUE,… with these forms; every key may be left out
    cores      the CPU as it is: threads
    throttled  CPU threads that compute true values, held to stated rates: gflops, gbps, submit,
               idle-submit, sync (times such as 20us), threads, kind=cpu|gpu|npu
    systolic   an NPU in software: prepared graphs on a modelled array, true values: all of
               throttled, array, floor, sizes (32-1024 or 32/96), budget (4GiB), prepare,
               prepare-gweight
";

#[derive(Serialize)]
struct Memory {
    total_bytes: u64,
    available_bytes: u64,
}

#[derive(Serialize)]
struct IsaReport {
    best: &'static str,
    why: String,
    available: Vec<&'static str>,
}

#[derive(Serialize)]
struct Device {
    kind: &'static str,
    present: bool,
    why: String,
    libraries: Vec<String>,
}

/// A kind of device that this version does not use, and the libraries its drivers come as.
struct AbsentKind {
    kind: &'static str,
    title: &'static str,
    libraries: &'static [&'static str],
}

const ABSENT_KINDS: [AbsentKind; 2] = [
    AbsentKind {
        kind: "opencl",
        title: "OpenCL (GPU)",
        libraries: &["libOpenCL.so", "libOpenCL.so.1", "OpenCL.dll", "OpenCL.framework"],
    },
    AbsentKind {
        kind: "npu",
        title: "NPU",
        libraries: &[
            "libQnnHtp.so",
            "QnnHtp.dll",
            "libze_intel_npu.so",
            "libze_intel_npu.so.1",
            "libopenvino_c.so",
            "openvino_c.dll",
            "librknnrt.so",
        ],
    },
];

/// Where systems keep their libraries.
const FOLDERS: [&str; 15] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/arm-linux-gnueabihf",
    "/system/vendor/lib64",
    "/vendor/lib64",
    "/opt/intel/openvino/runtime/lib/intel64",
    "/System/Library/Frameworks",
    "C:\\Windows\\System32",
];

/// Prints what there is.
pub(crate) fn run(_args: &Args, session: &Session) -> Result<(), Failure> {
    let report = report();
    if session.json { print_json(&report) } else { print_report(&report) }
}

fn report() -> Report {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory);
    let best = Isa::best();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = Device {
        kind: "cpu",
        present: true,
        why: format!("{cores} threads at once, kernels for {}", best.name()),
        libraries: Vec::new(),
    };
    let folders = library_folders();
    Report {
        cores,
        memory: Memory {
            total_bytes: system.total_memory(),
            available_bytes: system.available_memory(),
        },
        isa: IsaReport {
            best: best.name(),
            why: best.why(),
            available: Isa::available().into_iter().map(Isa::name).collect(),
        },
        devices: std::iter::once(cpu)
            .chain(own_kinds())
            .chain(ABSENT_KINDS.iter().map(|kind| kind.look_for(&folders)))
            .collect(),
        presets: presets(),
        strategies: strategies()
            .iter()
            .map(|known| StrategyReport { name: known.name, about: known.about })
            .collect(),
    }
}

/// What stands behind the names.
fn presets() -> Vec<Preset> {
    let of = |name| DeviceSpec::list(name).unwrap_or_default();
    let text = |name| of(name).iter().map(ToString::to_string).collect();
    PRESETS.into_iter().map(|name| Preset { name, devices: text(name) }).collect()
}

/// Kinds of device that this program brings itself.
fn own_kinds() -> [Device; 2] {
    let own = |kind, why: &str| Device {
        kind,
        present: true,
        why: why.to_owned(),
        libraries: Vec::new(),
    };
    [
        own(
            "throttled",
            "a processor of stated rates, computed by threads of the CPU: --device gpu",
        ),
        own(
            "software-npu",
            "prepared graphs on a modelled systolic array, computed by a thread of the CPU: \
             --device npu",
        ),
    ]
}

impl AbsentKind {
    fn look_for(&self, folders: &[PathBuf]) -> Device {
        let found: BTreeSet<PathBuf> = folders
            .iter()
            .flat_map(|folder| self.libraries.iter().map(move |library| folder.join(library)))
            .filter(|path| path.exists())
            .map(|path| path.canonicalize().unwrap_or(path))
            .collect();
        let libraries: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        let driver = if libraries.is_empty() {
            format!("no driver library was found ({})", self.libraries.join(", "))
        } else {
            format!("a driver library is here ({})", libraries.join(", "))
        };
        Device {
            kind: self.kind,
            present: false,
            why: format!("this version of Lapwing uses no such driver; {driver}"),
            libraries,
        }
    }

    fn title(kind: &str) -> &str {
        let known = ABSENT_KINDS.iter().find(|absent| absent.kind == kind);
        known.map_or(kind, |absent| absent.title)
    }
}

/// Folders that a loader would look in, without the same one twice.
fn library_folders() -> Vec<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named: Vec<PathBuf> = std::env::split_paths(&named).collect();
    let usual = FOLDERS.iter().map(|folder| Path::new(folder).to_owned());
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in named.into_iter().chain(usual).filter(|folder| folder.is_absolute()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

fn print_report(report: &Report) -> Result<(), Failure> {
    let bold = anstyle::Style::new().bold();
    let mut text = String::new();
    for device in &report.devices {
        let mark = if device.present { "present" } else { "absent" };
        let title = AbsentKind::title(device.kind);
        let title = match title {
            "cpu" => "CPU",
            "throttled" => "Throttled processor",
            "software-npu" => "Software NPU",
            other => other,
        };
        text.push_str(&format!("{bold}{title}{bold:#}: {mark}\n  {}\n", visible(&device.why)));
        if device.kind == "cpu" {
            text.push_str(&format!(
                "  instruction sets: {} (slowest first; the last one is used)\n  {}\n  memory: {}, {} available\n",
                report.isa.available.join(", "),
                report.isa.why,
                HumanBytes(report.memory.total_bytes),
                HumanBytes(report.memory.available_bytes),
            ));
        }
    }
    text.push_str(&format!("\n{bold}Presets{bold:#} for --device\n"));
    for Preset { name, devices } in &report.presets {
        text.push_str(&format!("  {name:<6} {}\n", devices.join("\n         + ")));
    }
    text.push_str(FORMS);
    text.push_str(&format!("\n{bold}Strategies{bold:#} for --strategy\n"));
    for StrategyReport { name, about } in &report.strategies {
        text.push_str(&format!("  {name:<19} {about}\n"));
    }
    print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_on_the_machine_is_named_though_it_is_not_used() {
        let folder = tempfile::tempdir().expect("folder");
        let kind = &ABSENT_KINDS[0];
        let before = kind.look_for(&[folder.path().to_owned()]);
        assert!(before.libraries.is_empty() && before.why.contains("no driver library"));
        std::fs::write(folder.path().join("libOpenCL.so.1"), b"").expect("write");
        let after = kind.look_for(&[folder.path().to_owned()]);
        assert!(!after.present && after.libraries[0].ends_with("libOpenCL.so.1"), "{}", after.why);
    }
}
