//! A comparison as one HTML page.

use lapwing_traces::html::{Entry, Figure, Group, HtmlError, Overview, PageRun, overview};

use super::{Comparison, Figures, LengthComparison, StrategyRun};

/// Columns of the tables.
const COLUMNS: [&str; 11] = [
    "#TTFT, median",
    "#min",
    "#max",
    "#TPOT",
    "#Makespan",
    "#Overlap",
    "Most idle by",
    "#Copied",
    "#Wait error",
    "#Predicted TTFT",
    "#Late",
];

impl Comparison {
    /// One page with all timelines side by side; each can be opened in full. It needs no network.
    ///
    /// # Errors
    /// When a run cannot be put on it.
    pub fn page(&self) -> Result<String, HtmlError> {
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let mut facts = vec![fact("Model", format!("{}, {}", self.model, self.isa))];
        for device in &self.devices {
            facts.push(fact("Device", device.clone()));
        }
        facts.push(fact(
            "Each run",
            format!(
                "the prompt and {} generated tokens; {} repetitions, of which the median is shown",
                self.tokens, self.repetitions
            ),
        ));
        facts.push(fact("Predicted by", self.cost_source.clone()));
        facts.push(fact("Energy", "unknown: no device of this machine measures it".to_owned()));
        overview(&Overview {
            title: "Strategies compared",
            facts,
            columns: COLUMNS.to_vec(),
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
    let number = |text: String, value: f64| Figure { text, value: Some(value) };
    let maybe = |value: Option<f64>, show: fn(f64) -> String| {
        value.map_or_else(Figure::default, |value| number(show(value), value))
    };
    let ms = |value: f64| format!("{value:.1} ms");
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mib = |bytes: u64| number(format!("{:.1} MiB", bytes as f64 / 1048576.0), bytes as f64);
    let idle = of
        .idle
        .first()
        .map_or_else(String::new, |idle| format!("{}, {:.1} ms", idle.cause, idle.ms));
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
        Figure { text: idle, value: None },
        mib(of.copied_bytes),
        maybe(of.wait_error, percent),
        predicted,
        number(ms(of.late_ms), of.late_ms),
    ]
}
