//! An HTML page of plots, texts and tables.

use std::fmt::Write;

use super::drawing::{STYLE, escaped};

/// A page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// Introduction of one or two sentences.
    pub lead: String,
    /// Sections, in order.
    pub sections: Vec<Section>,
    /// Footer: the origin of its numbers.
    pub footer: String,
}

/// A section of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// Text; empty lines separate paragraphs.
    pub text: String,
    /// Plots, made by [`Lines::svg`](super::Lines::svg) and [`Bars::svg`](super::Bars::svg).
    pub plots: Vec<String>,
    /// Column headers of a table; a leading `#` marks a column of numbers.
    pub heads: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Its colour.
    pub tone: Tone,
}

/// Meaning of a cell, shown as its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neutral.
    #[default]
    Plain,
    /// As expected.
    Good,
    /// Not as expected.
    Bad,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain }
    }
}

impl Page {
    /// The page as HTML; it needs no network.
    pub fn html(&self) -> String {
        let style = include_str!("page.css");
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{0}</title>\n<style>\n{style}{STYLE}</style>\n</head>\n<body>\n\
             <h1>{0}</h1>\n<p class=\"lead\">{1}</p>\n",
            escaped(&self.title),
            escaped(&self.lead)
        );
        self.sections.iter().for_each(|section| section.write(&mut html));
        let _ = writeln!(html, "<footer>{}</footer>\n</body>\n</html>", escaped(&self.footer));
        html
    }
}

impl Section {
    fn write(&self, html: &mut String) {
        let _ = writeln!(html, "<section>\n<h2>{}</h2>", escaped(&self.title));
        for paragraph in self.text.split("\n\n").filter(|text| !text.is_empty()) {
            let _ = writeln!(html, "<p>{}</p>", escaped(paragraph));
        }
        for plot in &self.plots {
            let _ = writeln!(html, "<figure>\n{plot}</figure>");
        }
        if !self.heads.is_empty() {
            self.table(html);
        }
        html.push_str("</section>\n");
    }

    fn table(&self, html: &mut String) {
        let is_number = |column: usize| self.heads.get(column).is_some_and(|h| h.starts_with('#'));
        html.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
        for (column, head) in self.heads.iter().enumerate() {
            let class = if is_number(column) { " class=\"number\"" } else { "" };
            let _ = write!(html, "<th{class}>{}</th>", escaped(head.trim_start_matches('#')));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                let tone = match cell.tone {
                    Tone::Plain => "",
                    Tone::Good => " good",
                    Tone::Bad => " bad",
                };
                let number = if is_number(column) { "number" } else { "" };
                let text = escaped(&cell.text);
                let _ = write!(html, "<td class=\"{number}{tone}\">{text}</td>");
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table></div>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let section = Section {
            title: "<i>".into(),
            text: "one\n\ntwo & three".into(),
            heads: vec!["what".into(), "#ms".into()],
            rows: vec![vec!["<b>".into(), Cell { text: "+1.5".into(), tone: Tone::Good }]],
            ..Section::default()
        };
        let html = Page { sections: vec![section], ..Page::default() }.html();
        assert!(html.contains("<h2>&lt;i&gt;</h2>") && html.contains("<p>two &amp; three</p>"));
        assert!(html.contains("<td class=\"number good\">+1.5</td>"), "{html}");
        assert!(!html.contains("http:") && !html.contains("https:"), "it needs no network");
    }
}
