//! `lapwing devices`: what this machine has, and what it has not.

use indicatif::HumanBytes;
use lapwing::Requant;
use lapwing::devices::DeviceSpec;
use lapwing::plan::strategies;
use lapwing::policy;
use lapwing_kernels::cpu::Isa;
use serde::Serialize;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::cli::at_least_one;
use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::visible::visible;
use drivers::{ABSENT_KINDS, AbsentKind, library_folders};

mod drivers;
mod kernels;

const EXAMPLES: &str = "\
Examples:
  lapwing devices
  lapwing devices --json
  lapwing devices --kernels -t 2 -m FILE.gguf

With --kernels it measures for some seconds what the CPU does at most, and with -m every kind of op
of that model, alone and as it runs in an engine, beside the least time that these limits allow: the
longer of its operations at the peak of its arithmetic and its bytes at the rate of reading memory.
Above 100 %, operands came from a cache.

With --json:
  {\"cores\":N,\"memory\":{\"total_bytes\":N,\"available_bytes\":N},
   \"isa\":{\"best\":\"…\",\"why\":\"…\",\"available\":[\"generic\",…]},
   \"devices\":[{\"kind\":\"cpu\",\"present\":true,\"why\":\"…\",\"libraries\":[]},
              {\"kind\":\"opencl\",\"present\":false,\"why\":\"…\",\"libraries\":[\"PATH\",…]},…],
   \"presets\":[{\"name\":\"gpu\",\"devices\":[\"gpu=throttled:…\"]},…],
   \"strategies\":[{\"name\":\"cpu-only\",\"about\":\"…\"},…],
   \"policies\":[{\"name\":\"fcfs\",\"about\":\"…\"},…]}
  presets: what --device takes by name; libraries: drivers of that kind found on the machine,
  whether or not they are used.
  With --kernels:
  {\"isa\":\"…\",\"why\":\"…\",\"threads\":N,\"roofline\":{\"int8\":{\"instructions\":\"…\",\"gops\":X}|null,
   \"bf16\":{…}|null,\"f32\":{…}|null,\"read_gbps\":X,\"read_bytes\":N},
   \"blocks\":{\"caches\":{\"first_bytes\":N,…},\"int8\":{\"rows\":N,\"features\":N},…},
   \"kernels\":[{\"op\":\"matmul\",\"format\":\"Q4_1\"|null,
   \"arithmetic\":\"int8\"|\"bf16\"|\"f32\",\"how\":\"…\"},…],\"measured\":[{\"op\":\"…\",\"features\":N,\"inner\":N,
   \"format\":\"…\"|null,\"rows\":N,\"context\":N,\"us\":X,\"gops\":X,\"gbps\":X,
   \"bound_by\":\"…\"|null,\"of_bound\":X|null},…]|null,\"requant\":{…}|null}";

/// Options of `devices`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Show which kernel computes each op and why, and what of the machine it uses
    #[arg(long)]
    kernels: bool,

    /// Measure the ops of this model: a .gguf file, a name or hf:owner/repo/file.gguf[@revision]
    #[arg(short, long, value_name = "MODEL", requires = "kernels")]
    model: Option<String>,

    /// Threads that compute [default: all that the machine runs at once]
    #[arg(short, long, value_name = "N", value_parser = at_least_one, requires = "kernels")]
    threads: Option<usize>,

    /// Instruction set [default: the best one]
    #[arg(long, value_name = "NAME", requires = "kernels")]
    isa: Option<String>,

    /// Requantise the model's matrices to q8_0, q4_1 or q4_0 [default: as stored]
    #[arg(long, value_name = "FORMAT", requires = "model")]
    requant: Option<Requant>,
}

#[derive(Serialize)]
struct Report {
    cores: usize,
    memory: Memory,
    isa: IsaReport,
    devices: Vec<Device>,
    presets: Vec<Preset>,
    strategies: Vec<NamedReport>,
    policies: Vec<NamedReport>,
}

#[derive(Serialize)]
struct Preset {
    name: &'static str,
    devices: Vec<String>,
}

#[derive(Serialize)]
struct NamedReport {
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

/// Prints what there is.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    if args.kernels {
        return kernels::run(&args, session).await;
    }
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
            why: best.explain(),
            available: Isa::available().into_iter().map(Isa::name).collect(),
        },
        devices: std::iter::once(cpu)
            .chain(own_kinds())
            .chain(ABSENT_KINDS.iter().map(|kind| kind.look_for(&folders)))
            .collect(),
        presets: presets(),
        strategies: strategies()
            .iter()
            .map(|known| NamedReport { name: known.name, about: known.about })
            .collect(),
        policies: policy::known()
            .iter()
            .map(|known| NamedReport { name: known.name, about: known.about })
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
                "  instruction sets: {} (--isa takes another)\n  {}\n  memory: {}, {} available\n",
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
    for NamedReport { name, about } in &report.strategies {
        text.push_str(&format!("  {name:<19} {about}\n"));
    }
    text.push_str(&format!("\n{bold}Policies{bold:#} for --policy\n"));
    for NamedReport { name, about } in &report.policies {
        text.push_str(&format!("  {name:<19} {about}\n"));
    }
    print(&text)
}
