//! Formats times, numbers, names and tables as text.

use super::options::{Colours, Glyphs, TextOptions};

/// A duration with four significant digits and its unit.
pub(super) fn duration(nanos: f64, glyphs: Glyphs) -> String {
    let micro = if glyphs == Glyphs::Ascii { "us" } else { "µs" };
    let (value, unit) = match nanos.abs() {
        x if x < 1e3 => return format!("{nanos:.0} ns"),
        x if x < 1e6 => (nanos / 1e3, micro),
        x if x < 1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    let decimals = match value.abs() {
        x if x < 10.0 => 3,
        x if x < 100.0 => 2,
        _ => 1,
    };
    format!("{value:.decimals$} {unit}")
}

/// A fraction of 1 as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A size in bytes with its unit.
pub(super) fn bytes(count: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = count as f64;
    let mut at = 0;
    while value >= 1000.0 && at + 1 < units.len() {
        value /= 1000.0;
        at += 1;
    }
    if at == 0 { format!("{count} B") } else { format!("{value:.1} {}", units[at]) }
}

/// The text, or a dash if there is none.
pub(super) fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

/// A name on one line, without characters that control the terminal, cut to `columns` characters.
pub(super) fn name(text: &str, columns: usize, glyphs: Glyphs) -> String {
    let (bad, cut) = if glyphs == Glyphs::Ascii { ('?', "~") } else { ('\u{FFFD}', "…") };
    // Marks that change the writing direction would reorder the line.
    let steers =
        |c: char| c.is_control() || matches!(c, '\u{200E}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    let safe = |c: char| if steers(c) { bad } else { c };
    if text.chars().count() <= columns {
        return text.chars().map(safe).collect();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).map(safe).collect();
    kept + cut
}

/// Text in bold if colours are on.
pub(super) fn bold(text: &str, options: &TextOptions) -> String {
    match options.colours {
        Colours::Plain => text.to_owned(),
        Colours::Ansi => format!("\u{1b}[1m{text}\u{1b}[0m"),
    }
}

/// Text wrapped at spaces into lines of at most `columns` characters; longer words are cut.
pub(super) fn wrapped(text: &str, columns: usize, glyphs: Glyphs) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ').map(|word| name(word, columns, glyphs)) {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last] = word;
        } else if lines[last].chars().count() + 1 + word.chars().count() <= columns {
            lines[last].extend([" ", &word]);
        } else {
            lines.push(word);
        }
    }
    lines.join("\n")
}

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Spaces between two columns.
const APART: usize = 2;
/// Smallest width to which a text column is cut.
const TEXT_MIN: usize = 8;

/// A table with a title, no wider than the options allow: text columns are cut, widest first, and
/// then columns on the right are left out.
pub(super) fn table<const N: usize>(
    title: &str,
    header: [(&str, Align); N],
    rows: &[[String; N]],
    options: &TextOptions,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let width_of = |text: &str| text.chars().count();
    let mut widths = header.map(|(title, _)| width_of(title));
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(width_of(cell));
        }
    }
    let mut shown = N;
    loop {
        let total = widths[..shown].iter().sum::<usize>() + APART * (shown + 1) - APART;
        let Some(excess) = total.checked_sub(options.width).filter(|excess| *excess > 0) else {
            break;
        };
        let texts = (0..shown).filter(|at| header[*at].1 == Align::Left);
        match texts.max_by_key(|at| widths[*at]).filter(|at| widths[*at] > TEXT_MIN) {
            Some(widest) => widths[widest] -= excess.min(widths[widest] - TEXT_MIN).min(4),
            None if shown > 1 => shown -= 1,
            None => break,
        }
    }
    let line = |cells: &[String; N]| {
        let mut line = String::new();
        for (at, cell) in cells[..shown].iter().enumerate() {
            let (width, cell) = (widths[at], name(cell, widths[at], options.glyphs));
            let filler = " ".repeat(width.saturating_sub(width_of(&cell)));
            line.push_str(&" ".repeat(APART));
            match header[at].1 {
                Align::Left => line.extend([cell, filler]),
                Align::Right => line.extend([filler, cell]),
            }
        }
        format!("{}\n", line.trim_end())
    };
    let title = wrapped(title, options.width, options.glyphs);
    let mut text = format!("\n{}\n", bold(&title, options));
    text.push_str(&line(&header.map(|(title, _)| title.to_owned())));
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}
