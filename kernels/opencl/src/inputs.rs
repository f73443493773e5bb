//! What a run reads beside values and weights: the numbers of its batch, and rotary angles.

use super::commands::Commands;
use super::error::OpenClError;
use super::memory::{Memory, Place};
use super::ops::{Ints, Spans};
use lapwing_cpu::RopeFreqs;
use lapwing_model::device::{Batch, BatchSpan};

/// The numbers of a batch in the device's memory, as i32.
#[derive(Debug)]
pub(super) struct BatchInts {
    place: Place,
    rows: usize,
    selected: usize,
    pages: usize,
    spans: usize,
}

impl BatchInts {
    /// Gives ids, positions, the start of each row's pages, the selected rows and all pages to the
    /// device, and where states are if `has_states`.
    pub(super) fn upload(
        batch: &Batch,
        has_states: bool,
        memory: &Memory,
        commands: &mut Commands,
    ) -> Result<BatchInts, OpenClError> {
        let (rows, selected, spans) = (batch.rows(), batch.selected.len(), batch.spans.len());
        let pages: usize = batch.spans.iter().map(|span| span.pages.len()).sum();
        let mut ints: Vec<u32> = Vec::with_capacity(3 * rows + selected + pages);
        ints.extend(&batch.ids);
        ints.extend(&batch.positions);
        let mut first = 0;
        for span in &batch.spans {
            ints.extend(span.rows.clone().map(|_| first));
            first += span.pages.len() as u32;
        }
        ints.extend(batch.selected.iter().map(|row| *row as u32));
        ints.extend(batch.spans.iter().flat_map(|span| span.pages.iter()));
        if has_states {
            push_spans(&batch.spans, &mut ints);
        }
        let place = memory.input(bytemuck::cast_slice(&ints), commands)?;
        Ok(BatchInts { place, rows, selected, pages, spans })
    }

    fn at(&self, at: usize) -> Ints<'_> {
        Ints { buffer: self.place.buffer(), at }
    }

    /// Token ids from a row on.
    pub(super) fn ids(&self, row: usize) -> Ints<'_> {
        self.at(row)
    }

    /// Position of each row.
    pub(super) fn positions(&self) -> Ints<'_> {
        self.at(self.rows)
    }

    /// For each row, the first of its sequence's pages in [`pages`](BatchInts::pages).
    pub(super) fn row_pages(&self) -> Ints<'_> {
        self.at(2 * self.rows)
    }

    /// The selected rows.
    pub(super) fn selected(&self) -> Ints<'_> {
        self.at(3 * self.rows)
    }

    /// The pages of all sequences.
    pub(super) fn pages(&self) -> Ints<'_> {
        self.at(3 * self.rows + self.selected)
    }

    /// Where rows and states are.
    pub(super) fn spans(&self) -> Spans<'_> {
        let first = self.pages().at + self.pages;
        Spans { row_spans: self.at(first), spans: self.at(first + self.rows), count: self.spans }
    }
}

/// Appends the numbers of [`Spans`].
pub(super) fn push_spans(spans: &[BatchSpan], ints: &mut Vec<u32>) {
    for (number, span) in spans.iter().enumerate() {
        ints.extend(span.rows.clone().map(|_| number as u32));
    }
    let mut pairs = ints.len() + spans.len() * Spans::INTS;
    for BatchSpan { rows, start, states, .. } in spans {
        let before = states.from.unwrap_or(u32::MAX);
        let numbers = [rows.start, rows.len(), *start].map(|number| number as u32);
        ints.extend(numbers.into_iter().chain([before, states.to]));
        ints.extend([pairs as u32, states.keep.len() as u32]);
        pairs += 2 * states.keep.len();
    }
    for BatchSpan { start, states, .. } in spans {
        ints.extend(states.keep.iter().flat_map(|(end, place)| [(end - start) as u32, *place]));
    }
}

/// Gives the cosines and sines of rows to the device: for each row all cosines, then all sines. They
/// are computed on the host, by the same function as for the CPU.
pub(super) fn angles_of(
    freqs: &RopeFreqs,
    positions: &[u32],
    memory: &Memory,
    commands: &mut Commands,
) -> Result<Place, OpenClError> {
    let angles = freqs.angles(positions);
    memory.input(bytemuck::cast_slice(angles.values()), commands)
}
