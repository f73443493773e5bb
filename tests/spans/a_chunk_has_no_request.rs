//! Chunks follow from their requests, and stages are below their chunks.

use tracing::Level;
use tracing_subscriber::filter::LevelFilter;

use super::watch::Watch;
use super::{PROMPT, plain, read, request, slow, until};

#[tokio::test]
async fn chunks_of_one_request_are_below_it_and_stages_are_below_them() {
    let watch = Watch::up_to(LevelFilter::DEBUG);
    let engine = plain().build().await.expect("an engine");
    let stream = engine.generate(request(3)).await.expect("a stream");
    assert_eq!(read(stream).await, 3);
    let (request, _) = watch.only("request");
    let (chunks, stages) = (watch.named("chunk"), watch.named("stage"));
    // The prompt, and a row for each token but the last.
    assert_eq!((chunks.len(), stages.len()), (3, 3));
    for (nth, ((number, chunk), (_, stage))) in chunks.iter().zip(&stages).enumerate() {
        let (rows, phase) = if nth == 0 { (5, "prefill") } else { (1, "decode") };
        assert_eq!((chunk.parent, &chunk.follows[..]), (Some(request), &[request][..]));
        assert_eq!((chunk.level, chunk.is_closed), (Level::DEBUG, true));
        assert_eq!((chunk.field("phase"), chunk.field("sequences")), (phase, "1"));
        assert_eq!(chunk.field("rows"), rows.to_string());
        assert_eq!(
            (stage.parent, stage.level, stage.is_closed),
            (Some(*number), Level::DEBUG, true)
        );
        assert_eq!((stage.field("device"), stage.field("stage")), ("cpu", "0"));
        assert_eq!(stage.field("chunk"), chunk.field("chunk"));
        assert_eq!(stage.field("rows"), rows.to_string());
        assert_eq!((stage.field("timeline.name"), stage.field("activity")), (phase, "compute"));
        assert_eq!(stage.field("error"), "");
    }
    assert!(watch.named("sample").is_empty(), "sampling is told at the level trace only");
}

#[tokio::test]
async fn sampling_and_tokens_are_told_at_the_level_trace() {
    let watch = Watch::up_to(LevelFilter::TRACE);
    let engine = plain().build().await.expect("an engine");
    let stream = engine.generate(request(3)).await.expect("a stream");
    assert_eq!(read(stream).await, 3);
    let (samples, chunks) = (watch.named("sample"), watch.named("chunk"));
    assert_eq!(samples.len(), 3);
    for ((_, sample), (chunk, _)) in samples.iter().zip(&chunks) {
        assert_eq!((sample.parent, sample.field("device")), (Some(*chunk), "cpu"));
        let [token] = &sample.events[..] else { panic!("{sample:?}") };
        assert_eq!((&token["milestone"][..], &token["value"][..]), ("token", "1"));
        assert_eq!(token["request"], watch.only("request").1.field("id"));
    }
}

#[tokio::test]
async fn a_chunk_of_several_requests_follows_from_each_of_them() {
    let watch = Watch::up_to(LevelFilter::DEBUG);
    let engine = slow().prefix_cache(false).build().await.expect("an engine");
    let first = engine.generate(request(60)).await.expect("a stream");
    let second = engine.generate(request(8)).await.expect("a stream");
    let (long, short) = tokio::join!(read(first), read(second));
    assert_eq!((long, short), (60, 8));
    let requests: Vec<usize> = watch.named("request").iter().map(|(number, _)| *number).collect();
    let chunks = watch.named("chunk");
    let shared = |follows: &[usize]| {
        let mut follows = follows.to_vec();
        follows.sort_unstable();
        follows == requests
    };
    let of_both: Vec<_> = chunks.iter().filter(|(_, chunk)| shared(&chunk.follows)).collect();
    assert!(!of_both.is_empty(), "{chunks:#?}");
    for (_, chunk) in &of_both {
        assert_eq!((chunk.parent, chunk.field("sequences")), (None, "2"));
    }
    let devices: Vec<_> = watch.named("stage").into_iter().map(|(_, stage)| stage).collect();
    let modelled = |stage: &&super::watch::Seen| stage.field("device").starts_with("gpu");
    assert!(devices.iter().any(|stage| modelled(&stage) && stage.number("predicted_us") > 0.0));
    // Nothing of an ended run stays open.
    let open = || watch.seen().into_iter().filter(|span| !span.is_closed).count();
    until("all spans are closed", || open() == 0).await;
    let rows = chunks.iter().map(|(_, chunk)| chunk.number("rows")).sum::<f64>();
    assert_eq!(rows, (2 * PROMPT.len() + 59 + 7) as f64);
}
