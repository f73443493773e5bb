//! Where no subscriber asks for spans, and in virtual time, there are none.

use lapwing::simulate::Scenario;
use lapwing::traces::Scope;
use tracing::info_span;
use tracing_subscriber::filter::LevelFilter;

use super::watch::Watch;
use super::{plain, read, request};

#[tokio::test]
async fn nothing_is_made_while_the_filter_is_off() {
    let watch = Watch::up_to(LevelFilter::OFF);
    let engine = plain().build().await.expect("an engine");
    let stream = engine.generate(request(3)).await.expect("a stream");
    assert_eq!(read(stream).await, 3);
    assert!(watch.seen().is_empty(), "{:#?}", watch.seen());
    drop(watch);
    let watch = Watch::up_to(LevelFilter::WARN);
    let stream = engine.generate(request(3)).await.expect("a stream");
    assert_eq!(read(stream).await, 3);
    assert!(watch.seen().is_empty(), "{:#?}", watch.seen());
}

#[test]
fn a_run_in_virtual_time_has_no_spans() {
    let watch = Watch::up_to(LevelFilter::TRACE);
    watch.recorder().set_scope(Scope::All);
    let caller = info_span!("caller").entered();
    let run = Scenario::new("sd8gen3").expect("a phone").run().expect("a run");
    drop(caller);
    assert!(run.prefill_ms > 0.0);
    let names: Vec<_> = watch.seen().iter().map(|span| span.name).collect();
    assert_eq!(names, ["caller"]);
    let events = watch.only("caller").1.events;
    assert!(events.iter().all(|event| !event.contains_key("milestone")), "{events:?}");
}
