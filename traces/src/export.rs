//! Exports a timeline for other tools: Perfetto, Chrome's trace viewer, and tables.

mod chrome;
mod csv;
mod fields;
mod messages;
mod perfetto;
mod proto;
mod tracks;

pub use chrome::chrome;
pub use csv::{Table, csv};
pub use perfetto::perfetto;
