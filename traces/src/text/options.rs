//! Options for drawing a timeline in a terminal.

/// Character set of the chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Unicode blocks and lines.
    #[default]
    Unicode,
    /// ASCII only, except in names.
    Ascii,
}

/// Whether colours are used. All information is also in the characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// Plain text without escape codes.
    #[default]
    Plain,
    /// ANSI escape codes.
    Ansi,
}

/// How a timeline is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Width in columns, limited to [`WIDTH_MIN`] to [`WIDTH_MAX`].
    pub width: usize,
    /// Character set.
    pub glyphs: Glyphs,
    /// Colours.
    pub colours: Colours,
    /// Most rows of a table of ops, segments of the critical path, messages or waits.
    pub rows_max: usize,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions {
            width: 100,
            glyphs: Glyphs::default(),
            colours: Colours::default(),
            rows_max: 12,
        }
    }
}

/// Smallest width in columns at which a chart is readable.
pub const WIDTH_MIN: usize = 40;

/// Largest width in columns.
pub const WIDTH_MAX: usize = 1000;
