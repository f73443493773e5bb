//! The layer for `tracing` makes of the spans of a run the timeline that the engine records of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lapwing::Shutdown;
use lapwing::traces::event::{Activity, Milestone};
use lapwing::traces::timeline::Span;
use lapwing::traces::{Analysis, Recorder, RecorderConfig, Report, Scope, Timeline};
use tracing_subscriber::filter::LevelFilter;

use super::watch::Watch;
use super::{plain, read, request, slow};

/// The stages of a run: by lane, name and tags, their time.
fn stages(timeline: &Timeline) -> BTreeMap<(String, String, String), (u64, u64)> {
    let is_stage = |span: &&Span| span.activity == Activity::Compute && span.parent.is_none();
    let stages = timeline.spans.iter().filter(is_stage).map(|span| {
        let lane = timeline.lanes[span.lane].name.clone();
        let key = (lane, span.name.clone(), format!("{:?}", span.tags));
        (key, (span.start.0, span.end.0))
    });
    stages.collect()
}

/// The milestones of the requests of a run, with the sum of their values.
fn milestones(timeline: &Timeline) -> BTreeMap<(u64, Milestone), u64> {
    let mut sums = BTreeMap::new();
    for reached in &timeline.milestones {
        *sums.entry((reached.request, reached.milestone)).or_default() += reached.value;
    }
    sums
}

/// Both timelines of a run of two requests: the engine's own, and the layer's.
async fn both(engine: lapwing::EngineBuilder) -> (Timeline, Timeline) {
    let watch = Watch::up_to(LevelFilter::TRACE);
    let clock = Arc::clone(watch.recorder().clock());
    let recorder = Recorder::new(clock, RecorderConfig::default());
    let engine = engine.recorder(recorder.clone()).build().await.expect("an engine");
    drop(watch.recorder().take());
    recorder.set_scope(Scope::All);
    watch.recorder().set_scope(Scope::All);
    let first = engine.generate(request(6)).await.expect("a stream");
    let second = engine.generate(request(4)).await.expect("a stream");
    assert_eq!(tokio::join!(read(first), read(second)), (6, 4));
    engine.shutdown(Shutdown::Drain).await.expect("an end");
    watch.recorder().set_scope(Scope::Off);
    (Timeline::new(&recorder.recording()), Timeline::new(&watch.recorder().take()))
}

#[tokio::test]
async fn the_layer_has_the_stages_and_requests_of_the_engines_own_recording() {
    for engine in [plain(), slow()] {
        let (own, layer) = both(engine).await;
        assert_eq!((layer.dropped, layer.orphans), (0, 0));
        let (own_stages, stages) = (stages(&own), stages(&layer));
        assert!(own_stages.len() >= 6, "{own_stages:?}");
        let names = |stages: &BTreeMap<_, _>| stages.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&stages), names(&own_stages));
        for (stage, (start, end)) in &stages {
            let (from, to) = own_stages[stage];
            assert!(from <= *end && *start <= to, "{stage:?} at another time");
        }
        assert_eq!(milestones(&layer), milestones(&own));
        // Sampling is there, and the chunks of a request come one after another.
        let samples = layer.spans.iter().filter(|span| span.activity == Activity::Sample);
        assert!(samples.count() >= 6);
        assert!(layer.messages.iter().all(|message| message.to.is_some()));
        assert!(layer.messages.len() >= 6, "{:?}", layer.messages);
        let report = Report::new(&layer, &Analysis::new(&layer));
        assert_eq!((report.requests.count, report.requests.finished), (2, 2));
        assert_eq!(report.requests.generated_tokens, 10);
    }
}
