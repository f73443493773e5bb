//! Sequence cuts: the rows of a block are divided.

use std::collections::HashMap;
use std::time::Duration;

use lapwing_kernels::part::Part;

use super::space::{Space, Timed};
use crate::device::{DeviceId, needs_graphs};

/// Sequence cuts are aligned to this many rows (HeteroLLM, arXiv 2501.14794).
pub const SEQUENCE_ALIGN: usize = 32;

/// Maximum positions on which the borders between three or more devices are searched.
const GRID_MAX: usize = 32;

/// Offers the sequence cuts between a set of devices to the search space. Borders are multiples of
/// 32 rows, so the last part holds the rest: each device is tried in the last place. The other
/// devices are ordered with static graphs first.
pub(super) fn try_all(space: &mut Space<'_>, set: &[DeviceId]) {
    let units = space.rows / SEQUENCE_ALIGN;
    let ragged = !space.rows.is_multiple_of(SEQUENCE_ALIGN);
    let places = units + usize::from(ragged);
    if places < set.len() {
        return;
    }
    let step = if set.len() == 2 { 1 } else { places.div_ceil(GRID_MAX) };
    let mut times = Times::default();
    // Without a rest, the order does not matter.
    let last_places = if ragged { 0..set.len() } else { 0..1 };
    for last in last_places {
        let mut order = set.to_vec();
        let end = order.remove(last);
        order.sort_by_key(|d| !needs_graphs(&space.input.devices[d.0]));
        order.push(end);
        let mut search = Search { space, times: &mut times, order: &order, step, best: None };
        search.from(0, Duration::ZERO, &mut Vec::new());
        if let Some((_, borders)) = search.best {
            offer(space, &order, &borders);
            // A cut with one graph and a cut with several are two kinds of candidates.
            one_graph(space, &order, &borders);
        }
    }
}

/// Times by device and number of rows; which rows they are does not matter.
#[derive(Default)]
struct Times(HashMap<(DeviceId, usize), Option<Duration>>);

impl Times {
    fn get(&mut self, space: &mut Space<'_>, device: DeviceId, rows: usize) -> Option<Duration> {
        let mut time = || space.fastest(device, Part { rows: Some(0..rows), ..Part::WHOLE }, rows);
        *self.0.entry((device, rows)).or_insert_with(|| time().map(|(_, time)| time))
    }
}

struct Search<'a, 'b> {
    space: &'a mut Space<'b>,
    times: &'a mut Times,
    order: &'a [DeviceId],
    step: usize,
    best: Option<(Duration, Vec<usize>)>,
}

impl Search<'_, '_> {
    /// Tries all borders from `start`. Prunes a branch if its slowest part is not faster than the best
    /// cut.
    fn from(&mut self, start: usize, slowest: Duration, borders: &mut Vec<usize>) {
        let total = self.space.rows;
        let device = self.order[borders.len()];
        let left = self.order.len() - borders.len() - 1;
        if left == 0 {
            let Some(time) = self.times.get(self.space, device, total - start) else { return };
            let slowest = slowest.max(time);
            if self.best.as_ref().is_none_or(|(known, _)| slowest < *known) {
                self.best = Some((slowest, borders.clone()));
            }
            return;
        }
        let step = self.step * SEQUENCE_ALIGN;
        let mut end = start + step;
        while end < total {
            let time = self.times.get(self.space, device, end - start);
            let slowest = time.map(|time| slowest.max(time));
            let worth = |known: Duration| slowest.is_some_and(|slowest| slowest < known);
            if self.best.as_ref().is_none_or(|(known, _)| worth(*known))
                && let Some(slowest) = slowest
            {
                borders.push(end);
                self.from(end, slowest, borders);
                borders.pop();
            }
            end += step;
        }
    }
}

fn offer(space: &mut Space<'_>, order: &[DeviceId], borders: &[usize]) {
    let parts = ranges(space.rows, borders).zip(order).map(|(rows, device)| {
        let count = rows.len();
        let timed = space.fastest(*device, Part { rows: Some(rows), ..Part::WHOLE }, count)?;
        Some((*device, timed))
    });
    if let Some(parts) = parts.collect::<Option<Vec<(DeviceId, Timed)>>>() {
        space.offer(parts);
    }
}

/// Offers cuts with a single full graph on the first device (300 = 256 ‖ 44), unless the best cut is
/// one of them.
fn one_graph(space: &mut Space<'_>, order: &[DeviceId], borders: &[usize]) {
    let [first, _] = order else { return };
    let sizes = space.input.devices[first.0].sizes.clone();
    let rows = space.rows;
    for size in sizes.into_iter().filter(|s| s.is_multiple_of(SEQUENCE_ALIGN) && *s < rows) {
        if borders != [size] {
            offer(space, order, &[size]);
        }
    }
}

fn ranges(rows: usize, borders: &[usize]) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
    let ends: Vec<usize> = borders.iter().copied().chain([rows]).collect();
    let starts: Vec<usize> = [0].into_iter().chain(borders.iter().copied()).collect();
    starts.into_iter().zip(ends).map(|(start, end)| start..end)
}
