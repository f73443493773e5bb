//! Time of an export of a recording with many lanes, such as one for each short-lived thread, and of one with
//! eight times as many.
//!
//! Fails if eight times the lanes take more than [`RATIO_MAX`] times as long. A time that grows with the square
//! of the lanes has a ratio of up to 64.
//!
//! `cargo bench -p lapwing-traces --bench exports`

use std::num::NonZeroU64;
use std::process::ExitCode;
use std::time::Instant;

use lapwing_traces::event::{
    Activity, Event, EventKind, LaneId, LaneKind, NameId, SpanId, SpanInfo, Tags,
};
use lapwing_traces::recording::{LaneInfo, Recording};
use lapwing_traces::{Analysis, Nanos, Spread, Timeline, export};

/// Lanes of the smaller recording.
const LANES: u32 = 4_000;
/// How many times as many lanes the larger one has.
const TIMES: u32 = 8;
/// Exports of each kind; the median of their ratios is judged.
const RUNS: usize = 9;
/// Largest ratio of the times.
const RATIO_MAX: f64 = 24.0;

/// Exports a timeline, and returns the length of the output in bytes.
type Export = fn(&Timeline, &Analysis) -> usize;

const EXPORTS: [(&str, Export); 3] = [
    ("perfetto", |timeline, analysis| export::perfetto(timeline, analysis).len()),
    ("chrome", |timeline, analysis| export::chrome(timeline, analysis).len()),
    ("csv", |timeline, analysis| export::csv(timeline, analysis)[0].text.len()),
];

/// A timeline with one span of 10 ns on each of its lanes, all of which have names.
fn timeline(lanes: u32) -> (Timeline, Analysis) {
    let event = |n: u32| {
        let info = SpanInfo {
            name: NameId(0),
            activity: Activity::Compute,
            parent: None,
            tags: Tags::default(),
        };
        let id = SpanId(NonZeroU64::MIN.saturating_add(n.into()));
        Event { at: Nanos(10), lane: LaneId(n), kind: EventKind::Ran(id, info, Nanos(0)) }
    };
    let lane = |n| LaneInfo { name: format!("device {n}"), kind: LaneKind::Device };
    let timeline = Timeline::new(&Recording {
        lanes: (0..lanes).map(lane).collect(),
        names: vec!["op".to_owned()],
        events: (0..lanes).map(event).collect(),
        ..Recording::default()
    });
    let analysis = Analysis::new(&timeline);
    (timeline, analysis)
}

/// Milliseconds of one export.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn milliseconds(export: Export, run: &(Timeline, Analysis)) -> f64 {
    let start = Instant::now();
    std::hint::black_box(export(&run.0, &run.1));
    start.elapsed().as_secs_f64() * 1e3
}

fn main() -> ExitCode {
    let (few, many) = (timeline(LANES), timeline(TIMES * LANES));
    let mut kept = true;
    println!("{:10} {LANES:>7} lanes {:>7} lanes   ratio", "export", TIMES * LANES);
    for (name, export) in EXPORTS {
        let runs: [Vec<f64>; 3] = {
            let pairs: Vec<[f64; 2]> = (0..RUNS)
                .map(|_| [milliseconds(export, &few), milliseconds(export, &many)])
                .collect();
            let of = |value: fn(&[f64; 2]) -> f64| pairs.iter().map(value).collect();
            [of(|pair| pair[0]), of(|pair| pair[1]), of(|pair| pair[1] / pair[0])]
        };
        let [few, many, ratio] =
            runs.map(|values| Spread::of(&values).expect("at least one run").median);
        println!("{name:10} {few:>10.2} ms {many:>10.2} ms {ratio:>7.1}");
        kept &= ratio <= RATIO_MAX;
    }
    println!(
        "{TIMES} times the lanes take at most {RATIO_MAX} times as long: {}",
        if kept { "kept" } else { "NOT KEPT" }
    );
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
