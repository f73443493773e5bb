//! Exports a small run with known numbers in Perfetto's and in Chrome's format to the folder given
//! as argument. `check.py` checks both with Perfetto's trace processor.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use lapwing_traces::event::{
    Activity, EventKind, LaneId, LaneKind, Milestone, Sending, SpanId, SpanInfo, StallCause, Tags,
};
use lapwing_traces::{
    Analysis, Clock, Nanos, Recorder, RecorderConfig, Scope, Timeline, Writer, export,
};

/// A clock that does not advance: every event states its own time.
struct Still;

impl Clock for Still {
    fn now(&self) -> Nanos {
        Nanos(0)
    }
}

struct Run {
    recorder: Recorder,
    writer: Writer,
}

impl Run {
    fn span(
        &mut self,
        lane: LaneId,
        name: &str,
        times: [u64; 2],
        parent: Option<SpanId>,
    ) -> SpanId {
        let id = self.writer.span();
        let info = SpanInfo {
            name: self.recorder.name(name),
            activity: Activity::Compute,
            parent,
            tags: Tags {
                chunk: Some(7),
                layer: Some(3),
                rows: 2,
                bytes: 1_000,
                flops: u64::MAX,
                ..Tags::default()
            },
        };
        self.writer.record(Nanos(times[1]), lane, EventKind::Ran(id, info, Nanos(times[0])));
        id
    }

    fn message(
        &mut self,
        from: (LaneId, SpanId, u64),
        to: Option<(LaneId, SpanId, u64)>,
        stall: Option<(StallCause, Nanos)>,
    ) {
        let message = self.writer.message();
        let name = self.recorder.name("chunk");
        let sending = Sending { message, span: Some(from.1), name, bytes: 64, stall };
        self.writer.record(Nanos(from.2), from.0, EventKind::Sent(sending));
        if let Some((lane, span, at)) = to {
            self.writer.record(Nanos(at), lane, EventKind::Received(message, Some(span)));
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: perfetto_export FOLDER")?);
    let recorder = Recorder::new(Arc::new(Still), RecorderConfig::default());
    recorder.set_scope(Scope::All);
    recorder.set_meta("model", "hostile \"name\" </script> \u{1F426}");
    recorder.set_meta("clock", "virtual");
    let [scheduler, cpu, gpu] =
        [("scheduler", LaneKind::Actor), ("cpu", LaneKind::Device), ("gpu", LaneKind::Device)]
            .map(|(name, kind)| recorder.lane(name, kind));
    let mut run = Run { writer: recorder.writer(), recorder };
    // Twenty days after the start of the clock: a reader that rounds loses the last digits.
    let t = |ns: u64| 1_700_000_000_000_001 + ns;
    // Sent immediately and handled in the same nanosecond.
    let admit = run.span(scheduler, "admit", [t(0), t(0)], None);
    let first = run.span(cpu, "layer", [t(0), t(1_000)], None);
    run.message((scheduler, admit, t(0)), Some((cpu, first, t(0))), None);
    run.span(cpu, "attn_q", [t(0), t(400)], Some(first));
    run.span(cpu, "matmul", [t(400), t(1_000)], Some(first));
    // Two concurrent spans on one lane, and inner spans that partially overlap.
    let second = run.span(gpu, "layer", [t(1_003), t(3_003)], None);
    let third = run.span(gpu, "layer", [t(2_000), t(4_001)], None);
    run.span(gpu, "matmul", [t(1_100), t(2_100)], Some(second));
    run.span(gpu, "matmul", [t(1_600), t(3_003)], Some(second));
    run.message(
        (cpu, first, t(999)),
        Some((gpu, second, t(1_001))),
        Some((StallCause::BackPressure, Nanos(t(990)))),
    );
    run.message((cpu, first, t(1_000)), Some((gpu, third, t(1_999))), None);
    run.message((gpu, third, t(4_000)), None, None);
    run.span(cpu, "=cmd|'/c calc'!A0\n\u{1b}[31m", [t(3_000), t(3_001)], None);
    let depth = run.recorder.name("queue depth");
    for (at, value) in [(0, 1), (1_500, -3), (4_000, i64::MAX)] {
        run.writer.record(Nanos(t(at)), gpu, EventKind::Counter(depth, value));
    }
    run.writer.record(Nanos(t(0)), scheduler, EventKind::Request(1, Milestone::Submitted, 5));
    let timeline = Timeline::new(&run.recorder.recording());
    let analysis = Analysis::new(&timeline);
    std::fs::write(folder.join("run.pftrace"), export::perfetto(&timeline, &analysis))?;
    std::fs::write(folder.join("run.json"), export::chrome(&timeline, &analysis))?;
    Ok(())
}
