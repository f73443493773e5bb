//! Tables of the page. They are plain HTML; the page's script makes them sortable.

use std::fmt::{Display, Write};

use super::text::{self, Escaped};

/// Most rows of a table; the others are counted below it.
const ROWS_MAX: usize = 500;

/// A table cell.
pub(super) enum Cell<'a> {
    /// Untrusted text.
    Text(&'a str),
    /// A number as text, with its value to sort by.
    Number(String, f64),
    /// A fraction of 1, with a bar.
    Share(f64),
    /// A number from −1 to 1, as a bar to the left or right.
    Signed(f64),
    /// Text below a bar of parts, and the number to sort by.
    Stack {
        /// Untrusted text.
        text: &'a str,
        /// Number to sort by.
        value: f64,
        /// Name, tooltip and width of each part; widths are fractions of the column.
        parts: &'a [StackPart],
    },
    /// An empty cell.
    None,
}

/// A part of a stacked bar.
#[derive(Clone, Debug)]
pub(super) struct StackPart {
    /// The style sheet's class of the part.
    pub(super) class: String,
    /// Untrusted text of the tooltip.
    pub(super) title: String,
    /// Width as a fraction of the column.
    pub(super) width: f64,
}

impl Cell<'_> {
    /// A time in ns.
    pub(super) fn nanos(ns: u64) -> Self {
        Cell::Number(text::nanos(ns as f64), ns as f64)
    }

    /// A count.
    pub(super) fn count(count: impl TryInto<u64>) -> Self {
        let count = count.try_into().unwrap_or(u64::MAX);
        Cell::Number(text::grouped(count), count as f64)
    }

    /// A number that may be absent.
    pub(super) fn maybe(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        value.map_or(Cell::None, |value| Cell::Number(show(value), value))
    }
}

impl Display for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Text(text) => write!(f, "<td><bdi>{}</bdi></td>", Escaped(text)),
            Cell::Number(text, value) => {
                write!(f, "<td class=\"n\" data-v=\"{value}\">{text}</td>")
            }
            Cell::Share(share) => {
                let width = (share.clamp(0.0, 1.0) * 100.0).round();
                write!(f, "<td class=\"n share\" data-v=\"{share}\">{}", text::percent(*share))?;
                write!(f, "<span class=\"bar\" style=\"width:{width}%\"></span></td>")
            }
            Cell::Signed(value) => {
                let width = (value.abs().min(1.0) * 50.0).round();
                let (class, left) =
                    if *value < 0.0 { ("less", 50.0 - width) } else { ("more", 50.0) };
                write!(f, "<td class=\"signed\" data-v=\"{value}\"><span class=\"{class}\" ")?;
                write!(f, "style=\"margin-left:{left}%;width:{width}%\"></span></td>")
            }
            Cell::Stack { text, value, parts } => {
                write!(f, "<td class=\"stack\" data-v=\"{value}\"><span class=\"stacked\">")?;
                for StackPart { class, title, width } in *parts {
                    let (width, title) = (width.clamp(0.0, 1.0) * 100.0, Escaped(title));
                    write!(
                        f,
                        "<span class=\"{class}\" style=\"width:{width:.2}%\" title=\"{title}\">"
                    )?;
                    f.write_str("</span>")?;
                }
                write!(f, "</span><bdi>{}</bdi></td>", Escaped(text))
            }
            Cell::None => f.write_str("<td class=\"n\">–</td>"),
        }
    }
}

/// A table being written.
pub(super) struct Table {
    html: String,
    rows: usize,
}

impl Table {
    /// Starts a table with a caption and heads; a head that starts with `#` marks a column of
    /// numbers. `jump` is `op:N` if column N names an op whose spans the page's script can find;
    /// other values have no effect.
    pub(super) fn new(caption: &str, jump: &str, heads: &[&str]) -> Table {
        let heads: Vec<_> = heads.iter().map(|head| (*head, "")).collect();
        Table::explained(caption, jump, &heads)
    }

    /// As [`new`](Table::new), with a tooltip for each head that is not empty.
    pub(super) fn explained(caption: &str, jump: &str, heads: &[(&str, &str)]) -> Table {
        let mut html = format!(
            "<table data-jump=\"{jump}\"><caption>{}</caption><thead><tr>",
            Escaped(caption)
        );
        for (head, help) in heads {
            let number = head.strip_prefix('#');
            let class = if number.is_some() { " class=\"n\"" } else { "" };
            let name = Escaped(number.unwrap_or(head));
            // Writing to a String cannot fail.
            let _ = match help.is_empty() {
                true => write!(html, "<th scope=\"col\"{class}>{name}</th>"),
                false => {
                    let help = Escaped(help);
                    write!(html, "<th scope=\"col\"{class} title=\"{help}\">{name}</th>")
                }
            };
        }
        html.push_str("</tr></thead><tbody>\n");
        Table { html, rows: 0 }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: &[Cell<'_>]) {
        self.rows += 1;
        if self.rows > ROWS_MAX {
            return;
        }
        self.html.push_str("<tr>");
        for cell in cells {
            let _ = write!(self.html, "{cell}");
        }
        self.html.push_str("</tr>\n");
    }

    /// Ends the table; a table without rows becomes the text `none`.
    pub(super) fn end(mut self, none: &str) -> String {
        if self.rows == 0 {
            return format!("<p class=\"none\">{none}</p>\n");
        }
        self.html.push_str("</tbody></table>\n");
        let more = self.rows.saturating_sub(ROWS_MAX);
        if more > 0 {
            let _ = writeln!(self.html, "<p class=\"none\">and {more} more rows</p>");
        }
        self.html
    }
}
