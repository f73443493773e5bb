//! A view in ASCII.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::cli::charset::in_ascii;

/// Replaces the borders, strips and signs of the view, each by one character. The answer, which is in `kept`, stays.
pub(super) fn in_plain_characters(buffer: &mut Buffer, kept: Rect) {
    for position in buffer.area.positions() {
        if kept.contains(position) {
            continue;
        }
        let Some(cell) = buffer.cell_mut(position) else { continue };
        let mut characters = cell.symbol().chars();
        if let (Some(c), None) = (characters.next(), characters.next())
            && let Some(instead) = in_ascii(c).and_then(|text| text.chars().next())
        {
            cell.set_char(instead);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_answer_is_ascii() {
        let mut buffer = Buffer::with_lines(["┌ a ─┐", "│ …× │", "└────┘"]);
        in_plain_characters(&mut buffer, Rect::new(2, 1, 1, 1));
        assert_eq!(buffer, Buffer::with_lines(["+ a -+", "| …x |", "+----+"]));
    }
}
