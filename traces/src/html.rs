//! A timeline, two next to each other, or an overview of many as one HTML page: no network, no
//! other file.
//!
//! The report's tables and a picture of the lanes are plain markup, readable without scripts. The
//! runs themselves lie in the page as compressed columns, which its script draws.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::analysis::{Analysis, Cause};
use crate::report::Report;
use crate::timeline::Timeline;

mod charts;
mod columns;
mod compare;
mod overview;
mod pack;
mod picture;
mod sections;
mod summary;
mod table;
mod text;

pub use overview::{Entry, Figure, Group, Overview, overview};
use picture::{Frame, picture};
use text::Escaped;

/// A run on the page.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What to call it: a file's name, a strategy.
    pub title: &'a str,
    /// The run.
    pub timeline: &'a Timeline,
    /// Its analysis.
    pub analysis: &'a Analysis,
    /// Its numbers.
    pub report: &'a Report,
}

/// Why no page was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HtmlError {
    /// One run or two fit on a page, and at least one on an overview.
    #[error("a page shows one or two runs and an overview at least one, not {0}: give it as many")]
    Runs(usize),
    /// An analysis names spans or lanes that its timeline does not have.
    #[error("the analysis of `{title}` is not one of its timeline: analyse the timeline again")]
    Foreign {
        /// The run's title.
        title: String,
    },
    /// The lanes and names could not be written as JSON.
    #[error("the run's names could not be written")]
    Header(#[source] serde_json::Error),
    /// The run could not be compressed.
    #[error("the run could not be compressed")]
    Compress(#[source] std::io::Error),
}

const TEMPLATE: &str = include_str!("html/page.html");

/// The page's style: what a later file says holds.
const STYLE: &[&str] = &[
    include_str!("html/page/base.css"),
    include_str!("html/page/stage.css"),
    include_str!("html/page/panel.css"),
    include_str!("html/page/charts.css"),
    include_str!("html/page/card.css"),
    include_str!("html/page/small.css"),
];

/// The page's script: its files in the order in which they need each other.
const SCRIPT: &[&str] = &[
    include_str!("html/page/format.js"),
    include_str!("html/page/elements.js"),
    include_str!("html/page/decode.js"),
    include_str!("html/page/track.js"),
    include_str!("html/page/run.js"),
    include_str!("html/page/query.js"),
    include_str!("html/page/palette.js"),
    include_str!("html/page/state.js"),
    include_str!("html/page/rows.js"),
    include_str!("html/page/draw.js"),
    include_str!("html/page/strips.js"),
    include_str!("html/page/links.js"),
    include_str!("html/page/ruler.js"),
    include_str!("html/page/pick.js"),
    include_str!("html/page/details.js"),
    include_str!("html/page/panel.js"),
    include_str!("html/page/requests.js"),
    include_str!("html/page/gutter.js"),
    include_str!("html/page/search.js"),
    include_str!("html/page/input.js"),
    include_str!("html/page/main.js"),
];

/// The page of one run, or of two with their difference.
///
/// # Errors
/// Other than one or two runs; an analysis of another timeline.
pub fn page(sides: &[Side<'_>]) -> Result<String, HtmlError> {
    if !(1..=2).contains(&sides.len()) {
        return Err(HtmlError::Runs(sides.len()));
    }
    let mut parts = parts(sides)?;
    parts.push(("style", STYLE.concat()));
    parts.push(("script", SCRIPT.concat()));
    Ok(fill(TEMPLATE, &parts))
}

/// What stands in the template, but for style and script.
fn parts(sides: &[Side<'_>]) -> Result<Vec<(&'static str, String)>, HtmlError> {
    let mut data = String::new();
    let mut pictures = String::new();
    for (at, side) in sides.iter().enumerate() {
        if !fits(side) {
            return Err(HtmlError::Foreign { title: side.title.to_owned() });
        }
        data += &packed("run", &pack::pack(side)?);
        if sides.len() > 1 {
            pictures += &format!("<h2>{} {}</h2>\n", letter(at), Escaped(side.title));
        }
        pictures += &picture(side.timeline, Frame::default());
    }
    let titles: Vec<&str> = sides.iter().map(|side| side.title).collect();
    Ok(vec![
        ("title", Escaped(&titles.join(" · ")).to_string()),
        ("warnings", sections::warnings(sides)),
        ("pictures", pictures),
        ("compare", compare::compare(sides)),
        ("sections", sections::sections(sides)),
        ("data", data),
    ])
}

/// Deflated bytes as an element of the page.
fn packed(class: &str, deflated: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(deflated);
    format!("<script type=\"application/octet-stream\" class=\"{class}\">{text}</script>\n")
}

/// Name of a run among two.
fn letter(side: usize) -> char {
    if side == 0 { 'A' } else { 'B' }
}

/// Puts the parts into a template. What is put in is not looked through for marks again.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut pieces = template.split("{{");
    let mut page = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (mark, rest) = piece.split_once("}}").unwrap_or(("", piece));
        page += parts.iter().find(|(name, _)| *name == mark).map_or("", |(_, part)| part);
        page += rest;
    }
    page
}

/// Whether the analysis names nothing that the timeline lacks.
fn fits(side: &Side<'_>) -> bool {
    let (spans, lanes) = (side.timeline.spans.len(), side.timeline.lanes.len());
    let path = &side.analysis.critical_path;
    let span = |index: Option<usize>| index.is_none_or(|index| index < spans);
    let cause = |cause: Cause| !matches!(cause, Cause::Dependency(lane) if lane >= lanes);
    path.slack.len() == spans
        && path.spans.iter().all(|index| *index < spans)
        && side
            .analysis
            .gaps
            .iter()
            .all(|gap| gap.lane < lanes && span(gap.next) && span(gap.blocker) && cause(gap.cause))
        && path.segments.iter().all(|segment| {
            use crate::analysis::SegmentKind::{Running, Waiting};
            segment.lane < lanes
                && match segment.kind {
                    Running(index) => index < spans,
                    Waiting(why, index) => index < spans && cause(why),
                }
        })
}
