//! Draws the Gantt chart: lanes over time, one character per column of the time axis.

use super::format::name;
use super::options::{Colours, Glyphs, TextOptions};
use super::scale::{Scale, round_step, tick_name};
use crate::analysis::{Analysis, IdleCause, SegmentKind};
use crate::timeline::Timeline;

/// Letter that stands for a cause in the chart.
const fn letter(cause: IdleCause) -> char {
    match cause {
        IdleCause::Dependency(_) => 'd',
        IdleCause::Cancelled => 'w',
        IdleCause::Prepare => 'g',
        IdleCause::Convert => 'c',
        IdleCause::Read => 'k',
        IdleCause::BackPressure => 'b',
        IdleCause::SlotPool => 's',
        IdleCause::PolicyBarrier => 'p',
        IdleCause::HandOff => 'h',
        IdleCause::Overshoot => 'o',
        IdleCause::Spin => 'x',
        IdleCause::Restart => 'r',
        IdleCause::MailboxEmpty => 'm',
        IdleCause::Start => '<',
        IdleCause::End => '>',
        IdleCause::Unknown => '?',
    }
}

/// Shades for a column that is a little to completely busy.
const fn shades(glyphs: Glyphs) -> [char; 4] {
    match glyphs {
        Glyphs::Unicode => ['░', '▒', '▓', '█'],
        Glyphs::Ascii => ['.', ':', '+', '#'],
    }
}

/// Marks of the critical path: running and waiting.
const fn path_marks(glyphs: Glyphs) -> [char; 2] {
    match glyphs {
        Glyphs::Unicode => ['━', '╌'],
        Glyphs::Ascii => ['=', '-'],
    }
}

/// What a character of the chart shows. Each class has a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Empty,
    Busy,
    Idle,
    Path,
}

/// Draws the chart with its legend.
pub(super) fn draw(timeline: &Timeline, analysis: &Analysis, options: &TextOptions) -> String {
    let longest = timeline.lanes.iter().map(|lane| lane.name.chars().count()).max().unwrap_or(0);
    let label = longest.clamp(4, options.width / 4) + 2;
    let (start, end) = timeline.extent();
    let scale = Scale { start: start.0, length: end.0 - start.0, columns: options.width - label };
    let mut chart = Chart { options, scale, label, text: String::new(), causes: Vec::new() };
    chart.ruler();
    let busy = busy_columns(timeline, scale);
    for (lane, slots) in busy.iter().enumerate() {
        let idle = chart.idle_row(analysis, lane);
        for (slot, shares) in slots.iter().enumerate() {
            let title = match slot {
                0 => name(&timeline.lanes[lane].name, label - 2, options.glyphs),
                _ => format!("  {}", slot + 1),
            };
            // The idle time of the whole lane is drawn in the row of its first slot.
            let idle = if slot == 0 { idle.as_slice() } else { &[] };
            let lane_busy = |column: usize| slots.iter().any(|slot| slot[column] > 0.0);
            chart.slot_row(&title, shares, idle, lane_busy);
        }
        chart.path_row(analysis, lane);
    }
    chart.legend();
    chart.text
}

/// Busy share of each column, by lane and slot. A lane without spans has one empty row.
fn busy_columns(timeline: &Timeline, scale: Scale) -> Vec<Vec<Vec<f64>>> {
    let row = || vec![0.0; scale.columns];
    let lanes = timeline.lanes.iter();
    let mut busy: Vec<Vec<Vec<f64>>> =
        lanes.map(|lane| (0..lane.slots.max(1)).map(|_| row()).collect()).collect();
    for span in timeline.outer().map(|at| &timeline.spans[at]) {
        let shares = &mut busy[span.lane][span.slot];
        scale.cover(span.start.0, span.end.0, |column, share| shares[column] += share);
    }
    busy
}

struct Chart<'a> {
    options: &'a TextOptions,
    scale: Scale,
    label: usize,
    text: String,
    /// Causes drawn so far, in order of appearance.
    causes: Vec<IdleCause>,
}

impl Chart<'_> {
    fn line(&mut self, title: &str, cells: &[(char, Class)]) {
        let filler = " ".repeat(self.label.saturating_sub(title.chars().count()));
        let mut line = format!("{title}{filler}");
        let mut last = Class::Empty;
        for (sign, class) in cells {
            if self.options.colours == Colours::Ansi && *class != last {
                line.push_str(match class {
                    Class::Empty => "\u{1b}[0m",
                    Class::Busy => "\u{1b}[0;34m",
                    Class::Idle => "\u{1b}[0;33m",
                    Class::Path => "\u{1b}[0;1;35m",
                });
                last = *class;
            }
            line.push(*sign);
        }
        if last != Class::Empty {
            line.push_str("\u{1b}[0m");
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Draws the time axis, with ticks at round times from the start of the run.
    fn ruler(&mut self) {
        let mark = if self.options.glyphs == Glyphs::Ascii { '|' } else { '╷' };
        let mut cells = vec![(' ', Class::Empty); self.scale.columns];
        let step = round_step(self.scale.length, self.scale.columns / 12);
        let mut free = 0;
        for tick in 0.. {
            let Some(at) = step.checked_mul(tick).filter(|at| *at <= self.scale.length) else {
                break;
            };
            let column = self.scale.column(self.scale.start.saturating_add(at)) as usize;
            let text = format!("{mark}{}", tick_name(at, step, self.options.glyphs));
            if column < free || column + text.chars().count() > cells.len() {
                continue;
            }
            for (offset, sign) in text.chars().enumerate() {
                cells[column + offset] = (sign, Class::Empty);
            }
            free = column + text.chars().count() + 1;
        }
        self.line("", &cells);
    }

    /// The most frequent cause of each column in which the lane is idle.
    fn idle_row(&self, analysis: &Analysis, lane: usize) -> Vec<Option<IdleCause>> {
        let mut best: Vec<Option<(f64, IdleCause)>> = vec![None; self.scale.columns];
        let mut sums: Vec<Vec<(IdleCause, f64)>> = vec![Vec::new(); self.scale.columns];
        for gap in analysis.gaps.iter().filter(|gap| gap.lane == lane) {
            self.scale.cover(gap.start, gap.end, |column, share| {
                let sums = &mut sums[column];
                let at = sums.iter().position(|(cause, _)| letter(*cause) == letter(gap.cause));
                let at = at.unwrap_or_else(|| {
                    sums.push((gap.cause, 0.0));
                    sums.len() - 1
                });
                sums[at].1 += share;
                let (cause, sum) = sums[at];
                if best[column].is_none_or(|(most, _)| sum > most) {
                    best[column] = Some((sum, cause));
                }
            });
        }
        best.into_iter().map(|best| best.map(|(_, cause)| cause)).collect()
    }

    fn slot_row(
        &mut self,
        title: &str,
        shares: &[f64],
        idle: &[Option<IdleCause>],
        lane_busy: impl Fn(usize) -> bool,
    ) {
        let shades = shades(self.options.glyphs);
        let mut cells = Vec::with_capacity(shares.len());
        for (column, share) in shares.iter().enumerate() {
            let cause = idle.get(column).copied().flatten().filter(|_| !lane_busy(column));
            cells.push(match cause {
                // A sum of shares may miss 1 by rounding.
                _ if *share > 1.0 - 1e-6 => (shades[3], Class::Busy),
                _ if *share > 0.0 => (shades[((share * 3.0) as usize).min(2)], Class::Busy),
                Some(cause) => {
                    if !self.causes.iter().any(|known| letter(*known) == letter(cause)) {
                        self.causes.push(cause);
                    }
                    (letter(cause), Class::Idle)
                }
                None => (' ', Class::Empty),
            });
        }
        self.line(title, &cells);
    }

    /// Draws the critical path where it runs through this lane.
    fn path_row(&mut self, analysis: &Analysis, lane: usize) {
        let marks = path_marks(self.options.glyphs);
        let mut cells = vec![(' ', Class::Empty); self.scale.columns];
        for segment in analysis.critical_path.segments.iter().filter(|s| s.lane == lane) {
            let running = matches!(segment.kind, SegmentKind::Running(_));
            self.scale.cover(segment.start, segment.end, |column, _| {
                let cell = &mut cells[column];
                if running || cell.1 == Class::Empty {
                    *cell = (marks[usize::from(!running)], Class::Path);
                }
            });
        }
        if cells.iter().any(|(_, class)| *class == Class::Path) {
            self.line("", &cells);
        }
    }

    fn legend(&mut self) {
        let [little, _, much, full] = shades(self.options.glyphs);
        let [running, waiting] = path_marks(self.options.glyphs);
        let mut entries = vec![
            format!("{little} to {much} partly busy"),
            format!("{full} busy"),
            format!("{running} critical path"),
            format!("{waiting} critical path, waiting"),
        ];
        for cause in std::mem::take(&mut self.causes) {
            entries.push(format!("{} {}", letter(cause), cause.name()));
        }
        let mut line = String::new();
        for entry in entries {
            let length = line.chars().count() + entry.chars().count() + 3;
            if !line.is_empty() && length > self.options.width {
                self.text.push_str(&line);
                self.text.push('\n');
                line.clear();
            }
            if !line.is_empty() {
                line.push_str("   ");
            }
            line.push_str(&entry);
        }
        self.text.push_str(&line);
        self.text.push('\n');
    }
}
