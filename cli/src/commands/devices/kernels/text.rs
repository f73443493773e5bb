//! Prints the kernels as text.

use indicatif::HumanBytes;
use lapwing_kernels::cpu::PrefetchHint;

use super::blocks::BlocksReport;
use super::{OpReport, PeakReport, Report};
use crate::cli::failure::Failure;
use crate::cli::output::print;
use crate::cli::table::{Align, table};

/// Prints the peak rates, the kernels and the measured ops.
pub(super) fn print_report(report: &Report) -> Result<(), Failure> {
    let bold = anstyle::Style::new().bold();
    let peak = |name: &str, peak: &Option<PeakReport>| match peak {
        Some(PeakReport { instructions, gops }) => {
            format!("  {name:<8} {gops:>7.0} GOP/s  {instructions}\n")
        }
        None => format!("  {name:<8}       –        not available with this instruction set\n"),
    };
    let roofline = &report.roofline;
    let mut text = format!(
        "{}\n\n{bold}Peak rates{bold:#} with {} threads{}; a multiply-add counts as two operations\n{}{}{}  \
         {:<8} {:>7.1} GB/s   reading {}\n\n\
         {bold}Blocks{bold:#}\n{}\n{bold}Kernels{bold:#}\n",
        report.why,
        report.threads,
        report.cores.as_ref().map(|cores| format!(" pinned to cores {cores}")).unwrap_or_default(),
        peak("int8", &roofline.int8),
        peak("bf16", &roofline.bf16),
        peak("f32", &roofline.f32),
        "memory",
        roofline.read_gbps,
        HumanBytes(roofline.read_bytes as u64),
        blocks(&report.blocks),
    );
    for kernel in &report.kernels {
        let op = format!("{} {}", kernel.op, kernel.format.as_deref().unwrap_or_default());
        text.push_str(&format!("  {:<18} {}\n", op.trim_end(), kernel.how));
    }
    match &report.measured {
        None => text.push_str("\nUse -m FILE.gguf to measure the ops of that model.\n"),
        Some(ops) => {
            text.push_str(&format!("\n{bold}Measured{bold:#}\n{}", measured(ops)));
        }
    }
    print(&text)
}

fn blocks(report: &BlocksReport) -> String {
    let BlocksReport { caches, int8, f32, direct_rows, panel_columns } = report;
    let bytes = |bytes: usize| HumanBytes(bytes as u64);
    let last = caches.last_bytes.map(|last| format!(", {} in the last", bytes(last)));
    let unpacked = match panel_columns {
        None => "each group of 32 columns is unpacked once for all rows".to_owned(),
        Some(columns) => format!(
            "up to {direct_rows} rows unpack weights while reading them, more rows share panels \
             of up to {columns} columns"
        ),
    };
    format!(
        "  caches   {} per thread in the first level, {} in the second{}{}{}\n  \
         int8     accumulators of {} × {} (rows × output channels) in registers; {unpacked}\n  \
         f32      accumulators of {} × {} in registers\n",
        bytes(caches.first_bytes),
        bytes(caches.second_bytes),
        last.unwrap_or_default(),
        if caches.known { "" } else { " (not reported by the system: assumed minimum)" },
        match caches.ask_into {
            PrefetchHint::AllLevels => "",
            PrefetchHint::L2Only => "; streamed data is prefetched into the second level",
            PrefetchHint::L1Only => "; streamed data is prefetched past the second level",
        },
        int8.rows,
        int8.features,
        f32.rows,
        f32.features,
    )
}

fn measured(ops: &[OpReport]) -> String {
    let rows = ops.iter().map(|op| {
        let mut name = format!("{} {}", op.op, op.features);
        if op.inner > 0 {
            name.push_str(&format!(" × {}", op.inner));
        }
        if let Some(format) = &op.format {
            name.push_str(&format!(" {format}"));
        }
        [
            name,
            op.rows.to_string(),
            op.context.to_string(),
            format!("{:.1}", op.us),
            format!("{:.1}", op.gops),
            format!("{:.1}", op.gbps),
            op.bound_by.unwrap_or("–").to_owned(),
            op.of_bound.map_or_else(|| "–".to_owned(), |part| format!("{:.0} %", 100.0 * part)),
        ]
    });
    let header = [
        ("op", Align::Left),
        ("rows", Align::Right),
        ("context", Align::Right),
        ("µs", Align::Right),
        ("GOP/s", Align::Right),
        ("GB/s", Align::Right),
        ("bound by", Align::Left),
        ("of bound", Align::Right),
    ];
    table(header, rows.collect())
}
