//! Row cuts: the output channels of a block are divided.

use std::time::Duration;

use lapwing_kernels::part::{Part, Share};

use super::space::{Space, Timed};
use crate::device::DeviceId;

/// Row cuts are aligned to this many output channels if the block is wide enough (HeteroLLM,
/// arXiv 2501.14794), else to [`Share::ALIGN`], which is 32.
pub const WIDE_ALIGN: usize = 256;

/// Minimum units of [`WIDE_ALIGN`]; narrower blocks are cut in units of [`Share::ALIGN`].
const UNITS_MIN: usize = 8;
/// Maximum units on which the border between two devices is searched.
const UNITS_MAX: usize = 256;
/// Maximum units of the grid on which the borders between three or more devices are searched, before
/// single units are moved.
const GRID_MAX: usize = 16;

/// Number of units into which the widest value of a block is divided. Each border between units is
/// aligned.
pub(super) fn units(width: usize) -> usize {
    let wide = width.is_multiple_of(WIDE_ALIGN) && width / WIDE_ALIGN >= UNITS_MIN;
    let align = if wide { WIDE_ALIGN } else { Share::ALIGN };
    let units = width.div_ceil(align);
    // Too many units are grouped, if the groups divide them evenly.
    let together = (1..=16).find(|t| units.is_multiple_of(*t) && units / t <= UNITS_MAX);
    units / together.unwrap_or(1)
}

/// Offers the row cuts between a set of devices to the search space.
pub(super) fn try_all(space: &mut Space<'_>, set: &[DeviceId]) {
    let written = space.graph.nodes()[space.nodes.clone()].iter();
    let width = written.map(|n| space.graph.value(n.output).width).max().unwrap_or(0);
    let units = units(width);
    if units < set.len() || space.rows == 0 {
        return;
    }
    if let [first, second] = set {
        for border in 1..units {
            offer(space, &[*first, *second], &[0, border, units]);
        }
        return;
    }
    // The largest grid whose points are multiples of a unit.
    let grid = (set.len()..=GRID_MAX.min(units)).rev().find(|g| units.is_multiple_of(*g));
    let step = grid.map_or(1, |grid| units / grid);
    let Some(borders) = best_on_grid(space, set, units, step) else { return };
    offer(space, set, &borders);
    refine(space, set, borders, step);
}

/// The borders on the grid with the fastest slowest part. Dynamic programming over the devices: for
/// each position, the best division of the channels before it between the devices so far.
fn best_on_grid(
    space: &mut Space<'_>,
    set: &[DeviceId],
    units: usize,
    step: usize,
) -> Option<Vec<usize>> {
    let points: Vec<usize> = (0..=units).step_by(step).collect();
    let last = points.len() - 1;
    // Time of the slowest part, and borders, by the position reached.
    let mut reached: Vec<Option<(Duration, Vec<usize>)>> = vec![None; points.len()];
    reached[0] = Some((Duration::ZERO, vec![0]));
    for (at, device) in set.iter().enumerate() {
        let mut next: Vec<Option<(Duration, Vec<usize>)>> = vec![None; points.len()];
        for from in at..last {
            let Some((slowest, borders)) = reached[from].clone() else { continue };
            let ends = if at + 1 == set.len() { last..=last } else { from + 1..=last };
            for to in ends {
                let share = Share { from: points[from], to: points[to], of: units };
                let Some((_, time)) = part(space, *device, share) else { continue };
                let slowest = slowest.max(time);
                if next[to].as_ref().is_none_or(|(known, _)| slowest < *known) {
                    let mut borders = borders.clone();
                    borders.push(points[to]);
                    next[to] = Some((slowest, borders));
                }
            }
        }
        reached = next;
    }
    reached.pop().flatten().map(|(_, borders)| borders)
}

/// Moves units from one part to another, in ever smaller steps, as long as the slowest parts get
/// faster.
///
/// This ends at the optimum if the time of a part never falls with its units: in a better division
/// the slowest parts have fewer units and some other part has more, so moving one unit from a slowest
/// part to that part is already an improvement.
fn refine(space: &mut Space<'_>, set: &[DeviceId], mut borders: Vec<usize>, step: usize) {
    let mut step = step / 2;
    let Some(mut known) = slowest_first(space, set, &borders) else { return };
    let all = || 0..set.len();
    while step > 0 {
        let mut better = false;
        for (from, to) in all().flat_map(|from| all().map(move |to| (from, to))) {
            let Some(moved) = moved(&borders, from, to, step) else { continue };
            if let Some(times) = slowest_first(space, set, &moved)
                && times < known
            {
                (borders, known, better) = (moved, times, true);
            }
        }
        if !better {
            step /= 2;
        }
    }
    offer(space, set, &borders);
}

/// The borders after `step` units moved from part `from` to part `to`, with the parts between shifted;
/// `None` if part `from` would become empty.
fn moved(borders: &[usize], from: usize, to: usize, step: usize) -> Option<Vec<usize>> {
    let mut moved = borders.to_vec();
    if from == to || borders[from + 1] - borders[from] <= step {
        return None;
    }
    match from < to {
        true => moved[from + 1..=to].iter_mut().for_each(|border| *border -= step),
        false => moved[to + 1..=from].iter_mut().for_each(|border| *border += step),
    }
    Some(moved)
}

/// Times of all parts, longest first.
fn slowest_first(
    space: &mut Space<'_>,
    set: &[DeviceId],
    borders: &[usize],
) -> Option<Vec<Duration>> {
    let parts = parts(space, set, borders)?;
    let mut times: Vec<Duration> = parts.iter().map(|(_, (_, time))| *time).collect();
    times.sort_unstable_by(|a, b| b.cmp(a));
    Some(times)
}

fn offer(space: &mut Space<'_>, set: &[DeviceId], borders: &[usize]) {
    if let Some(parts) = parts(space, set, borders) {
        space.offer(parts);
    }
}

fn parts(
    space: &mut Space<'_>,
    set: &[DeviceId],
    borders: &[usize],
) -> Option<Vec<(DeviceId, Timed)>> {
    let of = borders.last().copied()?;
    let pairs = set.iter().zip(borders.windows(2));
    pairs
        .map(|(device, pair)| {
            Some((*device, part(space, *device, Share { from: pair[0], to: pair[1], of })?))
        })
        .collect()
}

fn part(space: &mut Space<'_>, device: DeviceId, features: Share) -> Option<Timed> {
    space.fastest(device, Part { features, ..Part::WHOLE }, space.rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_multiples_of_256_for_wide_blocks_and_of_32_otherwise() {
        for width in [2048, 4096, 14_336, 28_672, 128_256, 49_152, 576, 1536, 640, 96, 33] {
            let units = units(width);
            assert!((2..=UNITS_MAX).contains(&units), "{width} {units}");
            let wide = width % WIDE_ALIGN == 0 && width / WIDE_ALIGN >= UNITS_MIN;
            let align = if wide { WIDE_ALIGN } else { Share::ALIGN };
            for unit in 0..units {
                let border = Share { from: 0, to: unit, of: units }.of_width(width).end;
                assert_eq!(border % align, 0, "{width}: {unit} of {units}");
            }
        }
    }
}
