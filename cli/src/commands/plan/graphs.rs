//! The prepared graphs of a planned prompt.

use lapwing_engine::PromptGraphs;
use serde::Serialize;

use super::{milliseconds, ms};

/// Numbers and times of graphs.
#[derive(Serialize)]
pub(super) struct Graphs {
    needed: usize,
    ready: usize,
    read_ms: f64,
    prepare_ms: f64,
    waits: bool,
}

impl Graphs {
    pub(super) fn new(graphs: PromptGraphs) -> Graphs {
        let PromptGraphs { needed, ready, read, prepare, waits, .. } = graphs;
        Graphs { needed, ready, read_ms: ms(read), prepare_ms: ms(prepare), waits }
    }

    /// The times of a first prompt, now and without any graph, if the prompt needs graphs.
    pub(super) fn first(&self, now: Option<f64>, cold: Option<f64>) -> String {
        if self.needed == 0 {
            return String::new();
        }
        let (now, cold) = (milliseconds(now), milliseconds(cold));
        format!(
            " with all graphs ready; as a first prompt {now} ms now, {cold} ms without any graph"
        )
    }

    /// A line on the graphs, if the prompt needs any.
    pub(super) fn text(&self) -> String {
        let Graphs { needed, ready, read_ms, prepare_ms, waits } = *self;
        if needed == 0 {
            return String::new();
        }
        let read = match ready {
            0 => String::new(),
            _ => format!(", read from disk by the start ({read_ms:.0} ms for all that are there)"),
        };
        let missing = match (needed - ready, waits) {
            (0, _) => String::new(),
            (missing, true) => {
                format!("; the first prompt waits about {prepare_ms:.0} ms for the other {missing}")
            }
            (missing, false) => format!(
                "; the other {missing} take about {prepare_ms:.0} ms while there is no request, and other devices \
                 compute until then"
            ),
        };
        format!("\ngraphs: {ready} of {needed} are ready{read}{missing}")
    }
}
