//! What disturbs a simulated run.

use std::fmt;

/// What uses the GPU beside the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interference {
    /// Nothing.
    #[default]
    None,
    /// A game that draws 60 frames a second.
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
