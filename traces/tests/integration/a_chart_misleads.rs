//! Tests the chart and tables in the terminal: exact drawings of small runs, and properties of all
//! runs.

use lapwing_traces::analysis::diff::Diff;
use lapwing_traces::event::StallCause;
use lapwing_traces::text::{self, Colours, Glyphs, TextOptions};
use lapwing_traces::{Analysis, Report, Timeline};
use proptest::prelude::*;

use crate::any_recording;
use crate::runs::{Script, work};

fn drawn(script: &Script, options: &TextOptions) -> String {
    let (timeline, analysis) = script.analysed();
    let report = Report::new(&timeline, &analysis);
    text::text(&timeline, &analysis, &report, options)
}

/// The chart without the facts and the tables.
fn chart(script: &Script, glyphs: Glyphs) -> String {
    let options = TextOptions { width: 46, glyphs, ..TextOptions::default() };
    drawn(script, &options).split("\n\n").nth(1).expect("a chart").to_owned()
}

/// A run of 40 ns; drawn in 40 columns, each is a nanosecond.
fn two_lanes() -> Script {
    let mut script = Script::default();
    script.work(work(1, "cpu", "a", (100, 112)));
    script.work(work(2, "gpu", "b", (114, 130)));
    script.work(work(3, "gpu", "b", (120, 140)));
    script.stalled((1, 2), ("cpu", "gpu"), (112, 113), Some((StallCause::BackPressure, 110)));
    script.sent((1, 3), ("cpu", "gpu"), (112, 119));
    script
}

#[test]
fn busy_time_and_idle_causes_are_drawn_at_their_times() {
    let expected = "
      ╷0                  ╷20 ns
cpu   ████████████>>>>>>>>>>>>>>>>>>>>>>>>>>>>
      ━━━━━━━━━━━━
gpu   ddddddddddbbhr████████████████
  2                       ████████████████████
                  ╌╌╌╌╌╌╌╌━━━━━━━━━━━━━━━━━━━━";
    let chart = chart(&two_lanes(), Glyphs::Unicode);
    assert!(format!("\n{chart}").starts_with(expected), "{chart}");
}

#[test]
fn shades_show_how_busy_a_column_is() {
    let mut script = Script::default();
    // 10 ns per column.
    script.work(work(1, "x", "a", (0, 13)));
    script.work(work(2, "x", "a", (25, 29)));
    script.work(work(3, "x", "a", (30, 38)));
    script.work(work(4, "x", "a", (55, 55)));
    script.work(work(5, "x", "a", (70, 400)));
    let full = "#".repeat(33);
    let row = chart(&script, Glyphs::Ascii).lines().nth(1).expect("a row").to_owned();
    assert_eq!(row, format!("x     #.:+?.?{full}"));
}

#[test]
fn names_cannot_control_the_terminal() {
    let mut script = Script::default();
    script.work(work(1, "\u{1b}[2J\n\u{202e}lane", "\u{7}\u{9b}op\r", (0, 10)));
    script.recording.meta.insert("model\u{1b}".to_owned(), "a\nb".to_owned());
    let text = drawn(&script, &TextOptions::default());
    let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(steers), "{text:?}");
    assert!(text.contains("\u{FFFD}[2J\u{FFFD}\u{FFFD}lane"), "{text}");
}

#[test]
fn without_colours_the_text_is_the_same() {
    let plain = drawn(&two_lanes(), &TextOptions::default());
    let options = TextOptions { colours: Colours::Ansi, ..TextOptions::default() };
    let coloured = drawn(&two_lanes(), &options);
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        stripped.push_str(before);
        rest = after.split_once('m').expect("its end").1;
    }
    stripped.push_str(rest);
    assert!(coloured.len() > plain.len());
    assert_eq!(stripped, plain);
}

#[test]
fn runs_without_spans_or_without_duration_are_drawn() {
    let empty = drawn(&Script::default(), &TextOptions::default());
    assert!(empty.starts_with("makespan 0 ns\noverlap -, "), "{empty}");
    let mut script = Script::default();
    script.work(work(1, "cpu", "instant", (u64::MAX, u64::MAX)));
    let text = drawn(&script, &TextOptions { width: 0, ..TextOptions::default() });
    assert!(text.contains("\ncpu   ░"), "{text}");
}

#[test]
fn a_difference_is_second_minus_first() {
    let mut slower = two_lanes();
    slower.work(work(4, "gpu", "c", (140, 160)));
    let (a, b) = (two_lanes().analysed(), slower.analysed());
    let draw = |diff: &Diff| text::difference(diff, &TextOptions::default());
    let forward = draw(&Diff::new((&a.0, &a.1), (&b.0, &b.1)));
    assert!(forward.starts_with("makespan 40 ns -> 60 ns, +20 ns (+50.0 %)\n"), "{forward}");
    assert!(forward.contains("only second"), "{forward}");
    let back = draw(&Diff::new((&b.0, &b.1), (&a.0, &a.1)));
    assert!(back.starts_with("makespan 60 ns -> 40 ns, -20 ns (-33.3 %)\n"), "{back}");
    assert_eq!(
        draw(&Diff::new((&a.0, &a.1), (&a.0, &a.1))),
        "makespan 40 ns -> 40 ns, 0 ns (+0.0 %)\n"
    );
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_terminal(
        recording in any_recording::recording(), width in 40..200_usize, ascii: bool,
    ) {
        let timeline = Timeline::new(&recording);
        let analysis = Analysis::new(&timeline);
        let report = Report::new(&timeline, &analysis);
        let glyphs = if ascii { Glyphs::Ascii } else { Glyphs::Unicode };
        let options = TextOptions { width, glyphs, ..TextOptions::default() };
        let text = text::text(&timeline, &analysis, &report, &options);
        for line in text.lines() {
            prop_assert!(line.chars().count() <= width, "{width}: {line:?}");
            prop_assert!(!line.contains(char::is_control), "{line:?}");
        }
        let named = recording.names.iter().chain(recording.lanes.iter().map(|lane| &lane.name));
        let mut named = named.chain(recording.meta.keys()).chain(recording.meta.values());
        if ascii && named.all(|name| name.is_ascii()) {
            prop_assert!(text.is_ascii(), "{text}");
        }
    }
}
