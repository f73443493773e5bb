//! Shared parts of all plots: sizes, style, and pieces of SVG.

use std::fmt::Write;

/// Size of every plot, in units of its view box.
pub(super) const WIDTH: f64 = 760.0;
pub(super) const HEIGHT: f64 = 400.0;
/// Margins: the left one holds the axis numbers, the right one the names.
pub(super) const LEFT: f64 = 62.0;
pub(super) const RIGHT: f64 = 150.0;
pub(super) const TOP: f64 = 34.0;
pub(super) const BOTTOM: f64 = 46.0;
/// Number of colours that the style names.
pub(super) const COLOURS: usize = 8;

/// Colours and fonts of the plots: eight hues that are distinct with any colour vision, for a light and
/// a dark background.
pub(super) const STYLE: &str = include_str!("plot.css");

/// Text escaped for HTML and SVG.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// A short number: three significant digits, and no exponent in the usual range.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    let digits = match size {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 0.1 => 2,
        s if s >= 0.001 => 4,
        _ => return format!("{value:.2e}"),
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The opening tag and the title of a plot.
pub(super) fn open(title: &str) -> String {
    format!(
        "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         role=\"img\" aria-label=\"{0}\">\n<title>{0}</title>\n",
        escaped(title)
    )
}

/// Characters on a line of a caption.
const CAPTION_CHARS: usize = 118;
/// Heights of a title and of a caption's line.
const TITLE_HEIGHT: f64 = 26.0;
const LINE_HEIGHT: f64 = 16.0;

/// A self-contained plot that includes its style, with the title above and a caption below.
pub(super) fn alone(svg: &str, title: &str, caption: &str) -> String {
    let Some((head, rest)) = svg.split_once('\n') else { return svg.to_owned() };
    let lines = wrapped(caption, CAPTION_CHARS);
    let height = HEIGHT + TITLE_HEIGHT + LINE_HEIGHT * lines.len() as f64 + 4.0;
    let own = format!("viewBox=\"0 0 {WIDTH} {HEIGHT}\"");
    let head = head.replace(&own, &format!("viewBox=\"0 {} {WIDTH} {height}\"", -TITLE_HEIGHT));
    let mut words = String::new();
    text(&mut words, (8.0, 14.0 - TITLE_HEIGHT), "title", title);
    for (at, line) in lines.iter().enumerate() {
        let y = HEIGHT + LINE_HEIGHT * (at + 1) as f64 - 4.0;
        text(&mut words, (8.0, y), "name", line);
    }
    format!("{head}\n<style>\n{STYLE}</style>\n{words}{rest}")
}

/// The words of a text on lines of at most `most` characters; a longer word has a line of its own.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

pub(super) fn text(svg: &mut String, at: (f64, f64), class: &str, words: &str) {
    let (x, y) = at;
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        escaped(words)
    );
}

/// Heights for labels whose preferred heights are `wanted`, at least `step` apart, in the given order.
pub(super) fn spread(wanted: &[f64], step: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut placed = wanted.to_vec();
    let mut least = top;
    for at in &order {
        placed[*at] = placed[*at].max(least);
        least = placed[*at] + step;
    }
    let mut most = bottom;
    for at in order.iter().rev() {
        placed[*at] = placed[*at].min(most);
        most = placed[*at] - step;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_cover_each_other() {
        let placed = spread(&[50.0, 51.0, 52.0, 200.0, 199.0], 14.0, 0.0, 200.0);
        let mut sorted = placed.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|two| two[1] - two[0] > 13.9), "{placed:?}");
        assert!(placed[3] > placed[4], "their order stays");
        assert!(sorted[4] <= 200.0);
    }

    #[test]
    fn a_name_cannot_break_the_page() {
        assert_eq!(escaped("<b>\"&\u{1b}"), "&lt;b&gt;&quot;&amp;\u{FFFD}");
    }

    #[test]
    fn numbers_are_short_but_not_wrong() {
        let rows = [(0.0, "0"), (1234.5, "1234"), (-12.34, "-12.3"), (0.5, "0.5"), (1.0, "1")];
        for (value, text) in rows {
            assert_eq!(short(value), text);
        }
        assert_eq!(short(0.00001), "1.00e-5");
    }
}
