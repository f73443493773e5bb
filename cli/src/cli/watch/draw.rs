//! Draws the view.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Paragraph, Wrap};

use super::board::{Board, WINDOW};
use super::plain::in_plain_characters;
use crate::cli::charset::is_ascii;
use crate::cli::visible::visible;

/// Characters of a strip's column, from idle to busy.
const LEVELS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Width of the names next to the strips.
const NAME_WIDTH: usize = 12;
/// Width of an op's name, if there is no room for more.
const OP_NAME_WIDTH: usize = 22;
/// Width of the numbers of an op.
const OP_NUMBERS_WIDTH: usize = 44;
/// Maximum number of ops in the list.
const OPS_MAX: usize = 8;

/// Data of a frame besides the board.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    /// Name of the model.
    pub(super) model: &'a str,
    /// The answer so far.
    pub(super) text: &'a str,
    /// Whether the answer is complete, so that any key ends the view.
    pub(super) has_ended: bool,
}

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, board: &Board, shown: &Shown<'_>) {
    let lanes = board.lanes.iter().filter(|lane| lane.shown).count() as u16;
    let ops = OPS_MAX.max(board.counters.len()) as u16;
    let [head, strips, middle, answer] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(lanes + 2),
        Constraint::Length(ops + 2),
        Constraint::Min(3),
    ])
    .areas(frame.area());
    let [left, right] =
        Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(middle);
    frame.render_widget(head_lines(board, shown), head);
    frame.render_widget(lane_lines(board, strips), strips);
    frame.render_widget(op_lines(board, left), left);
    frame.render_widget(counter_lines(board), right);
    frame.render_widget(answer_lines(shown.text, answer), answer);
    if is_ascii() {
        in_plain_characters(frame.buffer_mut(), Block::bordered().inner(answer));
    }
}

fn head_lines(board: &Board, shown: &Shown<'_>) -> Paragraph<'static> {
    let (now, mean) = board.rates();
    let number = |value: Option<f64>, unit: &str| match value {
        Some(value) => format!("{value:.1} {unit}"),
        None => format!("– {unit}"),
    };
    let mut figures = vec![
        Span::from(format!("{} tokens", board.tokens)).bold(),
        Span::from(format!(
            "  {} now  {} mean  first token after {}  prompt {} tokens",
            number(now, "tok/s"),
            number(mean, "tok/s"),
            number(board.ttft_ms(), "ms"),
            board.prompt_tokens,
        )),
    ];
    if board.dropped > 0 {
        let text = format!("  {} events dropped", board.dropped);
        figures.push(Span::styled(text, Style::new().fg(Color::Yellow)));
    }
    let title = Line::from(vec![
        Span::from("lapwing ").bold(),
        Span::from(visible(shown.model).into_owned()),
        match shown.has_ended {
            true => Span::from("   finished; any key ends the view").bold(),
            false => Span::from("   q ends").dim(),
        },
    ]);
    Paragraph::new(vec![title, Line::from(figures)])
}

fn lane_lines(board: &Board, area: Rect) -> Paragraph<'static> {
    // Borders, a space, the percentage.
    let columns = usize::from(area.width).saturating_sub(NAME_WIDTH + 9).max(1);
    let shown = board.lanes.iter().enumerate().filter(|(_, lane)| lane.shown);
    let lines: Vec<Line<'_>> = shown
        .map(|(index, lane)| {
            let (shares, mean) = board.busy(index, columns);
            let strip: String = shares.into_iter().map(level).collect();
            let name: String = visible(&lane.name).chars().take(NAME_WIDTH).collect();
            Line::from(vec![
                Span::from(format!("{name:NAME_WIDTH$} ")),
                Span::styled(strip, Style::new().fg(Color::Cyan)),
                Span::from(format!(" {:3.0} %", mean * 100.0)),
            ])
        })
        .collect();
    let title = format!(" lanes: busy over the last {} s ", WINDOW / 1_000_000_000);
    Paragraph::new(lines).block(Block::bordered().title(title))
}

/// The character of a busy share; only a completely idle column looks idle.
fn level(share: f64) -> char {
    let highest = LEVELS.len() - 1;
    let level = (share.clamp(0.0, 1.0) * highest as f64).ceil() as usize;
    LEVELS[level.min(highest)]
}

fn op_lines(board: &Board, area: Rect) -> Paragraph<'static> {
    let ops = board.top_ops(OPS_MAX);
    // Names of fused ops are long: the column takes the room that the numbers leave.
    let longest = ops.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
    let room = usize::from(area.width).saturating_sub(2 + OP_NUMBERS_WIDTH);
    let width = longest.min(room).max(OP_NAME_WIDTH);
    let lines: Vec<Line<'_>> = ops
        .into_iter()
        .map(|(name, count, total, share)| {
            let mean_us = total as f64 / count.max(1) as f64 / 1e3;
            Line::from(format!(
                "{:width$} {:5.1} % {:9.1} ms {count:8} × {mean_us:8.1} µs",
                shortened(name, width),
                share * 100.0,
                total as f64 / 1e6,
            ))
        })
        .collect();
    Paragraph::new(lines).block(Block::bordered().title(" ops by time "))
}

/// The visible form of a name, cut to that many characters.
fn shortened(name: &str, width: usize) -> String {
    let name = visible(name);
    if name.chars().count() <= width {
        return name.into_owned();
    }
    name.chars().take(width - 1).chain(['…']).collect()
}

fn counter_lines(board: &Board) -> Paragraph<'static> {
    let lines: Vec<Line<'_>> = board
        .counters
        .iter()
        .map(|((lane, name), value)| {
            Line::from(vec![
                Span::from(format!("{value:6} {} ", visible(name))),
                Span::from(visible(lane).into_owned()).dim(),
            ])
        })
        .collect();
    Paragraph::new(lines).block(Block::bordered().title(" queues and memory "))
}

/// The last lines of the answer that fit.
fn answer_lines(text: &str, area: Rect) -> Paragraph<'static> {
    let width = area.width.saturating_sub(2);
    let paragraph =
        Paragraph::new(Text::from(visible(text).replace('\t', "    "))).wrap(Wrap { trim: false });
    let lines = wrapped_lines(text, width.max(1).into());
    let hidden = lines.saturating_sub(area.height.saturating_sub(2).into());
    paragraph
        .scroll((u16::try_from(hidden).unwrap_or(u16::MAX), 0))
        .block(Block::bordered().title(" answer "))
}

/// Approximate number of lines that a text takes; words are not split.
fn wrapped_lines(text: &str, width: usize) -> usize {
    text.lines()
        .map(|line| {
            let (mut lines, mut used) = (1, 0);
            for word in line.split(' ') {
                let chars = word.chars().count();
                if used > 0 && used + 1 + chars > width {
                    lines += 1;
                    used = 0;
                }
                used += chars + usize::from(used > 0);
                lines += used.saturating_sub(1) / width;
                used = if used > width { used % width } else { used };
            }
            lines
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lapwing_engine::traces::event::{Activity, EventKind, LaneKind, Milestone, SpanInfo, Tags};
    use lapwing_engine::traces::{Clock, Nanos, Recorder, RecorderConfig, Scope};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> Nanos {
            Nanos(WINDOW)
        }
    }

    /// A lane that is busy in the first quarter of the time span, one that is busy in the second half,
    /// and three tokens.
    fn board() -> Board {
        let recorder = Recorder::new(Arc::new(Fixed), RecorderConfig::default());
        recorder.set_scope(Scope::All);
        let caller = recorder.lane("caller", LaneKind::Thread);
        let scheduler = recorder.lane("scheduler", LaneKind::Actor);
        let cpu = recorder.lane("cpu", LaneKind::Device);
        let mut writer = recorder.writer();
        let info = |name| SpanInfo {
            name: recorder.name(name),
            activity: Activity::Compute,
            parent: None,
            tags: Tags::default(),
        };
        let quarter = WINDOW / 4;
        let span = writer.span();
        writer.record(Nanos(quarter), scheduler, EventKind::Ran(span, info("submit"), Nanos(0)));
        let stage = writer.span();
        writer.record(Nanos(2 * quarter), cpu, EventKind::Started(stage, info("decode")));
        let op = writer.span();
        let inner = SpanInfo { parent: Some(stage), ..info("ffn_down") };
        writer.record(Nanos(3 * quarter), cpu, EventKind::Ran(op, inner, Nanos(2 * quarter)));
        let pages = recorder.name("KV pages in use");
        writer.record(Nanos(quarter), scheduler, EventKind::Counter(pages, 7));
        writer.record(Nanos(0), scheduler, EventKind::Request(0, Milestone::Submitted, 5));
        for at in [quarter, 2 * quarter, 3 * quarter] {
            writer.record(Nanos(at), cpu, EventKind::Request(0, Milestone::Token, 1));
        }
        let pages = writer.message();
        writer.record(Nanos(1), caller, EventKind::Received(pages, None));
        let mut board = Board::default();
        board.add(&recorder.take(), Nanos(WINDOW));
        board
    }

    fn rows(board: &Board, text: &str) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
        let shown = Shown { model: "tiny\u{1b}[2J", text, has_ended: false };
        terminal.draw(|frame| draw(frame, board, &shown)).expect("drawn");
        let buffer = terminal.backend().buffer();
        let row = |y| (0..80).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..24).map(row).collect()
    }

    #[test]
    fn a_known_recording_draws_the_expected_rows() {
        let rows = rows(&board(), "one two\nthree");
        assert!(rows[0].starts_with("lapwing tiny␛[2J   q ends"), "{rows:#?}");
        let figures = "3 tokens  1.0 tok/s now  1.0 tok/s mean  first token after 1000.0 ms";
        assert!(rows[1].starts_with(figures), "{rows:#?}");
        // 59 columns: a quarter is 14.75, a half 29.5.
        let scheduler = format!("│scheduler    {}▆{}  25 %│", "█".repeat(14), "·".repeat(44));
        let cpu = format!("│cpu          {}▄{}  50 %│", "·".repeat(29), "█".repeat(29));
        assert_eq!((rows[3].as_str(), rows[4].as_str()), (&scheduler[..], &cpu[..]));
        assert!(!rows.iter().any(|row| row.contains("caller")), "a lane that never runs");
        assert!(rows[7].starts_with("│ffn_down               100.0 %    1000.0 ms"), "{rows:#?}");
        assert!(rows[7].contains("     7 KV pages in use sched"), "{rows:#?}");
        assert!(rows[17].starts_with("│one two") && rows[18].starts_with("│three"), "{rows:#?}");
    }

    #[test]
    fn the_end_of_a_long_answer_is_visible() {
        let text = format!("{}the end", "some words ".repeat(200));
        let rows = rows(&board(), &text);
        assert!(rows[17..].iter().any(|row| row.contains("the end")), "{rows:#?}");
    }

    #[test]
    fn a_tiny_terminal_is_drawn_without_panic() {
        for (width, height) in [(1, 1), (10, 3), (20, 40), (200, 5)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
            let shown = Shown { model: "m", text: "text", has_ended: true };
            terminal.draw(|frame| draw(frame, &board(), &shown)).expect("drawn");
        }
    }
}
