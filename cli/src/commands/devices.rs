//! `lapwing devices`: the devices, presets and strategies of this machine.

use lapwing_engine::Requant;
use lapwing_engine::devices::DeviceSpec;
use lapwing_engine::plan::{Entry, Parameter, strategies};
use lapwing_engine::policy;
use lapwing_kernels::cpu::{CoreSet, Isa};
use serde::Serialize;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::cli::at_least_one;
use crate::cli::drivers::lister;
use crate::cli::failure::Failure;
use crate::cli::output::print_json;
use crate::cli::session::Session;
use drivers::{ABSENT_KINDS, library_folders};
use found::{Device, Failed};
pub(crate) use listed::list_drivers;
pub(crate) use seen::Drivers;

mod drivers;
mod found;
mod kernels;
mod listed;
mod opencl;
mod opencl_kernels;
mod openvino;
mod qnn;
mod seen;
mod text;

const EXAMPLES: &str = "\
Examples:
  lapwing devices
  lapwing devices --json
  lapwing devices --kernels -t 2 -m FILE.gguf
  lapwing devices --kernels --device gpu=opencl

With --kernels it measures the peak rates of the CPU for a few seconds. With -m it also measures
every kind of op of that model, in isolation and as it runs in an engine, and compares it with its
roofline bound: the longer of its operations at the peak arithmetic rate and its bytes at the peak
memory bandwidth. Above 100 %, operands came from a cache.

With --kernels and --device gpu=opencl it shows the kernels that were chosen for matmuls on that
device, for the formats of a model with -m or else for all, and the times that decided. It measures
them unless an earlier start has.

With --json:
  {\"cores\":N,\"memory\":{\"total_bytes\":N,\"available_bytes\":N},
   \"numa\":[{\"node\":N,\"cores\":\"0-7\"},…],
   \"isa\":{\"best\":\"…\",\"why\":\"…\",\"available\":[\"generic\",…]},
   \"devices\":[{\"kind\":\"cpu\",\"present\":true,\"why\":\"…\",\"libraries\":[]},
              {\"kind\":\"npu\",\"present\":false,\"why\":\"…\",\"libraries\":[\"PATH\",…]},…],
   \"opencl\":[{\"index\":N,\"name\":\"…\",\"platform\":\"…\",\"vendor\":\"…\",\"driver\":\"…\",\"version\":\"…\",
     \"kind\":\"GPU\"|\"CPU\"|\"other processor\",\"units\":N,\"mhz\":N,\"memory_bytes\":N,
     \"buffer_max_bytes\":N,\"local_memory_bytes\":N,\"group_max\":N,\"unified_memory\":true,
     \"sharing\":\"…\",
     \"fp16\":true,\"subgroups\":true,\"integer_dot\":true,\"timer_ns\":N},…],
   \"openvino\":[{\"device\":\"…\",\"processor\":\"…\",\"version\":\"…\",\"library\":\"PATH\"},…],
   \"qnn\":[{\"processor\":\"…\",\"version\":\"…\",\"build\":\"…\",\"emulated\":true,\"library\":\"PATH\"}],
   \"failed\":[{\"kind\":\"opencl\",\"driver\":\"…\",\"what\":\"…\",\"said\":\"…\"|null},…],
   \"presets\":[{\"name\":\"gpu\",\"devices\":[\"gpu=throttled:…\"]},…],
   \"strategies\":[{\"name\":\"chunked\",\"about\":\"…\",\"parameters\":[…]},…],
   \"policies\":[{\"name\":\"mlfq\",\"about\":\"…\",\"parameters\":[…]},…]}
  presets: values of --device; libraries: drivers of that kind found on the machine, whether or not
  they are used; failed: drivers that abort, crash or hang while they are listed, which a process of
  its own does.
  With --kernels:
  {\"isa\":\"…\",\"why\":\"…\",\"threads\":N,\"cores\":\"…\"|null,
   \"roofline\":{\"int8\":{\"instructions\":\"…\",\"gops\":X}|null,
   \"bf16\":{…}|null,\"f32\":{…}|null,\"read_gbps\":X,\"read_bytes\":N},
   \"blocks\":{\"caches\":{\"first_bytes\":N,…},\"int8\":{\"rows\":N,\"features\":N},…},
   \"kernels\":[{\"op\":\"matmul\",\"format\":\"Q4_1\"|null,
   \"arithmetic\":\"int8\"|\"bf16\"|\"f32\",\"how\":\"…\"},…],\"measured\":[{\"op\":\"…\",\"features\":N,\"inner\":N,
   \"format\":\"…\"|null,\"rows\":N,\"context\":N,\"us\":X,\"gops\":X,\"gbps\":X,
   \"bound_by\":\"…\"|null,\"of_bound\":X|null},…]|null,\"requant\":{…}|null}
  With --kernels and --device:
  {\"device\":\"…\",\"platform\":\"…\",\"driver\":\"…\",
   \"persistent\":{\"may_be_used\":false,\"why\":\"…\"},
   \"matmuls\":[{\"format\":\"Q4_1\",\"many\":\"…\",\"few\":\"…\",
   \"many_us\":[{\"kernel\":\"…\",\"us\":X},…],\"few_us\":[…]},…]}";

/// Options of `devices`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Show the kernel of each op and why it was chosen, and the share of the machine's peak it reaches
    #[arg(long)]
    kernels: bool,

    /// Show the kernels of this OpenCL device: NAME=opencl or NAME=opencl:WHICH,KEY=VALUE,…
    #[arg(long, value_name = "DEVICE", requires = "kernels",
          conflicts_with_all = ["threads", "cores", "isa", "requant"])]
    device: Option<DeviceSpec>,

    /// Measure the ops of this model: a .gguf file, a name or hf:owner/repo[:QUANT]
    #[arg(short, long, value_name = "MODEL", requires = "kernels")]
    model: Option<String>,

    /// Compute threads [default: one for each of --cores, or all hardware threads]
    #[arg(short, long, value_name = "N", value_parser = at_least_one, requires = "kernels")]
    threads: Option<usize>,

    /// Pin the compute threads to these cores, as in 0-3 or 0,2-3 [default: not pinned]
    #[arg(long, value_name = "CORES", requires = "kernels")]
    cores: Option<CoreSet>,

    /// Instruction set [default: the fastest available]
    #[arg(long, value_name = "NAME", requires = "kernels")]
    isa: Option<String>,

    /// Requantise the model's matrices to this form, such as q4_0 or int4:128:min [default: as stored]
    #[arg(long, value_name = "FORM", requires = "model")]
    requant: Option<Requant>,
}

#[derive(Serialize)]
struct Report {
    cores: usize,
    memory: Memory,
    numa: Vec<NumaNode>,
    isa: IsaReport,
    devices: Vec<Device>,
    opencl: Vec<opencl::OpenClDevice>,
    openvino: Vec<openvino::OpenVinoDevice>,
    qnn: Vec<qnn::QnnDevice>,
    failed: Vec<Failed>,
    presets: Vec<Preset>,
    strategies: Vec<NamedReport>,
    policies: Vec<NamedReport>,
}

#[derive(Serialize)]
struct Preset {
    name: &'static str,
    devices: Vec<String>,
}

/// What can be chosen by name.
#[derive(Serialize)]
struct NamedReport {
    name: &'static str,
    about: &'static str,
    parameters: Vec<ParameterReport>,
}

#[derive(Serialize)]
struct ParameterReport {
    name: &'static str,
    about: &'static str,
    default: f64,
}

impl NamedReport {
    fn all<T>(entries: &'static [Entry<T>]) -> Vec<NamedReport> {
        let parameter = |&Parameter { name, about, default, .. }: &Parameter| ParameterReport {
            name,
            about,
            default,
        };
        let report = |entry: &'static Entry<T>| NamedReport {
            name: entry.name(),
            about: entry.about(),
            parameters: entry.parameters().iter().map(parameter).collect(),
        };
        entries.iter().map(report).collect()
    }
}

/// The presets of `--device`.
const PRESETS: [&str; 5] = ["cpu", "gpu", "npu", "phone", "laptop"];

#[derive(Serialize)]
struct Memory {
    total_bytes: u64,
    available_bytes: u64,
}

/// A NUMA node with its cores.
#[derive(Serialize)]
struct NumaNode {
    node: usize,
    cores: String,
}

#[derive(Serialize)]
struct IsaReport {
    best: &'static str,
    why: String,
    available: Vec<&'static str>,
}

/// Prints the report.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    if let Some(device) = &args.device {
        return opencl_kernels::run(device, args.model.as_deref(), session).await;
    }
    if args.kernels {
        return kernels::run(&args, session).await;
    }
    let report = report();
    if session.json { print_json(&report) } else { text::print_report(&report) }
}

fn report() -> Report {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory);
    let best = Isa::best();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Where threads cannot be pinned, cores have no numbers to choose from.
    let numbers = CoreSet::available().map(|set| format!(" (cores {set}; choose with --cores)"));
    let numbers = numbers.unwrap_or_default();
    let cpu = Device {
        kind: "cpu",
        present: true,
        why: format!("{cores} hardware threads{numbers}, kernels for {}", best.name()),
        libraries: Vec::new(),
    };
    let folders = library_folders();
    let lister = lister();
    // OpenVINO does without the drivers of OpenCL that fail, so it comes after them.
    let (opencl_kind, opencl) = opencl::look(&lister);
    let (openvino_kind, openvino) = openvino::look(&lister);
    let (qnn_kind, qnn) = qnn::look(&lister);
    let failed = [opencl.failed, openvino.failed, qnn.failed].concat();
    Report {
        cores,
        memory: Memory {
            total_bytes: system.total_memory(),
            available_bytes: system.available_memory(),
        },
        numa: CoreSet::nodes()
            .into_iter()
            .map(|(node, cores)| NumaNode { node, cores: cores.to_string() })
            .collect(),
        isa: IsaReport {
            best: best.name(),
            why: best.explain(),
            available: Isa::available().into_iter().map(Isa::name).collect(),
        },
        devices: std::iter::once(cpu)
            .chain(own_kinds())
            .chain([opencl_kind, openvino_kind, qnn_kind])
            .chain(ABSENT_KINDS.iter().map(|kind| kind.look_for(&folders)))
            .collect(),
        opencl: opencl.devices,
        openvino: openvino.devices,
        qnn: qnn.devices,
        failed,
        presets: presets(),
        strategies: NamedReport::all(strategies()),
        policies: NamedReport::all(policy::known()),
    }
}

/// The devices of each preset.
fn presets() -> Vec<Preset> {
    let of = |name| DeviceSpec::list(name).unwrap_or_default();
    let text = |name| of(name).iter().map(ToString::to_string).collect();
    PRESETS.into_iter().map(|name| Preset { name, devices: text(name) }).collect()
}

/// Kinds of device that are part of this program.
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
            "a processor of stated rates, emulated by CPU threads: --device gpu=throttled",
        ),
        own(
            "software-npu",
            "prepared graphs on a modelled systolic array, emulated by a CPU thread: \
             --device npu=systolic",
        ),
    ]
}
