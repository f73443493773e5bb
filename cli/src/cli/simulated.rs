//! A simulated run, as commands print it.

use lapwing_lab::simulate::{DeviceUse, Repeated, Simulated};
use lapwing_traces::text::counted;

use super::table::{Align, table};
use super::visible::visible;

/// A run as a table.
pub(crate) fn text(title: &str, run: &Simulated) -> String {
    let dash = || "–".to_owned();
    let number = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value:.2}"));
    let speed = run.prefill_tokens_per_second;
    let rows = vec![
        ("prefill", Some(run.prefill_ms), Some(speed), run.prefill_w, run.prefill_j),
        ("decode", run.decode_ms, run.decode_tokens_per_second, run.decode_w, run.decode_j),
        ("all", Some(run.makespan_ms), None, run.power_w, run.energy_j),
    ];
    let rows = rows.into_iter().map(|(name, ms, speed, watts, joules)| {
        [name.to_owned(), number(ms), number(speed), number(watts), number(joules)]
    });
    let header = [
        ("", Align::Left),
        ("ms", Align::Right),
        ("tok/s", Align::Right),
        ("W", Align::Right),
        ("J", Align::Right),
    ];
    let mut text = format!("{}\n{}", visible(title), table(header, rows.collect()));
    let (overlap, syncs) = (run.overlap * 100.0, run.syncs);
    text.push_str(&format!("overlap {overlap:.0} %, {syncs} synchronisations"));
    if run.preparation_ms > 0.0 {
        text.push_str(&format!(", {:.1} ms of graph preparation", run.preparation_ms));
    }
    if let Some(frames) = run.frames_per_second {
        text.push_str(&format!(", the game at {frames:.0} frames per second"));
    }
    text.push_str(&format!("\nbusy: {}\n", uses(&run.devices)));
    text
}

/// The time that each device computes, the busiest first.
pub(crate) fn uses(devices: &[DeviceUse]) -> String {
    let mut order: Vec<&DeviceUse> = devices.iter().collect();
    order.sort_by(|a, b| b.busy_ms.total_cmp(&a.busy_ms));
    let used = |device: &&DeviceUse| match device.runs {
        0 => format!("{} not used", visible(&device.name)),
        _ => format!("{} {:.2} ms", visible(&device.name), device.busy_ms),
    };
    order.iter().map(used).collect::<Vec<_>>().join(", ")
}

/// Means of several runs as a table.
pub(crate) fn means(repeated: &Repeated) -> String {
    let header =
        [("", Align::Left), ("mean", Align::Right), ("from", Align::Right), ("to", Align::Right)];
    let rows = repeated.means.iter().map(|mean| {
        let number = |value: f64| format!("{value:.2}");
        [mean.figure.to_owned(), number(mean.mean), number(mean.low), number(mean.high)]
    });
    let runs = counted(repeated.count, "run");
    format!("\n{runs}, mean and 95 % interval of the mean\n{}", table(header, rows.collect()))
}
