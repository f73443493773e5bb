//! Cost of recording: median time per event over many batches.
//!
//! Fails if a span costs more than [`SPAN_NS_MAX`].
//!
//! `cargo bench -p lapwing-traces --features layer --bench record [-- filter]`

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use lapwing_traces::event::{Activity, EventKind, LaneId, LaneKind, NameId, SpanInfo, Tags};
use lapwing_traces::{Clock, Nanos, OsClock, Recorder, RecorderConfig, Scope, Spread, Writer};

const BATCH: usize = 10_000;
const BATCHES: usize = 301;
/// Largest cost of a span including reading the clock, median in ns.
const SPAN_NS_MAX: f64 = 100.0;

/// Nanoseconds per call: median, minimum and maximum over the batches.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn nanos_per_call(mut f: impl FnMut(usize)) -> Spread {
    let batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            for n in 0..BATCH {
                f(n);
            }
            start.elapsed().as_nanos() as f64 / BATCH as f64
        })
        .collect();
    Spread::of(&batches).expect("at least one batch")
}

/// A recorder that keeps the latest million events, as a long-running program would.
fn recorder(scope: Scope) -> Recorder {
    let config =
        RecorderConfig { events_max: 1 << 20, keep_latest: true, ..RecorderConfig::default() };
    let recorder = Recorder::new(Arc::new(OsClock::start()), config);
    recorder.set_scope(scope);
    recorder
}

fn info(name: NameId, n: usize) -> SpanInfo {
    let tags = Tags {
        chunk: Some(n as u64),
        layer: Some(3),
        rows: 512,
        bytes: 1 << 20,
        ..Tags::default()
    };
    SpanInfo { name, activity: Activity::Compute, parent: None, tags }
}

fn ran(writer: &mut Writer, lane: LaneId, info: SpanInfo, at: Nanos) {
    let span = writer.span();
    writer.record(at, lane, EventKind::Ran(span, info, Nanos(1)));
}

/// Measures one case and prints it, unless it is filtered out. Returns the median.
fn row(what: &str, f: impl FnMut(usize)) -> Option<f64> {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if filter.is_some_and(|filter| !what.contains(&filter)) {
        return None;
    }
    let ns = nanos_per_call(f);
    println!("{what:<44} {:8.1} {:8.1} {:8.1}", ns.median, ns.min, ns.max);
    Some(ns.median)
}

fn main() -> ExitCode {
    println!("{:<44} {:>8} {:>8} {:>8}", "ns per event", "median", "min", "max");
    let clock = OsClock::start();
    row("reading the clock", |_| {
        black_box(clock.now());
    });

    let fresh = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
    let (mut writer, lane, name) =
        (fresh.writer(), fresh.lane("cpu", LaneKind::Device), fresh.name("op"));
    row("record a span, read the clock, fresh memory", |n| {
        let at = writer.now();
        ran(&mut writer, lane, info(name, n), at);
    });
    drop((writer, fresh));

    let on = recorder(Scope::All);
    let (mut writer, lane, name) = (on.writer(), on.lane("cpu", LaneKind::Device), on.name("op"));
    for n in 0..1 << 20 {
        ran(&mut writer, lane, info(name, n), Nanos(0));
    }
    let span = row("record a span, read the clock", |n| {
        let at = writer.now();
        ran(&mut writer, lane, info(name, n), at);
    });
    row("record a span at a known time", |n| {
        ran(&mut writer, lane, info(name, n), Nanos(n as u64));
    });
    row("record an end, read the clock", |_| {
        let (at, span) = (writer.now(), writer.span());
        writer.record(at, lane, EventKind::Finished(span));
    });

    let off = recorder(Scope::Off);
    let mut writer = off.writer();
    row("off", |n| {
        if black_box(&writer).wants(false) {
            ran(&mut writer, lane, info(name, n), Nanos(0));
        }
    });
    #[cfg(feature = "layer")]
    layer();
    assert!(off.recording().events.is_empty(), "off: nothing is recorded");
    assert!(!on.recording().events.is_empty(), "on: events are recorded");
    if span.is_some_and(|ns| ns > SPAN_NS_MAX) {
        eprintln!("a span costs more than {SPAN_NS_MAX} ns");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Cost of spans of the `tracing` crate, with and without the layer.
#[cfg(feature = "layer")]
fn layer() {
    use lapwing_traces::layer::TimelineLayer;
    use tracing_subscriber::layer::SubscriberExt;

    let turns = |what: &str| {
        let span = tracing::info_span!("kept");
        row(&format!("{what}: enter and exit"), |_| span.in_scope(|| {}));
        row(&format!("{what}: create, enter, exit, close"), |n| {
            tracing::info_span!("made", chunk = n).in_scope(|| {});
        });
    };
    tracing::subscriber::with_default(tracing_subscriber::registry(), || turns("no layer"));
    for (scope, what) in [(Scope::Off, "layer off"), (Scope::All, "layer on")] {
        let layer = TimelineLayer::new(recorder(scope));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || turns(what));
    }
}
