//! HTML pages of one timeline, of two side by side, or an overview of many. A page is one file and
//! needs no network.
//!
//! The tables of the report and a picture of the lanes are plain HTML, readable without scripts.
//! The runs are stored in the page as compressed columns, which its script draws.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

mod answer;
mod charts;
mod columns;
mod compare;
mod error;
mod overview;
mod pack;
mod picture;
mod run;
mod sections;
mod summary;
mod table;
mod text;

pub use error::HtmlError;
pub use overview::{Column, Entry, Figure, Group, Overview, overview};
use picture::{Frame, picture};
pub use run::PageRun;
use run::letter;
use text::Escaped;

const TEMPLATE: &str = include_str!("html/page.html");

/// Colours, text and controls of the pages, in both themes, for pages that look like them.
pub const BASE_STYLE: &str = include_str!("html/page/base.css");

/// Style sheets of the page, in cascading order.
const STYLE: &[&str] = &[
    BASE_STYLE,
    include_str!("html/page/stage.css"),
    include_str!("html/page/panel.css"),
    include_str!("html/page/charts.css"),
    include_str!("html/page/card.css"),
    include_str!("html/page/small.css"),
];

/// Scripts of the page, in the order of their dependencies.
const SCRIPT: &[&str] = &[
    include_str!("html/page/format.js"),
    include_str!("html/page/elements.js"),
    include_str!("html/page/decode.js"),
    include_str!("html/page/track.js"),
    include_str!("html/page/run.js"),
    include_str!("html/page/query.js"),
    include_str!("html/page/palette.js"),
    include_str!("html/page/state.js"),
    include_str!("html/page/coloring.js"),
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
    include_str!("html/page/view.js"),
    include_str!("html/page/main.js"),
];

/// Creates the page of one run, or of two runs with their difference.
///
/// # Errors
/// [`HtmlError::Runs`] unless there are one or two runs; [`HtmlError::Foreign`] if an analysis
/// belongs to another timeline.
pub fn page(runs: &[PageRun<'_>]) -> Result<String, HtmlError> {
    if !(1..=2).contains(&runs.len()) {
        return Err(HtmlError::Runs(runs.len()));
    }
    let mut parts = parts(runs)?;
    parts.push(("style", STYLE.concat()));
    parts.push(("script", SCRIPT.concat()));
    Ok(fill(TEMPLATE, &parts))
}

/// The parts that the template receives, except style and script.
fn parts(runs: &[PageRun<'_>]) -> Result<Vec<(&'static str, String)>, HtmlError> {
    let mut data = String::new();
    let mut pictures = String::new();
    for (at, run) in runs.iter().enumerate() {
        if !run.is_consistent() {
            return Err(HtmlError::Foreign { title: run.title.to_owned() });
        }
        data += &packed("run", &pack::pack(run)?);
        if runs.len() > 1 {
            pictures += &format!("<h2>{} {}</h2>\n", letter(at), Escaped(run.title));
        }
        pictures += &picture(run.timeline, Frame::default());
    }
    let titles: Vec<&str> = runs.iter().map(|run| run.title).collect();
    Ok(vec![
        ("title", Escaped(&titles.join(" · ")).to_string()),
        ("warnings", sections::warnings(runs)),
        ("answer", answer::answer(runs)),
        ("pictures", pictures),
        ("compare", compare::compare(runs)),
        ("sections", sections::sections(runs)),
        ("data", data),
    ])
}

/// An element of the page that contains deflated bytes.
fn packed(class: &str, deflated: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(deflated);
    format!("<script type=\"application/octet-stream\" class=\"{class}\">{text}</script>\n")
}

/// Inserts parts into a template. Placeholders inside the inserted parts are not replaced.
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
