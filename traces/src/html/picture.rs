//! Draws a static picture of the lanes for readers without scripts: busy time in bins.

use std::fmt::Write;

use super::text::{self, Escaped};
use crate::event::{Activity, LaneKind};
use crate::timeline::Timeline;

const BINS: usize = 240;
const BIN_WIDTH: usize = 4;
const LABEL_WIDTH: usize = 130;
const ROW: usize = 22;
const BAR: usize = 16;
/// Number of heights of a bin; the height shows how busy it is.
const LEVELS: u64 = 4;
/// Most lanes drawn; the others are counted below the picture.
const LANES_MAX: usize = 20;
/// Most characters shown of a lane's name.
const NAME_MAX: usize = 18;

/// A number for each activity.
type Sums = [u64; Activity::ALL.len()];

/// Which part of a run a picture shows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    /// Time in ns that the width represents; by default the run's makespan. Pictures of several
    /// runs with the same value have the same scale. A longer run is cut off.
    pub(super) span: Option<u64>,
    /// Time since the start of the run, in ns, that is marked by a line.
    pub(super) mark: Option<u64>,
    /// Draws only lanes that compute or prepare graphs and that were ever busy.
    pub(super) busy_only: bool,
}

/// Draws one run.
pub(super) fn picture(timeline: &Timeline, frame: Frame) -> String {
    let all = shown(timeline, frame.busy_only);
    let lanes = &all[..all.len().min(LANES_MAX)];
    let width = LABEL_WIDTH + BINS * BIN_WIDTH;
    let height = lanes.len() * ROW + ROW;
    let mut svg = format!(
        "<svg class=\"picture\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"Busy time of each lane\">\n"
    );
    let span = frame.span.unwrap_or(timeline.makespan());
    let bins = fill(timeline, span, lanes);
    for (at, (lane, bins)) in lanes.iter().zip(&bins).enumerate() {
        let y = at * ROW;
        let name: String = timeline.lanes[*lane].name.chars().take(NAME_MAX).collect();
        let _ = writeln!(svg, "<text x=\"0\" y=\"{}\">{}</text>", y + 15, Escaped(&name));
        let _ =
            writeln!(svg, "<path class=\"axis\" d=\"M{LABEL_WIDTH} {}H{width}\"/>", y + 4 + BAR);
        for (class, path) in paths(bins, y + 4) {
            let _ = writeln!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
    let y = lanes.len() * ROW;
    if let Some(mark) = frame.mark.filter(|mark| *mark <= span && span > 0) {
        let x = LABEL_WIDTH as f64 + mark as f64 / span as f64 * (BINS * BIN_WIDTH) as f64;
        let _ = writeln!(svg, "<path class=\"mark\" d=\"M{x:.1} 0V{y}\"/>");
    }
    let y = y + 14;
    // A ▸ marks a run that is cut off.
    let rest = timeline.makespan() > span;
    let more = if rest { " \u{25b8}" } else { "" };
    let span = text::nanos(span as f64) + more;
    let _ = writeln!(svg, "<text x=\"{LABEL_WIDTH}\" y=\"{y}\">0</text>");
    let _ = writeln!(svg, "<text x=\"{width}\" y=\"{y}\" text-anchor=\"end\">{span}</text>");
    svg.push_str("</svg>\n");
    let more = all.len() - lanes.len();
    if more > 0 {
        let _ = writeln!(svg, "<p class=\"none\">and {more} more lanes</p>");
    }
    svg
}

/// Indices of the lanes that are drawn.
pub(super) fn shown(timeline: &Timeline, busy_only: bool) -> Vec<usize> {
    let mut wanted: Vec<bool> = vec![!busy_only; timeline.lanes.len()];
    for span in timeline.spans.iter().filter(|_| busy_only) {
        let computes = timeline.lanes[span.lane].kind == LaneKind::Device;
        wanted[span.lane] |= computes || span.activity == Activity::Prepare;
    }
    (0..wanted.len()).filter(|lane| wanted[*lane]).collect()
}

/// Busy time in ns by activity, for each bin of each lane.
fn fill(timeline: &Timeline, length: u64, lanes: &[usize]) -> Vec<Vec<Sums>> {
    let start = timeline.extent().0.0;
    let mut rows: Vec<Option<usize>> = vec![None; timeline.lanes.len()];
    lanes.iter().enumerate().for_each(|(row, lane)| rows[*lane] = Some(row));
    let mut bins = vec![vec![[0_u64; Activity::ALL.len()]; BINS]; lanes.len()];
    let bin = (length / BINS as u64 + 1).max(1);
    for span in timeline.spans.iter().filter(|span| span.parent.is_none()) {
        let Some(row) = rows[span.lane] else { continue };
        let (from, to) = (span.start.0 - start, span.end.0 - start);
        // A span of any length touches at most BINS bins.
        for at in from / bin..=(to / bin).min(BINS as u64 - 1) {
            let busy = to.min((at + 1).saturating_mul(bin)).saturating_sub(from.max(at * bin));
            if let Some(sums) = bins[row].get_mut(at as usize) {
                let sum = &mut sums[span.activity.code() as usize];
                *sum = sum.saturating_add(busy);
            }
        }
    }
    for sums in bins.iter_mut().flatten() {
        let busy = sums.iter().map(|sum| u128::from(*sum)).sum::<u128>();
        // Concurrent slots may fill a bin several times.
        let level = (busy * u128::from(LEVELS)).div_ceil(bin.into()).min(LEVELS.into()) as u64;
        let most = (0..sums.len()).max_by_key(|at| (sums[*at], sums.len() - at)).unwrap_or(0);
        *sums = [0; Activity::ALL.len()];
        sums[most] = level;
    }
    bins
}

/// One path for each activity. Adjacent equal bins form one rectangle, whose height shows how busy
/// they are.
fn paths(bins: &[Sums], y: usize) -> Vec<(&'static str, String)> {
    let mut paths = Vec::new();
    for activity in Activity::ALL {
        let of = |at: usize| bins[at][activity.code() as usize];
        let mut path = String::new();
        for level in 1..=LEVELS {
            let height = BAR * level as usize / LEVELS as usize;
            let top = y + BAR - height;
            let mut at = 0;
            while at < bins.len() {
                let from = at;
                while at < bins.len() && of(at) == level {
                    at += 1;
                }
                if at > from {
                    let x = LABEL_WIDTH + from * BIN_WIDTH;
                    let width = (at - from) * BIN_WIDTH;
                    let _ = write!(path, "M{x} {top}h{width}v{height}h-{width}z");
                } else {
                    at += 1;
                }
            }
        }
        if !path.is_empty() {
            paths.push((activity.name(), path));
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::clock::Nanos;
    use crate::event::{LaneKind, SpanId, Tags};
    use crate::timeline::{Lane, Span};

    #[test]
    fn the_picture_of_many_busy_lanes_stays_small() {
        let lanes = 40;
        let lane =
            |at: usize| Lane { name: format!("lane {at}"), kind: LaneKind::Device, slots: 1 };
        let mut spans = Vec::new();
        for number in 0..lanes * 480 {
            let (lane, at) = (number % lanes, (number / lanes) as u64);
            // Each bin differs from the previous one in activity and in height.
            let start = at * 1000;
            spans.push(Span {
                id: SpanId(NonZeroU64::MIN.saturating_add(number as u64)),
                lane,
                slot: 0,
                parent: None,
                depth: 0,
                name: String::new(),
                activity: Activity::ALL[at as usize / 2 % Activity::ALL.len()],
                queued: None,
                submitted: None,
                start: Nanos(start),
                end: Nanos(start + 200 + at * 77 % 800),
                finished: true,
                discarded: false,
                tags: Tags::default(),
            });
        }
        let timeline =
            Timeline { lanes: (0..lanes).map(lane).collect(), spans, ..Timeline::default() };
        let svg = picture(&timeline, Frame::default());
        assert!(svg.len() > 60_000 && svg.len() <= 100_000, "{} bytes", svg.len());
        assert!(svg.contains("and 20 more lanes"));
        let frame = Frame { busy_only: true, span: Some(1), mark: Some(2) };
        let svg = picture(&timeline, frame);
        assert!(
            svg.contains("and 20 more lanes") && !svg.contains("mark"),
            "the mark is beyond the end of the picture"
        );
    }
}
