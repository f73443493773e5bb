//! Recordings, timelines and what is said of them.
#![expect(clippy::unwrap_used, reason = "tests")]

mod known_answers;
mod laws;
mod runs;
