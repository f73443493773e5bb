//! What `bench` prints for readers.

use super::Report;
use super::against::Against;
use super::pairs::{self, OURS};
use super::report::{EngineRuns, Figures, Measured, Ratio};
use crate::cli::failure::Failure;
use crate::cli::output::print;
use crate::cli::requant::RequantReport;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

/// Prints our own speeds.
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
    print(&format!(
        "{}\n{}, {}, {} threads, {}, {} activations, {} keys and values, {} runs\n{}\n{}{reading}{}",
        visible(&report.model),
        report.architecture,
        indicatif::HumanBytes(report.model_bytes),
        report.threads,
        report.isa,
        report.activations,
        report.kv,
        report.repetitions,
        requantised(report.requant.as_ref()),
        table(header, rows.collect()),
        of_kept(report.against.as_ref()),
    ))
}

/// How near a test comes to what reading alone allows, if that was measured.
fn of_reading(result: &Measured) -> Option<String> {
    let (speed, reading) = (&result.tokens_per_second, result.reading.as_ref()?);
    let shares = speed.all.iter().zip(&reading.all).map(|(speed, reading)| speed / reading);
    let Figures { median, min, max, .. } = Figures::of(shares.collect())?;
    Some(format!(
        "{}: {:.0} % ({:.0} to {:.0}) of the {:.2} tok/s that reading alone allows\n",
        result.test,
        median * 100.0,
        min * 100.0,
        max * 100.0,
        reading.median
    ))
}

/// Prints this engine beside the others.
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
            text.push_str(&of_peer(ours, peer, &report.ratios));
        }
    }
    text.push_str(&by_reading(report));
    text.push_str(
        "\nRatios are lapwing / other: above 1 is better for tok/s, below 1 for time and memory.\n\
         The time is that of a process which loads the model, computes one token and ends.\n",
    );
    text.push_str(&requantised(record.requant.as_ref()));
    if !report.same_weights {
        text.push_str(
            "Only lapwing computes with requantised weights: the ratios compare engines on different\n\
             weights, and say nothing of which is faster on the same.\n",
        );
    }
    text.push_str(&of_kept(report.against.as_ref()));
    print(&text)
}

/// Every engine beside what reading alone allows, if that was measured.
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
        ("tok/s by reading alone", Align::Right),
        ("share (median of pairs)", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
    ];
    format!(
        "\nbeside reading the same bytes and computing nothing\n{}",
        table(header, rows.collect())
    )
}

/// What is requantised, if that is asked for.
fn requantised(requant: Option<&RequantReport>) -> String {
    requant.map_or_else(String::new, |requant| format!("{OURS}: {}\n", visible(&requant.text)))
}

fn of_peer(ours: &EngineRuns, peer: &EngineRuns, ratios: &[Ratio]) -> String {
    let bold = anstyle::Style::new().bold();
    let [name, version] = [&peer.name, &peer.version].map(|text| visible(text));
    let mut text =
        format!("\n{bold}{OURS} {} by {name} {version}{bold:#}\n", visible(&ours.version));
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

/// What the kept run says, if one is named.
fn of_kept(against: Option<&Against>) -> String {
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
    format!("\nbeside the run of {}\n{}", visible(date), table(header, rows.collect()))
}
