//! A report as text.

use indicatif::HumanBytes;

use super::collect::names;
use super::content::{DeviceCheck, Measured, Report, Strategies, StrategyRun};
use super::machine::Machine;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;
use crate::commands::devices::Drivers;

/// The report.
pub(super) fn of(report: &Report) -> String {
    let mut text = machine(&report.machine);
    text.push_str(&drivers(&report.drivers));
    text.push_str(&format!(
        "{}model{:#}: {}, {}\n",
        bold(),
        bold(),
        visible(&report.model.file),
        HumanBytes(report.model.bytes)
    ));
    text.push_str(&format!("\n{}devices{:#}, each continuing the same prompt\n", bold(), bold()));
    text.push_str(&devices(&report.devices));
    text.push_str(&profile(report));
    match (&report.strategies, &report.strategies_failed) {
        (Some(strategies), _) => text.push_str(&compared(strategies)),
        (None, why) => {
            let why = why.as_deref().unwrap_or("for an unknown reason");
            text.push_str(&format!("\nno strategies were measured: {}\n", visible(why)));
        }
    }
    text.push_str(&format!(
        "\nlapwing {}, version {} of the form, made in {:.0} s\n",
        visible(&report.program),
        report.lapwing_report,
        report.seconds
    ));
    text
}

fn bold() -> anstyle::Style {
    anstyle::Style::new().bold()
}

fn dash() -> String {
    "–".to_owned()
}

fn machine(machine: &Machine) -> String {
    let size = |bytes: usize| HumanBytes(bytes as u64).to_string();
    let caches = &machine.caches;
    let last = caches.last_bytes.map_or_else(dash, size);
    let assumed = if caches.known { "" } else { " (assumed)" };
    let mut text = format!(
        "{}{}{:#}\n  {} hardware threads, kernels for {} (of {})\n  caches: {}, {}, {last}{assumed}\n  \
         memory: {}\n",
        bold(),
        visible(&machine.cpu),
        bold(),
        machine.cores,
        visible(&machine.isa),
        visible(&machine.isa_available.join(", ")),
        size(caches.first_bytes),
        size(caches.second_bytes),
        HumanBytes(machine.memory_bytes),
    );
    let nodes = machine.numa.iter().map(|node| format!("node{} {}", node.node, node.cores));
    let nodes: Vec<String> = nodes.collect();
    if nodes.len() > 1 {
        text.push_str(&format!("  NUMA: {}\n", visible(&nodes.join(", "))));
    }
    let system = [&machine.os_version, &machine.kernel];
    let system: Vec<&str> = system.into_iter().flatten().map(|part| &**part).collect();
    let system = if system.is_empty() { machine.os.clone() } else { system.join(", ") };
    text.push_str(&format!("  {}, {}\n", visible(&system), visible(&machine.architecture)));
    text
}

fn drivers(drivers: &Drivers) -> String {
    let opencl = drivers.opencl.iter().map(|device| {
        format!(
            "OpenCL: {} ({}), {}, driver {}",
            device.name, device.kind, device.version, device.driver
        )
    });
    let openvino = drivers.openvino.iter();
    let openvino = openvino.map(|device| {
        format!("OpenVINO {}: {} ({})", device.version, device.processor, device.device)
    });
    let qnn = drivers.qnn.iter().map(|device| {
        let emulated = if device.emulated { ", emulated" } else { "" };
        format!("QNN {}: {}{emulated}", device.build, device.processor)
    });
    let failed = drivers.failed.iter().map(|failed| {
        let said =
            failed.said.as_ref().map_or(String::new(), |said| format!(" (it wrote: {said})"));
        format!("failed: {} {} while its devices were listed{said}", failed.driver, failed.what)
    });
    let lines = opencl.chain(openvino).chain(qnn).chain(failed);
    let lines: String = lines.map(|line| format!("  {}\n", visible(&line))).collect();
    let lines = if lines.is_empty() { "  none lists a device\n".to_owned() } else { lines };
    format!("{}drivers{:#}\n{lines}", bold(), bold())
}

fn devices(devices: &[DeviceCheck]) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(dash, |rate| format!("{rate:.1}"));
    let row = |device: &DeviceCheck| {
        let ids = match (device.equal, device.first_difference) {
            (Some(true), _) => "equal".to_owned(),
            (Some(false), Some(at)) => format!("differ from number {}", at + 1),
            (Some(false), None) => "differ".to_owned(),
            (None, _) => dash(),
        };
        let mut remarks = vec![device.spec.clone()];
        remarks.extend(device.emulated.then(|| "emulated".to_owned()));
        remarks.extend(device.beside.as_ref().map(|beside| format!("beside {beside}")));
        remarks.extend(device.failed.as_ref().map(|why| format!("failed: {why}")));
        [
            device.device.clone(),
            ids,
            rate(device.prefill_tokens_per_second),
            rate(device.decode_tokens_per_second),
            remarks.join("; "),
        ]
    };
    let header = [
        ("device", Align::Left),
        ("ids", Align::Left),
        ("prompt, tokens/s", Align::Right),
        ("generation", Align::Right),
        ("", Align::Left),
    ];
    table(header, devices.iter().map(row).collect())
}

fn profile(report: &Report) -> String {
    let (Some(profile), trust) = (&report.profile, &report.trust) else {
        let why = report.profile_failed.as_deref().unwrap_or("for an unknown reason");
        return format!("\nno profile was measured: {}\n", visible(why));
    };
    let row = |device: &lapwing_engine::profile::DeviceProfile| {
        let us = |ns: u64| format!("{:.0} µs", ns as f64 / 1e3);
        [
            device.name.clone(),
            format!("{} of {}", device.samples.len(), device.asked),
            us(device.submit_idle_ns),
            us(device.crossing_ns),
            device.description.clone(),
        ]
    };
    let header = [
        ("device", Align::Left),
        ("points", Align::Right),
        ("submit", Align::Right),
        ("crossing", Align::Right),
        ("", Align::Left),
    ];
    let trust = trust.as_ref().map_or(String::new(), |trust| match &trust.why {
        Some(why) => format!(", {}: {why}", trust.trust),
        None => format!(", {}", trust.trust),
    });
    format!(
        "\n{}profile{:#} of {}{}\n{}",
        bold(),
        bold(),
        visible(&profile.model),
        visible(&trust),
        table(header, profile.devices.iter().map(row).collect())
    )
}

fn compared(strategies: &Strategies) -> String {
    let ms = |ms: f64| format!("{ms:.1}");
    let row = |run: &StrategyRun| {
        let measured = run.measured.as_ref();
        let of =
            |value: fn(&Measured) -> Option<f64>| measured.and_then(value).map_or_else(dash, ms);
        let error = run
            .predicted_ms
            .zip(measured)
            .map_or_else(dash, |both| format!("{:+.0} %", 100.0 * (both.0 / both.1.ttft_ms - 1.0)));
        let equal = run.equal.map_or("–", |equal| if equal { "equal" } else { "differ" });
        let chosen = (run.strategy == strategies.chosen).then_some("auto's choice");
        let remarks = chosen.into_iter().chain(run.failed.as_deref());
        [
            run.strategy.clone(),
            run.predicted_ms.map_or_else(dash, ms),
            of(|measured| Some(measured.ttft_ms)),
            error,
            of(|measured| measured.tpot_ms),
            of(|measured| Some(measured.late_ms)),
            equal.to_owned(),
            remarks.collect::<Vec<_>>().join("; "),
        ]
    };
    let header = [
        ("strategy", Align::Left),
        ("predicted", Align::Right),
        ("TTFT", Align::Right),
        ("error", Align::Right),
        ("TPOT", Align::Right),
        ("late", Align::Right),
        ("ids", Align::Left),
        ("", Align::Left),
    ];
    let runs = &strategies.runs;
    let (possible, impossible): (Vec<_>, Vec<_>) =
        runs.iter().partition(|run| run.predicted_ms.is_some() || run.measured.is_some());
    let impossible = impossible.into_iter().map(|run| {
        let why = run.failed.as_deref().unwrap_or("for an unknown reason");
        format!("left out {}: {why}\n", run.strategy)
    });
    let impossible: String = impossible.collect();
    format!(
        "\n{}strategies{:#} for {} tokens, then {} generated, on {}; times in ms, predictions from {}\n{}{}",
        bold(),
        bold(),
        strategies.prompt_tokens,
        strategies.generated_tokens,
        visible(&names(&strategies.devices)),
        visible(&strategies.source),
        table(header, possible.into_iter().map(row).collect()),
        visible(&impossible),
    )
}
