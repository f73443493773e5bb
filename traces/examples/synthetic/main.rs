//! Writes the timeline page of a synthetic run: `synthetic EVENTS OUT.html [--two] [--hostile]`, or
//! the overview of many runs: `synthetic EVENTS OUT.html --many [--hostile]`. Prints facts about
//! the run as JSON, computed here independently, with which the tests compare the page.

mod run;

use std::error::Error;

use lapwing_traces::event::Milestone;
use lapwing_traces::html::{Column, Entry, Figure, Group, Overview, PageRun, overview, page};
use lapwing_traces::{Analysis, Recording, Report, Timeline};

/// A run with its timeline, analysis and report.
struct Made {
    timeline: Timeline,
    analysis: Analysis,
    report: Report,
}

impl Made {
    fn new(recording: &Recording) -> Made {
        let timeline = Timeline::new(recording);
        let analysis = Analysis::new(&timeline);
        let report = Report::new(&timeline, &analysis);
        Made { timeline, analysis, report }
    }

    fn page_run<'a>(&'a self, title: &'a str) -> PageRun<'a> {
        let Made { timeline, analysis, report } = self;
        PageRun { title, timeline, analysis, report }
    }
}

/// Replaces names by ones that try to run code on the page.
fn spoil(recording: &mut Recording) {
    const EVIL: &str = "</script><script>window.pwned=1</script><img src=x onerror=pwned=1>";
    for name in &mut recording.names {
        *name = format!("<!--{name}{EVIL}");
    }
    for lane in &mut recording.lanes {
        lane.name = format!("\"'><b onclick=pwned=1>{}", lane.name);
    }
    recording.meta.insert(EVIL.to_owned(), format!("{{{{script}}}}{EVIL}"));
    recording.dropped = 12_345;
}

/// Busy time of each lane within a range, in ns.
fn busy(timeline: &Timeline, from: u64, to: u64) -> Vec<u64> {
    let mut ends = vec![from; timeline.lanes.len()];
    let mut sums = vec![0; timeline.lanes.len()];
    for span in timeline.outer().map(|at| &timeline.spans[at]) {
        let (start, end) = (span.start.0.max(ends[span.lane]), span.end.0.min(to));
        sums[span.lane] += end.saturating_sub(start);
        ends[span.lane] = ends[span.lane].max(end);
    }
    sums
}

/// Times between the tokens of a request, in ns. Its tokens arrive one by one.
fn token_gaps(timeline: &Timeline, request: u64) -> Vec<u64> {
    let tokens = timeline.milestones.iter().filter(|of| of.milestone == Milestone::Token);
    let times: Vec<u64> = tokens.filter(|of| of.request == request).map(|of| of.at.0).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn facts(made: &Made, events: usize) -> serde_json::Value {
    let timeline = &made.timeline;
    let count = |test: &dyn Fn(&lapwing_traces::timeline::Span) -> bool| {
        timeline.spans.iter().filter(|span| test(span)).count()
    };
    let lane = |name: &str| timeline.lanes.iter().position(|lane| lane.name == name);
    let (gpu, cpu) = (lane("gpu"), lane("cpu"));
    // Odd bounds, so that they cut through spans.
    let (start, makespan) = (timeline.extent().0.0, timeline.makespan());
    let range = (makespan / 3 + 7, makespan / 2 + 11);
    let first = timeline.spans.iter().find(|span| span.name == "attention");
    let gaps = token_gaps(timeline, 3);
    let is_limited =
        |stream: bool| timeline.limited.values().find(|of| of.stream.is_some() == stream);
    serde_json::json!({
        "worstGap3": gaps.iter().max(),
        "lateGaps3": gaps.iter().filter(|gap| **gap > 300_000).count(),
        "shortChunk": is_limited(false).map(|of| of.chunk),
        "dueChunk": is_limited(true).map(|of| serde_json::json!([of.chunk, of.stream])),
        "events": events,
        "spans": timeline.spans.len(),
        "gaps": made.analysis.gaps.len(),
        "messages": timeline.messages.len(),
        "makespan": makespan,
        "range": range,
        "busyInRange": busy(timeline, start + range.0, start + range.1),
        "attention": count(&|s| s.name == "attention"),
        "request3": count(&|s| s.tags.request == Some(3)),
        "chunk7": count(&|s| s.tags.chunk == Some(7)),
        "layer5": count(&|s| s.tags.layer == Some(5)),
        "gpu": count(&|s| Some(s.lane) == gpu),
        "request3layer5": count(&|s| s.tags.request == Some(3) && s.tags.layer == Some(5)),
        "sampleOnCpu": count(&|s| s.activity.name() == "sample" && Some(s.lane) == cpu),
        "firstAttention": first.map(|span| serde_json::json!({
            "lane": timeline.lanes[span.lane].name,
            "start": span.start.0 - timeline.extent().0.0,
            "duration": span.duration(),
            "chunk": span.tags.chunk,
            "bytes": span.tags.bytes,
        })),
    })
}

/// An overview of runs of several lengths.
/// The idle time of a run, with one more cause that the page does not know.
fn idle(made: &Made, title: &str) -> Figure {
    let known = made.report.idle.iter().map(|idle| (idle.cause.clone(), idle.ns as f64 / 1e6));
    let idle: Vec<(String, f64)> = known.chain([(title.to_owned(), 1.0)]).collect();
    let value = idle.iter().map(|(_, ms)| ms).sum();
    Figure { text: title.to_owned(), value: Some(value), idle }
}

fn many(events: usize, hostile: bool) -> Result<String, Box<dyn Error>> {
    const NAMES: [&str; 5] = ["cpu-only", "row-cut", "sequence-cut", "chunk-graph", "auto"];
    let title = if hostile { "</script><img src=x onerror=pwned=1>{{script}}" } else { "Lengths" };
    let made: Vec<Vec<Made>> = (1..=3)
        .map(|length: usize| {
            let runs = 0..NAMES.len();
            runs.map(|run| {
                // The runs of a group differ in length.
                let events = events * length / (run + 1);
                let mut recording = run::recording(events, run as u64 + 1);
                if hostile {
                    spoil(&mut recording);
                }
                Made::new(&recording)
            })
            .collect()
        })
        .collect();
    let groups = made.iter().enumerate().map(|(at, runs)| {
        let least = runs.iter().map(|made| made.timeline.makespan()).min();
        let entries = runs.iter().zip(NAMES).map(|(made, name)| {
            let makespan = made.timeline.makespan();
            let marks = if Some(makespan) == least { vec!["fastest"] } else { Vec::new() };
            let value = makespan as f64 / 1e6;
            let figures = vec![
                Figure::number(format!("{value:.1} ms"), value),
                Figure::text(title),
                idle(made, title),
            ];
            let note = format!("a synthetic run called {name}, {title}");
            Entry { run: made.page_run(name), marks, note, figures }
        });
        let absent = vec![("npu-only".to_owned(), format!("there is no NPU here: {title}"))];
        let entries: Vec<_> = entries.collect();
        let fastest = entries.iter().position(|entry| !entry.marks.is_empty()).unwrap_or(0);
        Group { title: format!("{} tokens", 100 * (at + 1)), entries, fastest, absent }
    });
    let facts = vec![("Model".to_owned(), format!("none, {title}"))];
    let columns = vec![
        "#Makespan".into(),
        Column { head: "Remark", help: title },
        Column { head: "#Idle time", help: "Idle time of the lanes that compute, by cause" },
    ];
    Ok(overview(&Overview { title, facts, columns, groups: groups.collect() })?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [events, out, options @ ..] = &arguments[..] else {
        return Err("usage: synthetic EVENTS OUT.html [--two] [--many] [--hostile]".into());
    };
    let has = |name: &str| options.iter().any(|option| option == name);
    if has("--many") {
        std::fs::write(out, many(events.parse()?, has("--hostile"))?)?;
        return Ok(());
    }
    let mut recording = run::recording(events.parse()?, 1);
    if has("--hostile") {
        spoil(&mut recording);
    }
    let made = Made::new(&recording);
    let mut runs = vec![made.page_run("pipe </script>")];
    let other;
    if has("--two") {
        other = Made::new(&run::recording(events.parse()?, 2));
        runs.push(other.page_run("pipe, other seed"));
    }
    std::fs::write(out, page(&runs)?)?;
    println!("{}", facts(&made, recording.events.len()));
    Ok(())
}
