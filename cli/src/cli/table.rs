//! Tables on the terminal: columns under a header, without frames.

use comfy_table::{CellAlignment, Table, presets};

use super::visible::one_line;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// The rows under their header, one line each, with two spaces between columns.
pub(crate) fn table<const N: usize>(header: [(&str, Align); N], rows: Vec<[String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.map(|(title, _)| title));
    for row in rows {
        table.add_row(row.map(|cell| one_line(&cell)));
    }
    for (column, (_, align)) in table.column_iter_mut().zip(header) {
        column.set_padding((0, 2));
        column.set_cell_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
    }
    let bold = anstyle::Style::new().bold();
    let mut text = String::new();
    for (i, line) in table.lines().enumerate() {
        let line = line.trim_end();
        if i == 0 {
            text.push_str(&format!("{bold}{line}{bold:#}\n"));
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}
