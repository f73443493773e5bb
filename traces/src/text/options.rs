//! How a timeline is drawn in a terminal.

/// Signs to draw with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Blocks and lines of Unicode.
    #[default]
    Unicode,
    /// ASCII alone, except in names.
    Ascii,
}

/// Whether colours are used. They repeat what the signs say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// Plain text without escape codes.
    #[default]
    Plain,
    /// ANSI escape codes.
    Ansi,
}

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns; [`WIDTH_MIN`] to [`WIDTH_MAX`] are used.
    pub width: usize,
    /// Signs.
    pub glyphs: Glyphs,
    /// Colours.
    pub colours: Colours,
    /// Most rows of a table of ops, stretches of the critical path, messages or waits.
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

/// Fewest columns with which a chart can be read.
pub const WIDTH_MIN: usize = 40;

/// Most columns that are drawn.
pub const WIDTH_MAX: usize = 1000;
