//! The report as text.

use indicatif::HumanBytes;

use super::drivers::AbsentKind;
use super::{NamedReport, NumaNode, ParameterReport, Preset, Report, opencl, openvino, qnn};
use crate::cli::failure::Failure;
use crate::cli::output::print;
use crate::cli::visible::visible;

/// Explanation of device specifications.
const FORMS: &str = "\
    --device NAME=FORM:KEY=VALUE,… with one of these forms; all keys are optional
    cores      the CPU, not throttled. Keys: threads
    opencl     a GPU, or another processor, with an OpenCL driver: NAME=opencl, or
               NAME=opencl:NUMBER-OR-PART-OF-ITS-NAME,KEY=VALUE,… Keys: memory=shared|copied (values in
               place, or by copies), persistent=on|off (one kernel for runs of few rows)
    throttled  CPU threads that compute true values, throttled to stated rates. Keys: gflops, gbps,
               submit, idle-submit, sync (times such as 20us), threads, kind=cpu|gpu|npu
    openvino   an NPU that runs graphs compiled by Intel OpenVINO, or its CPU as a stand-in. Keys:
               device (OpenVINO's name), threads (of the CPU), sizes, budget
    qnn        an NPU that runs graphs of Qualcomm QNN, or its emulator on x86-64. Keys: library (a path),
               soc, arch, activations=f16|u16|u8 (integers after `lapwing ranges`),
               weights=f16|int8|int4|int4:BLOCK (16 to 128), sizes, budget
    systolic   an NPU in software that runs prepared graphs and computes true values, throttled to
               a systolic array. Keys: those of throttled, array, floor, sizes (1-1024 or 1/32/96),
               budget (4GiB), prepare, prepare-gweight, activations=int8 (one fixed scale for each
               product, after `lapwing ranges`), clip (0.999), outliers=cpu|none, prune (0)
";

/// Prints the report.
pub(super) fn print_report(report: &Report) -> Result<(), Failure> {
    let bold = anstyle::Style::new().bold();
    let mut text = String::new();
    for device in &report.devices {
        let mark = if device.present { "present" } else { "absent" };
        let title = AbsentKind::title(device.kind);
        let title = match title {
            "cpu" => "CPU",
            "throttled" => "Throttled processor",
            "software-npu" => "Software NPU",
            "opencl" => "OpenCL",
            "openvino" => "OpenVINO",
            "qnn" => "QNN",
            other => other,
        };
        text.push_str(&format!("{bold}{title}{bold:#}: {mark}\n  {}\n", visible(&device.why)));
        if device.kind == "cpu" {
            text.push_str(&format!(
                "  instruction sets: {} (choose with --isa)\n  {}\n  memory: {}, {} available\n",
                report.isa.available.join(", "),
                report.isa.why,
                HumanBytes(report.memory.total_bytes),
                HumanBytes(report.memory.available_bytes),
            ));
            if report.numa.len() > 1 {
                let node =
                    |NumaNode { node, cores }: &NumaNode| format!("node{node} has cores {cores}");
                let nodes: Vec<String> = report.numa.iter().map(node).collect();
                text.push_str(&format!(
                    "  NUMA: {} (choose with --cores node{})\n",
                    nodes.join(", "),
                    report.numa[0].node
                ));
            }
        }
        if device.kind == "opencl" {
            opencl::describe(&report.opencl, &mut text);
        }
        if device.kind == "qnn" {
            qnn::describe(&report.qnn, &mut text);
        }
        if device.kind == "openvino" {
            openvino::describe(&report.openvino, &mut text);
        }
        for failed in report.failed.iter().filter(|failed| failed.kind == device.kind) {
            text.push_str(&format!("  failed: {}\n", visible(&failed.text)));
        }
    }
    text.push_str(&format!("\n{bold}Presets{bold:#} for --device\n"));
    for Preset { name, devices } in &report.presets {
        text.push_str(&format!("  {name:<6} {}\n", devices.join("\n         + ")));
    }
    text.push_str(FORMS);
    let strategies = "for --strategy, with their parameters as in chunked:chunk=64";
    text.push_str(&format!("\n{bold}Strategies{bold:#} {strategies}\n"));
    report.strategies.iter().for_each(|strategy| describe(strategy, &mut text));
    let policies = "for --policy, with their parameters as in mlfq:quantum=32";
    text.push_str(&format!("\n{bold}Policies{bold:#} {policies}\n"));
    report.policies.iter().for_each(|policy| describe(policy, &mut text));
    print(&text)
}

/// What can be chosen by name, with its parameters.
fn describe(named: &NamedReport, text: &mut String) {
    let NamedReport { name, about, parameters } = named;
    text.push_str(&format!("  {name:<19} {about}\n"));
    for ParameterReport { name, about, default } in parameters {
        text.push_str(&format!("  {:<19}   {name}={default}: {about}\n", ""));
    }
}
