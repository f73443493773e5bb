//! Small runs whose times between tokens are known, and the chunks that were limited for them.

use lapwing_traces::budget::{Budget, BudgetError};
use lapwing_traces::event::{EventKind, Limited, Milestone, Tags};
use lapwing_traces::html::{PageRun, page};
use lapwing_traces::recording::Recording;
use lapwing_traces::text::{TextOptions, text};
use lapwing_traces::{Analysis, Nanos, Report, Timeline, export};
use serde_json::{Value, json};

use crate::runs::{Script, Work, work};

const MS: u64 = 1_000_000;

/// A request.
struct Asked {
    number: u64,
    /// Time of its submission in ms.
    submitted: u64,
    /// Its target in ms; 0 for none.
    target: u64,
}

/// A request without a target, that is submitted at the start.
fn asked(number: u64) -> Asked {
    Asked { number, submitted: 0, target: 0 }
}

/// Records a request and its tokens: their times in ms and numbers.
fn request(script: &mut Script, asked: &Asked, tokens: &[[u64; 2]]) {
    let Asked { number, submitted, target } = *asked;
    let milestone = |of, value| EventKind::Request(number, of, value);
    script.event(submitted * MS, "scheduler", milestone(Milestone::Submitted, 5));
    if target > 0 {
        script.event(submitted * MS, "scheduler", milestone(Milestone::TokenGap, target * MS));
    }
    for [at, count] in tokens {
        script.event(at * MS, "cpu", milestone(Milestone::Token, *count));
    }
}

/// Request 1 has a target of 50 ms and gaps of 40, 60 and 100 ms, of which the second ends with three accepted tokens
/// at one moment. Request 2 has no target, and gaps of 10 and 20 ms. Request 3 has a target and one token; request 4
/// has a target of 20 ms and a gap of 20 ms.
/// Three chunks run, of which the first two are limited.
fn streams() -> Script {
    let mut script = Script::default();
    let draft = [[300, 1], [340, 1], [400, 1], [400, 1], [400, 1], [500, 1]];
    request(&mut script, &Asked { number: 1, submitted: 200, target: 50 }, &draft);
    request(&mut script, &asked(2), &[[10, 1], [20, 3], [40, 1]]);
    request(&mut script, &Asked { target: 30, ..asked(3) }, &[[90, 1]]);
    request(&mut script, &Asked { target: 20, ..asked(4) }, &[[100, 1], [120, 1]]);
    let tags = |chunk, rows| Tags { chunk: Some(chunk), rows, ..Tags::default() };
    for (chunk, rows) in [(1, 120), (2, 128), (3, 512)] {
        let time = (chunk * 100 * MS, chunk * 100 * MS + MS);
        script.work(Work { tags: tags(chunk, rows), ..work(chunk, "cpu", "stage", time) });
        let inner = Work { tags: tags(chunk, rows), ..work(10 + chunk, "cpu", "op", time) };
        script.work(Work { parent: Some(chunk), ..inner });
    }
    for (chunk, stream, slack) in [(1, Some(3), 48 * MS), (2, None, 0)] {
        let limited = EventKind::Limited(Limited { chunk, stream, slack });
        script.event(chunk * 100 * MS, "scheduler", limited);
    }
    script
}

fn report(timeline: &Timeline) -> Report {
    Report::new(timeline, &Analysis::new(timeline))
}

#[test]
fn gaps_are_the_times_between_moments_with_tokens() {
    let (timeline, _) = streams().analysed();
    let all = timeline.token_gaps();
    let gaps = |request| all[&request].gaps.iter().map(|gap| gap.duration() / MS);
    assert_eq!(gaps(1).collect::<Vec<_>>(), [40, 60, 100]);
    assert_eq!(gaps(2).collect::<Vec<_>>(), [10, 20]);
    assert_eq!((gaps(3).count(), all[&3].worst(), all[&3].late()), (0, None, Some(0)));
    assert_eq!(
        (all[&1].target, all[&1].worst(), all[&1].late()),
        (Some(50 * MS), Some(100 * MS), Some(2))
    );
    assert_eq!((all[&2].target, all[&2].late()), (None, None));
    assert_eq!(all[&4].late(), Some(0), "a gap as long as the target is in time");
}

#[test]
fn the_report_has_the_gaps_of_all_requests_and_of_each() {
    let (timeline, _) = streams().analysed();
    let requests = serde_json::to_value(report(&timeline)).unwrap()["requests"].take();
    let spread = &requests["gap_ms"];
    assert_eq!(
        (&spread["count"], &spread["max"], &spread["p50"]),
        (&json!(6), &json!(100.0), &json!(20.0))
    );
    assert_eq!(
        requests["itl_ms"]["min"], 0.0,
        "accepted tokens of a draft have no time between them"
    );
    assert_eq!((&spread["min"], &requests["gaps_late"]), (&json!(10.0), &json!(2)));
    let expected = json!([
        {"request": 1, "count": 3, "gap_max_ms": 100.0, "gap_target_ms": 50.0, "gaps_late": 2},
        {"request": 2, "count": 2, "gap_max_ms": 20.0, "gap_target_ms": null, "gaps_late": null},
        {"request": 3, "count": 0, "gap_max_ms": null, "gap_target_ms": 30.0, "gaps_late": 0},
        {"request": 4, "count": 1, "gap_max_ms": 20.0, "gap_target_ms": 20.0, "gaps_late": 0},
    ]);
    assert_eq!(requests["gaps"], expected);
}

#[test]
fn without_targets_no_gap_is_late_or_in_time() {
    let mut script = Script::default();
    request(&mut script, &asked(1), &[[10, 1], [20, 1]]);
    request(&mut script, &asked(2), &[[30, 2]]);
    let (timeline, analysis) = script.analysed();
    let report = Report::new(&timeline, &analysis);
    assert_eq!((report.requests.gaps_late, report.requests.gaps.len()), (None, 1));
    let text = text(&timeline, &analysis, &report, &TextOptions::default());
    assert!(!text.contains("target") && !text.contains("limited"), "{text}");
}

#[test]
fn a_bound_on_gaps_is_checked_and_a_wrong_name_leads_to_it() {
    let (timeline, _) = streams().analysed();
    let report = serde_json::to_value(report(&timeline)).unwrap();
    let check = |text: &str| Budget::parse(text).unwrap().check(&report);
    for (bound, ok) in [
        ("requests.gap_ms.max<=100", true),
        ("requests.gap_ms.max<=99", false),
        ("requests.gap_ms.p50==20", true),
        ("requests.gaps_late==0", false),
        ("requests.gaps.0.gap_max_ms<=100", true),
    ] {
        assert_eq!(check(bound).unwrap().ok, ok, "{bound}");
    }
    for wrong in ["requests.gap_ms<=250", "requests.gap.max<=250", "requests.gaps_ms.max<=250"] {
        let error = check(wrong).unwrap_err();
        assert!(matches!(error, BudgetError::Unknown { .. }), "{error:?}");
        assert!(error.to_string().contains("requests.gap_ms.max"), "{error}");
    }
}

#[test]
fn a_window_has_the_gaps_between_its_tokens_and_the_targets_of_its_requests() {
    let script = streams();
    let window =
        |from, to| Timeline::of_window(&script.recording, Nanos(from * MS), Nanos(to * MS));
    // The window begins after the submission of request 1 and after its first token.
    let timeline = window(320, 450);
    let gaps = timeline.token_gaps();
    assert_eq!(gaps.keys().copied().collect::<Vec<_>>(), [1]);
    assert_eq!(
        (gaps[&1].target, gaps[&1].worst(), gaps[&1].late()),
        (Some(50 * MS), Some(60 * MS), Some(1))
    );
    assert!(timeline.limited.is_empty(), "no limited chunk runs in it");
    let chunks: Vec<_> = window(150, 250).limited.into_keys().collect();
    assert_eq!(chunks, [2]);
}

#[test]
fn limited_chunks_have_their_rows_and_the_reason() {
    let (timeline, analysis) = streams().analysed();
    let report = Report::new(&timeline, &analysis);
    let expected = json!([
        {"chunk": 1, "rows": 120, "stream": 3, "slack_ms": 48.0},
        {"chunk": 2, "rows": 128, "stream": null, "slack_ms": null},
    ]);
    assert_eq!(serde_json::to_value(&report.decisions.limited).unwrap(), expected);
    let reasons =
        ["120 rows, because stream 3 was due in 48 ms", "128 rows, kept short for streams"];
    let trace: Value = serde_json::from_str(&export::chrome(&timeline, &analysis)).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let found: Vec<_> =
        events.iter().filter_map(|event| event["args"]["limited"].as_str()).collect();
    assert_eq!(found, reasons, "once for each chunk, and not for the ops in it");
    let trace = export::perfetto(&timeline, &analysis);
    for reason in reasons {
        let count = trace.windows(reason.len()).filter(|part| *part == reason.as_bytes()).count();
        assert_eq!(count, 1, "{reason}");
    }
    let tables = export::csv(&timeline, &analysis);
    let table = tables.iter().find(|table| table.file == "limited.csv").unwrap();
    assert_eq!(table.text, "chunk,rows,stream,slack_ns\r\n1,120,3,48000000\r\n2,128,,\r\n");
}

#[test]
fn the_text_and_the_page_say_which_request_is_latest() {
    let (timeline, analysis) = streams().analysed();
    let report = Report::new(&timeline, &analysis);
    let text =
        text(&timeline, &analysis, &report, &TextOptions { width: 120, ..TextOptions::default() });
    for line in [
        "token gaps beyond their target: 2 of 4, the worst 100.0 ms (request 1, target 50.00 ms)",
        "2 chunks with limited prompt rows: 1 because a stream was due, 1 kept short for streams",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let row = text.lines().find(|line| line.trim_start().starts_with("token gap ")).unwrap();
    assert!(row.ends_with("100.000") && row.contains("20.000"), "{row}");
    let run =
        PageRun { title: "streams", timeline: &timeline, analysis: &analysis, report: &report };
    let page = page(&[run]).unwrap();
    let note = "worst 100\u{a0}ms in request 1, target 50.0\u{a0}ms";
    assert!(page.contains("<dt>Late token gaps</dt><dd>2") && page.contains(note));
}

#[test]
fn a_file_keeps_targets_and_limits_and_one_of_an_older_version_has_none() {
    let mut recording = streams().recording;
    let again = Recording::from_bytes(&recording.to_bytes()).unwrap();
    assert_eq!(again, recording);
    let is_new = |kind: &EventKind| {
        matches!(kind, EventKind::Limited(_) | EventKind::Request(_, Milestone::TokenGap, _))
    };
    recording.events.retain(|event| !is_new(&event.kind));
    let mut older = recording.to_bytes();
    older[8] = 2;
    let body = older.len() - 4;
    let check = crc32fast::hash(&older[..body]);
    older[body..].copy_from_slice(&check.to_le_bytes());
    let timeline = Timeline::new(&Recording::from_bytes(&older).unwrap());
    assert_eq!((timeline.gap_targets.len(), timeline.limited.len()), (0, 0));
    assert_eq!(timeline.token_gaps()[&1].worst(), Some(100 * MS));
}
