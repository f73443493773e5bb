//! Line, bar and region plots as SVG files, or together on one self-contained HTML page.

mod axis;
mod bars;
mod drawing;
mod lines;
mod page;
mod region;

pub use bars::{BarGroup, Bars};
pub use lines::{Lines, Series};
pub use page::{Cell, Page, Section, Tone};
pub use region::Region;
