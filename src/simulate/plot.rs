//! Plots: lines and bars as SVG, alone or on one HTML page that needs no network.

mod axis;
mod bars;
mod drawing;
mod lines;
mod page;

pub use bars::{BarGroup, Bars};
pub use lines::{Lines, Series};
pub use page::{Cell, Page, Section, Tone};
