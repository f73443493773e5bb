//! Prints the results of `bench` as text.

use lapwing_traces::text::counted;

use super::against::Against;
use super::alone::Report;
use super::pairs::{self, OURS};
use super::report::{EngineRuns, Figures, Measured, Ratio};
use lapwing_engine::Placement;

use crate::cli::attention::AttentionChanges;
use crate::cli::failure::Failure;
use crate::cli::output::print;
use crate::cli::requant::RequantReport;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

/// Prints the speeds of this engine.
pub(super) fn print_own(report: &Report) -> Result<(), Failure> {
    let rows = report.results.iter().map(|result| {
        let Figures { median, min, max, .. } = &result.tokens_per_second;
        let [median, min, max] = [median, min, max].map(|speed| format!("{speed:.2}"));
        [result.test.clone(), median, min, max]
    });
    let header = [
        ("test", Align::Left),
        ("tok/s (median)", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
    ];
    let reading: String = report.results.iter().filter_map(of_reading).collect();
    let of_drafts = |result: &Measured| Some(result.draft.as_ref()?.lines(&result.test));
    let drafts: String = report.results.iter().filter_map(of_drafts).collect();
    print(&format!(
        "{}\n{}, {}, {}, {} keys and values, {}\n{}{}\n{}{reading}{drafts}{}",
        visible(&report.model),
        report.architecture,
        indicatif::HumanBytes(report.model_bytes),
        kernels(report),
        report.kv,
        counted(report.repetitions, "run"),
        requantised(report.requant.as_ref()),
        report.attention.lines(),
        table(header, rows.collect()),
        saved_run_text(report.against.as_ref()),
    ))
}

/// The kernels that compute.
fn kernels(report: &Report) -> String {
    let (opencl, alone) = &report.opencl;
    let opencl = opencl.iter().map(|kernels| format!("{}, f32 activations", visible(kernels)));
    let own = format!(
        "{}{}, {}, {} activations",
        counted(report.threads, "thread"),
        pinned(report.cores.as_deref()),
        report.isa,
        report.activations
    );
    let own = if *alone { None } else { Some(own) };
    own.into_iter().chain(opencl).collect::<Vec<_>>().join("; ")
}

/// Kernels of the OpenCL devices of a placement, and whether no other device has a part of it.
pub(super) fn opencl_kernels(placement: &Placement) -> (Vec<String>, bool) {
    let (mut kernels, mut alone) = (Vec::new(), !placement.stages.is_empty());
    for of_part in placement.stages.iter().flat_map(|stage| &stage.parts).map(|part| &part.kernels)
    {
        if !of_part.starts_with("OpenCL on ") {
            alone = false;
        } else if !kernels.contains(of_part) {
            kernels.push(of_part.clone());
        }
    }
    (kernels, alone)
}

/// The cores that threads are pinned to, after their number.
fn pinned(cores: Option<&str>) -> String {
    cores.map(|cores| format!(" pinned to cores {cores}")).unwrap_or_default()
}

/// Share of the memory bound that a test reaches, if it was measured.
fn of_reading(result: &Measured) -> Option<String> {
    let (speed, reading) = (&result.tokens_per_second, result.reading.as_ref()?);
    let shares = speed.all.iter().zip(&reading.all).map(|(speed, reading)| speed / reading);
    let Figures { median, min, max, .. } = Figures::of(shares.collect())?;
    Some(format!(
        "{}: {:.0} % ({:.0} to {:.0}) of the {:.2} tok/s possible by reading alone\n",
        result.test,
        median * 100.0,
        min * 100.0,
        max * 100.0,
        reading.median
    ))
}

/// Prints this engine compared with the others.
pub(super) fn print_pairs(report: &pairs::Report<'_>) -> Result<(), Failure> {
    let record = report.record;
    let mut text = format!(
        "{}\n{}, {} cores; {}, {} threads, {}; medians of {} pairs\n",
        visible(&record.model),
        visible(&record.machine.cpu),
        record.machine.cores,
        indicatif::HumanBytes(record.model_bytes),
        record.threads,
        record.machine.isa,
        report.pairs,
    );
    if let Some((ours, peers)) = record.engines.split_first() {
        for peer in peers {
            text.push_str(&peer_text(ours, peer, &report.ratios));
        }
    }
    text.push_str(&by_reading(report));
    text.push_str(
        "\nRatios are lapwing / other: above 1 is better for tok/s, below 1 for time and memory.\n\
         The first token is timed from the start of a process that loads the model to its end.\n",
    );
    text.push_str(&requantised(record.requant.as_ref()));
    text.push_str(&ours_only(&record.attention));
    if !report.same_weights {
        text.push_str(
            "Only lapwing uses requantised weights: the ratios compare engines on different weights,\n\
             and do not show which engine is faster on the same weights.\n",
        );
    }
    text.push_str(&saved_run_text(report.against.as_ref()));
    print(&text)
}

/// Every engine's share of the memory bound, if it was measured.
fn by_reading(report: &pairs::Report<'_>) -> String {
    if report.by_reading.is_empty() {
        return String::new();
    }
    let readings = report.record.engines.first().into_iter().flat_map(|ours| &ours.results);
    let reading = |test: &str| {
        let found = readings.clone().find(|result| result.test == test)?.reading.as_ref()?;
        Some(format!("{:.2}", found.median))
    };
    let rows = report.by_reading.iter().map(|ratio| {
        let share = |get: fn(&Figures) -> f64| format!("{:.0} %", get(&ratio.of_pairs) * 100.0);
        let [median, min, max] = [share(|f| f.median), share(|f| f.min), share(|f| f.max)];
        [
            ratio.what.clone(),
            visible(&ratio.engine).into_owned(),
            reading(&ratio.what).unwrap_or_default(),
            median,
            min,
            max,
        ]
    });
    let header = [
        ("test", Align::Left),
        ("engine", Align::Left),
        ("bound, tok/s", Align::Right),
        ("share of it (median of pairs)", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
    ];
    format!(
        "\nmemory bound: reading the same bytes without computing\n{}",
        table(header, rows.collect())
    )
}

/// What this engine changes of the model's attention, if anything.
fn ours_only(changes: &AttentionChanges) -> String {
    let changes = changes.lines();
    match &*changes {
        "" => changes,
        _ => format!(
            "{OURS}: {changes}Only lapwing computes so: the ratios compare engines that compute different \
             attention.\n"
        ),
    }
}

/// The requantised matrices, if there are any.
fn requantised(requant: Option<&RequantReport>) -> String {
    requant.map_or_else(String::new, |requant| format!("{OURS}: {}\n", visible(&requant.text)))
}

fn peer_text(ours: &EngineRuns, peer: &EngineRuns, ratios: &[Ratio]) -> String {
    let bold = anstyle::Style::new().bold();
    let [name, version] = [&peer.name, &peer.version].map(|text| visible(text));
    let mut text =
        format!("\n{bold}{OURS} {} / {name} {version}{bold:#}\n", visible(&ours.version));
    let of = |what: &str| ratios.iter().find(|r| r.engine == peer.name && r.what == what);
    let cells = |what: String, ratio: Option<&Ratio>, values: [Option<String>; 2]| {
        let dash = || "–".to_owned();
        let [ours, theirs] = values.map(|value| value.unwrap_or_else(dash));
        let figure =
            |get: fn(&Ratio) -> f64| ratio.map_or_else(dash, |ratio| format!("{:.3}", get(ratio)));
        [
            what,
            ours,
            theirs,
            figure(|r| r.of_pairs.median),
            figure(|r| r.of_pairs.min),
            figure(|r| r.of_pairs.max),
            figure(|r| r.of_medians),
        ]
    };
    let mut rows: Vec<[String; 7]> = Vec::new();
    for (a, b) in ours.results.iter().zip(&peer.results) {
        let speed = |of: &Measured| Some(format!("{:.2}", of.tokens_per_second.median));
        rows.push(cells(format!("{}, tok/s", a.test), of(&a.test), [speed(a), speed(b)]));
    }
    let both = |of: fn(&EngineRuns) -> Option<String>| [of(ours), of(peer)];
    let time = |of: &EngineRuns| of.one_token_ms.as_ref().map(|ms| format!("{:.0}", ms.median));
    rows.push(cells("first token, ms".to_owned(), of("one_token_ms"), both(time)));
    let peak = |of: &EngineRuns| {
        of.peak_bytes.as_ref().map(|bytes| format!("{:.1}", bytes.median / 1_048_576.0))
    };
    rows.push(cells("peak memory, MiB".to_owned(), of("peak_bytes"), both(peak)));
    let header = [
        ("", Align::Left),
        (OURS, Align::Right),
        (&*peer.name, Align::Right),
        ("ratio (median of pairs)", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
        ("ratio of medians", Align::Right),
    ];
    text.push_str(&table(header, rows));
    text
}

/// The comparison with a saved run, if one is given.
fn saved_run_text(against: Option<&Against>) -> String {
    let Some(Against { date, ratios, .. }) = against else { return String::new() };
    let header = [
        ("engine", Align::Left),
        ("test", Align::Left),
        ("now", Align::Right),
        ("then", Align::Right),
        ("now / then", Align::Right),
    ];
    let rows = ratios.iter().map(|change| {
        let [now, then] = [change.now, change.then].map(|speed| format!("{speed:.2}"));
        let ratio = format!("{:.3}", change.ratio);
        [change.engine.clone(), change.test.clone(), now, then, ratio]
    });
    format!(
        "\ncompared with the run of {}
{}",
        visible(date),
        table(header, rows.collect())
    )
}
