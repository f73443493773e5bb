//! The tables, the plots and the page of a study.

use lapwing_traces::text::counted;

use super::folder::PAGE;
use super::run::ScenarioSummary;
use super::{Study, StudyScenario};
use crate::simulate::plot::{Cell, Page, Section};
use crate::simulate::{Difference, GroupMean, SEED, cell};
use crate::table::table;

/// Most rows of a table of the page.
const ROWS_MAX: usize = 200;

/// All results of a study: names of files, and their texts. `inputs` are the files that are there already.
pub(super) fn files(
    study: &Study,
    summaries: &[ScenarioSummary],
    inputs: &[String],
) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut sections = Vec::new();
    for (scenario, summary) in study.scenarios.iter().zip(summaries) {
        let found = Found { scenario, summary };
        files.extend(found.tables());
        files.extend(found.plots());
        sections.extend(found.sections());
    }
    let names = files.iter().map(|(name, _)| name).chain(inputs);
    sections.push(listed(names.map(String::as_str).collect()));
    let page = Page {
        title: study.title.clone(),
        lead: format!(
            "{} in virtual time. The page needs no network.",
            counted(study.runs(), "run")
        ),
        sections: about(study).into_iter().chain(sections).collect(),
        footer: format!(
            "Lapwing {}. A run of study.toml with this version gives the same files.",
            env!("CARGO_PKG_VERSION")
        ),
    };
    files.push((PAGE.to_owned(), page.html()));
    files
}

fn about(study: &Study) -> Option<Section> {
    let text = study.about.clone();
    let title = "About".to_owned();
    (!text.is_empty()).then(|| Section { title, text, ..Section::default() })
}

fn listed(mut names: Vec<&str>) -> Section {
    names.sort_unstable();
    Section {
        title: "Files".to_owned(),
        heads: vec!["beside this page".to_owned()],
        rows: names.into_iter().map(|name| vec![name.into()]).collect(),
        ..Section::default()
    }
}

/// A scenario and its results.
struct Found<'a> {
    scenario: &'a StudyScenario,
    summary: &'a ScenarioSummary,
}

/// A plot for the page, and as a file of its own.
struct Drawn {
    svg: String,
    file: String,
}

impl Found<'_> {
    /// Names of all results, those that are shown first.
    fn figures(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.summary.figures.iter().map(String::as_str).collect();
        let points = self.summary.sweep.points.iter();
        let numbers = points.filter_map(|point| point.outcome.as_ref().ok());
        let mut all: Vec<&str> =
            numbers.flat_map(|numbers| numbers.0.keys()).map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|name| !names.contains(name));
        names.append(&mut all);
        names
    }

    fn differences(&self, figure: &str) -> Vec<Difference> {
        let Some(change) = self.scenario.reference() else { return Vec::new() };
        self.summary.sweep.differences(figure, &change.key, &change.value).unwrap_or_default()
    }

    /// All runs, the means, and the differences, as comma-separated values.
    fn tables(&self) -> Vec<(String, String)> {
        let sweep = &self.summary.sweep;
        let name = &self.scenario.name;
        let mut tables = vec![(format!("{name}.csv"), sweep.csv_of(&self.figures()))];
        if sweep.axes.iter().any(|axis| axis.key == SEED) {
            tables.push((format!("{name}-means.csv"), self.means()));
        }
        for figure in &self.summary.figures {
            let Some(change) = self.scenario.reference() else { continue };
            if let Ok(text) = sweep.differences_csv(figure, &change.key, &change.value) {
                tables.push((format!("{name}-{}-differences.csv", dashed(figure)), text));
            }
        }
        tables
    }

    fn means(&self) -> String {
        let axes = self.summary.sweep.axes.iter().map(|axis| &*axis.key);
        let heads =
            axes.filter(|key| *key != SEED).chain(["result", "runs", "mean", "low", "high"]);
        let mut rows = vec![heads.map(str::to_owned).collect::<Vec<_>>()];
        for figure in &self.summary.figures {
            for GroupMean { mut values, runs, mean, interval } in self.summary.sweep.means(figure) {
                let (low, high) = interval.unzip();
                let number = |value: Option<f64>| {
                    value.filter(|it| it.is_finite()).map_or(String::new(), cell)
                };
                values.extend([figure.clone(), runs.to_string()]);
                values.extend([Some(mean), low, high].map(number));
                rows.push(values);
            }
        }
        table(rows)
    }

    /// A result over the first axis of numbers; without one, as bars.
    fn drawn(&self, figure: &str) -> Option<Drawn> {
        let sweep = &self.summary.sweep;
        let has_numbers =
            sweep.axes.iter().any(|axis| axis.key != SEED && axis.numbers().is_some());
        if let Some(mut lines) = sweep.plot(figure).filter(|_| has_numbers) {
            lines.title = format!("{}: {}", self.scenario.name, lines.title);
            return Some(Drawn { svg: lines.svg(), file: lines.svg_file() });
        }
        let mut bars = sweep.bars(figure)?;
        bars.title = format!("{}: {}", self.scenario.name, bars.title);
        Some(Drawn { svg: bars.svg(), file: bars.svg_file() })
    }

    fn plots(&self) -> Vec<(String, String)> {
        let name = &self.scenario.name;
        let plot = |figure: &String| {
            Some((format!("{name}-{}.svg", dashed(figure)), self.drawn(figure)?.file))
        };
        self.summary.figures.iter().filter_map(plot).collect()
    }

    /// The scenario on the page: settings, plots and means, and then the differences.
    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![Section {
            title: self.scenario.name.clone(),
            text: self.words(),
            plots: self
                .summary
                .figures
                .iter()
                .filter_map(|it| self.drawn(it))
                .map(|it| it.svg)
                .collect(),
            ..self.table_of_means()
        }];
        if let Some(change) = self.scenario.reference() {
            sections.push(self.table_of_differences(&format!("{}={}", change.key, change.value)));
        }
        sections
    }

    fn words(&self) -> String {
        let settings = self.summary.sweep.settings.iter();
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key} {value}")).collect();
        let mut parts = vec![self.scenario.about.clone()];
        parts.push(format!(
            "Like `lapwing {}`: {}.",
            self.scenario.command,
            match settings.is_empty() {
                true => "its defaults".to_owned(),
                false => settings.join(", "),
            }
        ));
        if self.summary.seeds_are_equal {
            parts.push("All seeds have the same results.".to_owned());
        }
        if let Some(error) = &self.summary.error {
            let failed = counted(self.summary.failed, "run");
            parts.push(format!("{failed} failed, the first because: {error}"));
        }
        parts.join("\n\n")
    }

    fn table_of_means(&self) -> Section {
        let (sweep, figures) = (&self.summary.sweep, &self.summary.figures);
        let axes = sweep.axes.iter().filter(|axis| axis.key != SEED);
        let mut heads: Vec<String> = axes.map(|axis| axis.key.clone()).collect();
        heads.extend(figures.iter().map(|figure| format!("#{figure}")));
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        for (number, figure) in figures.iter().enumerate() {
            for (at, group) in sweep.means(figure).into_iter().enumerate().take(ROWS_MAX) {
                let text = with_interval(group.mean, group.interval);
                if number == 0 {
                    rows.push(group.values.into_iter().map(Cell::from).collect());
                }
                rows[at].push(text.into());
            }
        }
        Section { heads, rows, ..Section::default() }
    }

    fn table_of_differences(&self, reference: &str) -> Section {
        let sweep = &self.summary.sweep;
        let compared = reference.split('=').next().unwrap_or_default();
        let others = sweep.axes.iter().filter(|axis| axis.key != SEED && axis.key != compared);
        let mut heads: Vec<String> = others.map(|axis| axis.key.clone()).collect();
        heads.extend(["value", "result", "#pairs", "#difference", "#relative"].map(str::to_owned));
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        for figure in &self.summary.figures {
            for found in self.differences(figure) {
                let mut row: Vec<Cell> = found.others.into_iter().map(Cell::from).collect();
                let difference = with_interval(found.mean, found.interval);
                let relative = format!("{:+.1} %", found.relative * 100.0);
                let pairs = found.pairs.to_string();
                row.extend(
                    [found.value, figure.clone(), pairs, difference, relative].map(Cell::from),
                );
                rows.push(row);
            }
        }
        rows.truncate(ROWS_MAX);
        let title = format!("{}: differences from {reference}", self.scenario.name);
        let text = "Runs that are equal otherwise, seeds included, are compared in pairs; in brackets the 95 % \
                    interval of the mean difference (Student's t).";
        Section { title, text: text.to_owned(), heads, rows, plots: Vec::new() }
    }
}

/// A name of a result as part of a file's name.
fn dashed(figure: &str) -> String {
    figure.replace(['.', '_'], "-")
}

fn with_interval(mean: f64, interval: Option<(f64, f64)>) -> String {
    match interval {
        _ if !mean.is_finite() => "–".to_owned(),
        Some((low, high)) => format!("{} ({} to {})", cell(mean), cell(low), cell(high)),
        None => cell(mean),
    }
}
