//! The pages of hostile, extreme or empty recordings are valid and run no foreign code.

use lapwing_traces::analysis::Analysis;
use lapwing_traces::html::{
    Column, Entry, Figure, Group, HtmlError, Overview, PageRun, overview, page,
};
use lapwing_traces::recording::Recording;
use lapwing_traces::{Report, Timeline};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::any_recording::recording;

struct Run {
    timeline: Timeline,
    analysis: Analysis,
    report: Report,
}

impl Run {
    fn new(recording: &Recording) -> Run {
        let timeline = Timeline::new(recording);
        let analysis = Analysis::new(&timeline);
        let report = Report::new(&timeline, &analysis);
        Run { timeline, analysis, report }
    }

    fn page_run<'a>(&'a self, title: &'a str) -> PageRun<'a> {
        PageRun { title, timeline: &self.timeline, analysis: &self.analysis, report: &self.report }
    }
}

/// How often a text occurs in the page, ignoring case.
fn count(page: &str, text: &str) -> usize {
    page.to_ascii_lowercase().matches(text).count()
}

const EVIL: &str = "</SCRIPT ><script>x()</script><!--{{data}}\"'><img src=x onerror=x()>&lt;\u{0}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_recording_adds_elements_to_the_page(mut recording in recording(), title in ".{0,20}") {
        for name in &mut recording.names {
            name.push_str(EVIL);
        }
        for lane in &mut recording.lanes {
            lane.name.push_str(EVIL);
        }
        recording.meta.insert(EVIL.to_owned(), EVIL.to_owned());
        let run = Run::new(&recording);
        let title = format!("{title}{EVIL}");
        for runs in 1..=2 {
            let page = page(&vec![run.page_run(&title); runs]).expect("a page");
            // Script elements come only from the template and the runs.
            prop_assert_eq!(count(&page, "<script"), 2 + runs);
            prop_assert_eq!(count(&page, "</script"), 2 + runs);
            prop_assert_eq!(count(&page, "<img"), 0);
            prop_assert_eq!(count(&page, "<!--"), 0);
            prop_assert!(page.ends_with("</html>\n"));
            prop_assert!(!page.contains('\0'));
        }
    }
}

/// An overview in which every text is the same.
fn of_many<'a>(run: PageRun<'a>, text: &'a str, runs: usize) -> Overview<'a> {
    let entry = || Entry {
        run,
        marks: vec!["fastest"],
        note: text.to_owned(),
        figures: vec![
            Figure::number(text.to_owned(), 1.0),
            Figure::text(text),
            Figure { idle: vec![(text.to_owned(), 1.0)], ..Figure::number(text.to_owned(), 1.0) },
        ],
    };
    let group = || Group {
        title: text.to_owned(),
        entries: (0..runs).map(|_| entry()).collect(),
        fastest: 0,
        absent: vec![(text.to_owned(), text.to_owned())],
    };
    let facts = vec![(text.to_owned(), text.to_owned())];
    let columns = vec!["#A".into(), Column { head: "B", help: text }, Column::from("#C")];
    Overview { title: text, facts, columns, groups: vec![group(), group()] }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_recording_adds_elements_to_the_overview(mut recording in recording(), title in ".{0,20}") {
        for lane in &mut recording.lanes {
            lane.name.push_str(EVIL);
        }
        let run = Run::new(&recording);
        let title = format!("{title}{EVIL}");
        let page = overview(&of_many(run.page_run(&title), &title, 2)).expect("a page");
        // Two from the template, one that opens a run in full, and one per run of both groups.
        prop_assert_eq!(count(&page, "<script"), 2 + 1 + 4);
        prop_assert_eq!(count(&page, "</script"), 2 + 1 + 4);
        prop_assert_eq!(count(&page, "<img"), 0);
        prop_assert_eq!(count(&page, "<!--"), 0);
        prop_assert_eq!(count(&page, "<article"), 4);
        prop_assert!(page.ends_with("</html>\n"));
        prop_assert!(!page.contains('\0'));
    }
}

#[test]
fn an_overview_needs_at_least_one_run() {
    let run = Run::new(&Recording::default());
    let none = overview(&of_many(run.page_run("a"), "a", 0));
    assert!(matches!(none, Err(HtmlError::Runs(0))));
    let one = overview(&of_many(run.page_run("a"), "a", 1)).expect("an empty run counts");
    assert!(one.contains("0\u{a0}ns"));
}

#[test]
fn the_same_run_gives_the_same_page() {
    let mut recording = Recording::default();
    recording.meta.insert("model".to_owned(), "m".to_owned());
    let run = Run::new(&recording);
    assert_eq!(page(&[run.page_run("a")]).unwrap(), page(&[run.page_run("a")]).unwrap());
}

#[test]
fn an_empty_recording_has_a_page() {
    let run = Run::new(&Recording::default());
    let page = page(&[run.page_run("empty")]).unwrap();
    assert!(page.contains("No spans were recorded.") && page.contains("No lanes."));
    assert!(!page.contains("class=\"warning\""));
}

#[test]
fn dropped_events_are_reported() {
    let run = Run::new(&Recording { dropped: 1234, ..Recording::default() });
    let page = page(&[run.page_run("a")]).unwrap();
    assert!(page.contains("<p class=\"warning\"><b>1\u{202f}234</b> events were dropped"));
}

#[test]
fn a_page_needs_one_or_two_runs() {
    let run = Run::new(&Recording::default());
    for count in [0, 3] {
        let runs = vec![run.page_run("a"); count];
        assert!(matches!(page(&runs), Err(HtmlError::Runs(n)) if n == count));
    }
}

#[test]
fn the_analysis_of_another_run_is_refused() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let of_each = || recording().new_tree(&mut runner).unwrap().current();
    let some = std::iter::repeat_with(of_each)
        .map(|recording| Run::new(&recording))
        .find(|run| run.timeline.spans.len() > 3)
        .unwrap();
    let empty = Run::new(&Recording::default());
    let mixed = PageRun { timeline: &empty.timeline, ..some.page_run("mixed") };
    assert!(matches!(page(&[mixed]), Err(HtmlError::Foreign { title }) if title == "mixed"));
    let mixed = PageRun { analysis: &empty.analysis, ..some.page_run("mixed") };
    assert!(matches!(page(&[mixed]), Err(HtmlError::Foreign { .. })));
}
