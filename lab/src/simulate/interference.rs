//! Other load on the GPU during a simulated run.

use std::fmt;

/// Other load on the GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interference {
    /// No other load.
    #[default]
    None,
    /// A game that renders 60 frames per second.
    Game,
}

impl fmt::Display for Interference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interference::None => "none",
            Interference::Game => "game",
        })
    }
}
