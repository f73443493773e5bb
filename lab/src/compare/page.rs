//! A comparison as one HTML page.

use lapwing_traces::html::{Column, Entry, Figure, Group, HtmlError, Overview, PageRun, overview};
use lapwing_traces::text::counted;

use super::{Comparison, Figures, LengthComparison, StrategyRun};

/// Columns of the tables: head and tooltip.
const COLUMNS: [(&str, &str); 11] = [
    ("#TTFT, median", "Time from submission to the first token, median of the repetitions"),
    ("#min", "Shortest time to first token"),
    ("#max", "Longest time to first token"),
    ("#TPOT", "Mean time per output token after the first, in the recorded repetition"),
    ("#Makespan", "First start to last end, generated tokens included, in the recorded repetition"),
    ("#Overlap", "Share of the devices' busy time during which another device was busy, too"),
    ("#Idle time of the devices", "Idle time of all devices by cause; the text names the main one"),
    ("#Copied", "Bytes read and written to merge parts and to convert values for other devices"),
    (
        "#Wait error",
        "Median error of the predicted waits, |actual − predicted| / actual; – without waits",
    ),
    ("#Predicted TTFT", "Predicted time to first token in a warm engine, and its error"),
    (
        "#Late",
        "Time by which devices exceeded the rates that they are throttled to: the measured times are \
         too long by as much",
    ),
];

impl Comparison {
    /// The HTML page, with all timelines side by side; each can be opened in full. It needs no network.
    ///
    /// # Errors
    /// When a recording cannot be embedded.
    pub fn page(&self) -> Result<String, HtmlError> {
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let mut facts = vec![fact("Model", format!("{}, {}", self.model, self.isa))];
        for device in &self.devices {
            facts.push(fact("Device", device.clone()));
        }
        facts.push(fact(
            "Each run",
            format!(
                "the prompt and {}; {}, the median of which is shown",
                counted(self.tokens, "generated token"),
                counted(self.repetitions, "repetition")
            ),
        ));
        facts.push(fact("Predictions from", self.cost_source.clone()));
        facts.push(fact("Energy", "unknown: no device of this version measures it".to_owned()));
        overview(&Overview {
            title: "Comparison of strategies",
            facts,
            columns: COLUMNS.map(|(head, help)| Column { head, help }).to_vec(),
            groups: self.lengths.iter().map(group).collect(),
        })
    }
}

fn group(length: &LengthComparison) -> Group<'_> {
    let mut order: Vec<usize> = (0..length.runs.len()).collect();
    let time = |run: usize| length.runs[run].ttft_ms.median;
    order.sort_by(|a, b| time(*a).total_cmp(&time(*b)));
    Group {
        title: format!("{} tokens", length.tokens),
        fastest: order.iter().position(|run| *run == length.fastest).unwrap_or(0),
        entries: order.into_iter().map(|run| entry(length, run)).collect(),
        absent: length.absent.clone(),
    }
}

fn entry(length: &LengthComparison, at: usize) -> Entry<'_> {
    let run: &StrategyRun = &length.runs[at];
    let figures = run.figures();
    let mut marks = Vec::new();
    if at == length.fastest {
        marks.push("fastest");
    }
    if length.chosen_by_auto.as_ref() == Some(&run.strategy) {
        marks.push("auto's choice");
    }
    if run.ids != length.runs[0].ids {
        marks.push("other tokens");
    }
    let page_run = PageRun {
        title: &run.strategy,
        timeline: &run.timeline,
        analysis: &run.analysis,
        report: &run.report,
    };
    Entry { run: page_run, marks, note: run.reason.clone(), figures: cells(&figures) }
}

fn cells(of: &Figures) -> Vec<Figure> {
    let number = |text: String, value: f64| Figure { text, value: Some(value), idle: Vec::new() };
    let maybe = |value: Option<f64>, show: fn(f64) -> String| {
        value.map_or_else(Figure::default, |value| number(show(value), value))
    };
    let ms = |value: f64| format!("{value:.1} ms");
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mib = |bytes: u64| number(format!("{:.1} MiB", bytes as f64 / 1048576.0), bytes as f64);
    let main = of.main_idle();
    let idle = Figure {
        text: main.map_or_else(String::new, |idle| format!("{}, {:.1} ms", idle.cause, idle.ms)),
        value: Some(of.idle.iter().map(|idle| idle.ms).sum()),
        idle: of.idle.iter().map(|idle| (idle.cause.clone(), idle.ms)).collect(),
    };
    let predicted = of.predicted_ms.map_or_else(Figure::default, |predicted| {
        let error = of.prediction_error.unwrap_or(f64::NAN) * 100.0;
        number(format!("{predicted:.1} ms ({error:+.1} %)"), predicted)
    });
    vec![
        number(ms(of.ttft_ms), of.ttft_ms),
        number(ms(of.ttft_min_ms), of.ttft_min_ms),
        number(ms(of.ttft_max_ms), of.ttft_max_ms),
        maybe(of.tpot_ms, ms),
        number(ms(of.makespan_ms), of.makespan_ms),
        maybe(of.overlap, percent),
        idle,
        mib(of.copied_bytes),
        maybe(of.wait_error, percent),
        predicted,
        number(ms(of.late_ms), of.late_ms),
    ]
}
