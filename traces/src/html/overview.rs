//! Overview of many runs on one page: a table and a picture of each at the same scale. Each run can
//! be opened in full.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::columns::deflated;
use super::picture::{Frame, picture, shown};
use super::table::{Cell, StackPart, Table};
use super::text::{self, Escaped};
use super::{HtmlError, PageRun, SCRIPT, STYLE, TEMPLATE, fill, packed, parts};
use crate::analysis::IdleCause;
use crate::event::Activity;

/// Runs of the same work done in different ways, in groups such as prompt lengths.
#[derive(Clone, Debug, Default)]
pub struct Overview<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Facts that all runs have in common, as names and values.
    pub facts: Vec<(String, String)>,
    /// Table columns after the run's name.
    pub columns: Vec<Column<'a>>,
    /// Groups of runs. The pictures of a group have the same scale.
    pub groups: Vec<Group<'a>>,
}

/// A column of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column<'a> {
    /// Head; one that starts with `#` marks a column of numbers.
    pub head: &'a str,
    /// What the column shows, as a tooltip.
    pub help: &'a str,
}

impl<'a> From<&'a str> for Column<'a> {
    fn from(head: &'a str) -> Column<'a> {
        Column { head, help: "" }
    }
}

/// Runs that are compared with each other.
#[derive(Clone, Debug, Default)]
pub struct Group<'a> {
    /// What the runs have in common, such as `135 tokens`.
    pub title: String,
    /// Runs in the order in which they are shown.
    pub entries: Vec<Entry<'a>>,
    /// Index of the fastest run, by a criterion of the caller's choice. A dashed line in every
    /// picture marks the end of this run.
    pub fastest: usize,
    /// Runs that are missing, with the reasons.
    pub absent: Vec<(String, String)>,
}

/// A run of a group.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The run; its title is shown as its name.
    pub run: PageRun<'a>,
    /// Badges, such as `fastest`.
    pub marks: Vec<&'static str>,
    /// A sentence about the run.
    pub note: String,
    /// Its table row: one figure for each column.
    pub figures: Vec<Figure>,
}

/// A cell of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Text shown.
    pub text: String,
    /// Value to sort by, if it is a number.
    pub value: Option<f64>,
    /// Idle time by cause in ms, shown as a stacked bar above the text; with a value only.
    pub idle: Vec<(String, f64)>,
}

impl Figure {
    /// A number as text, with the value to sort by.
    pub fn number(text: String, value: f64) -> Figure {
        Figure { text, value: Some(value), idle: Vec::new() }
    }

    /// A text; an empty one is shown as –.
    pub fn text(text: impl Into<String>) -> Figure {
        Figure { text: text.into(), ..Figure::default() }
    }

    /// Idle time of all causes, in ms.
    fn idle_ms(&self) -> f64 {
        self.idle.iter().map(|(_, ms)| ms).sum()
    }

    /// The parts of its bar; a bar of `longest` ms fills the column.
    fn stack(&self, longest: f64) -> Vec<StackPart> {
        let part = |(cause, ms): &(String, f64)| StackPart {
            class: class_of(cause),
            title: format!("{cause}: {}", text::nanos(ms * 1e6)),
            width: ms / longest,
        };
        self.idle.iter().map(part).collect()
    }
}

/// The known cause of idle time that a cause names, such as `dependency` of `dependency on gpu`.
fn known_cause(cause: &str) -> &'static str {
    let known = IdleCause::ALL.iter().map(|known| known.name());
    known
        .filter(|known| cause.starts_with(known))
        .max_by_key(|known| known.len())
        .unwrap_or("other")
}

/// The style sheet's class of a cause.
fn class_of(cause: &str) -> String {
    format!("cause-{}", known_cause(cause).replace(' ', "-"))
}

const OVERVIEW: &str = include_str!("overview.html");

/// Style sheets of the overview, in cascading order.
const OVERVIEW_STYLE: &[&str] = &[
    super::BASE_STYLE,
    include_str!("page/panel.css"),
    include_str!("page/charts.css"),
    include_str!("page/overview.css"),
];

const OVERVIEW_SCRIPT: &[&str] =
    &[include_str!("page/elements.js"), include_str!("page/overview.js")];

/// Creates the overview page.
///
/// # Errors
/// [`HtmlError::Runs`] if there is no run; [`HtmlError::Foreign`] if an analysis belongs to another
/// timeline.
pub fn overview(of: &Overview<'_>) -> Result<String, HtmlError> {
    if of.groups.iter().all(|group| group.entries.is_empty()) {
        return Err(HtmlError::Runs(0));
    }
    // Template, style and script of a run opened in full are in the page only once.
    let frame = BTreeMap::from([
        ("template", TEMPLATE.to_owned()),
        ("style", STYLE.concat()),
        ("script", SCRIPT.concat()),
    ]);
    let mut data = pack("frame", &frame)?;
    let mut groups = String::new();
    for (at, group) in of.groups.iter().enumerate() {
        groups += &section(at, group, &of.columns);
        for entry in &group.entries {
            let mut run = entry.run;
            let title = format!("{} · {}", run.title, group.title);
            run.title = &title;
            data += &pack("run", &parts(&[run])?.into_iter().collect())?;
        }
    }
    let mut facts = String::new();
    for (name, value) in &of.facts {
        let _ = writeln!(
            facts,
            "<dt><bdi>{}</bdi></dt><dd><bdi>{}</bdi></dd>",
            Escaped(name),
            Escaped(value)
        );
    }
    Ok(fill(
        OVERVIEW,
        &[
            ("title", Escaped(of.title).to_string()),
            ("style", OVERVIEW_STYLE.concat()),
            ("facts", facts),
            ("legend", legend(of)),
            ("groups", groups),
            ("data", data),
            ("script", OVERVIEW_SCRIPT.concat()),
        ],
    ))
}

fn pack(class: &str, parts: &BTreeMap<&'static str, String>) -> Result<String, HtmlError> {
    let json = serde_json::to_vec(parts).map_err(HtmlError::Header)?;
    Ok(packed(class, &deflated(&[&json]).map_err(HtmlError::Compress)?))
}

fn section(at: usize, group: &Group<'_>, columns: &[Column<'_>]) -> String {
    let title = Escaped(&group.title).to_string();
    let mut html = format!(
        "<section class=\"group\" id=\"group-{at}\" aria-labelledby=\"group-{at}-title\">\n\
         <h2 id=\"group-{at}-title\"><bdi>{title}</bdi></h2>\n"
    );
    let heads: Vec<(&str, &str)> = std::iter::once(("Run", ""))
        .chain(columns.iter().map(|column| (column.head, column.help)))
        .collect();
    let mut table = Table::explained("", "", &heads);
    let figures = || group.entries.iter().flat_map(|entry| &entry.figures);
    let longest = figures().map(Figure::idle_ms).fold(f64::MIN_POSITIVE, f64::max);
    for entry in &group.entries {
        let name = [&[entry.run.title], &entry.marks[..]].concat().join(" · ");
        let stacks: Vec<Vec<StackPart>> =
            entry.figures.iter().map(|figure| figure.stack(longest)).collect();
        let cells = entry.figures.iter().zip(&stacks).map(|(figure, parts)| match figure.value {
            Some(value) if !parts.is_empty() => Cell::Stack { text: &figure.text, value, parts },
            Some(value) => Cell::Number(Escaped(&figure.text).to_string(), value),
            None if figure.text.is_empty() => Cell::None,
            None => Cell::Text(&figure.text),
        });
        let row: Vec<Cell<'_>> = std::iter::once(Cell::Text(&name)).chain(cells).collect();
        table.row(&row);
    }
    html += &table.end("No runs.");
    for (name, reason) in &group.absent {
        let _ = writeln!(
            html,
            "<p class=\"none\"><b><bdi>{}</bdi></b> did not run: {}</p>",
            Escaped(name),
            Escaped(reason)
        );
    }
    let frame = frame(group);
    html += "<div class=\"entries\">\n";
    for entry in &group.entries {
        html += &article(entry, frame);
    }
    html + "</div>\n</section>\n"
}

/// Pictures end at this multiple of the fastest run, so that short runs remain distinguishable.
const LONGEST: u64 = 4;

/// The common scale of the pictures of a group.
fn frame(group: &Group<'_>) -> Frame {
    let makespans = || group.entries.iter().map(|entry| entry.run.timeline.makespan());
    let mark = makespans().nth(group.fastest);
    let span =
        makespans().max().zip(mark).map(|(most, mark)| most.min(mark.saturating_mul(LONGEST)));
    Frame { span, mark, busy_only: true }
}

fn article(entry: &Entry<'_>, frame: Frame) -> String {
    let mut marks = String::new();
    for mark in &entry.marks {
        let _ = write!(marks, " <span class=\"badge\">{}</span>", Escaped(mark));
    }
    let report = entry.run.report;
    let overlap = report
        .overlap
        .map_or_else(String::new, |share| format!(" · overlap {}", text::percent(share)));
    format!(
        "<article class=\"entry\"><div class=\"about\"><h3><bdi>{}</bdi>{marks}</h3>\n\
         <p class=\"figure\"><b>{}</b>{overlap}</p><p class=\"note\">{}</p></div>\n{}</article>\n",
        Escaped(entry.run.title),
        text::nanos(report.makespan_ns as f64),
        Escaped(&entry.note),
        picture(entry.run.timeline, frame)
    )
}

/// Legend of the activities that occur in any picture, and of the causes of idle time.
fn legend(of: &Overview<'_>) -> String {
    let mut seen = [false; Activity::ALL.len()];
    let entries = || of.groups.iter().flat_map(|group| &group.entries);
    for entry in entries() {
        let lanes = shown(entry.run.timeline, true);
        let spans = entry.run.timeline.spans.iter().filter(|span| span.parent.is_none());
        spans
            .filter(|span| lanes.contains(&span.lane))
            .for_each(|span| seen[span.activity.code() as usize] = true);
    }
    let mut html = String::new();
    for activity in Activity::ALL.iter().filter(|activity| seen[activity.code() as usize]) {
        let name = activity.name();
        let _ = writeln!(
            html,
            "<span class=\"entry-key\"><svg class=\"picture\" viewBox=\"0 0 22 12\">\
             <path class=\"{name}\" d=\"M0 0h22v12H0z\"/></svg>{name}</span>"
        );
    }
    let figures = entries().flat_map(|entry| &entry.figures).flat_map(|figure| &figure.idle);
    let causes: BTreeSet<&str> = figures.map(|(cause, _)| known_cause(cause)).collect();
    for cause in causes {
        let class = class_of(cause);
        let _ = writeln!(
            html,
            "<span class=\"entry-key\"><span class=\"swatch {class}\"></span>idle: {cause}</span>"
        );
    }
    html
}
