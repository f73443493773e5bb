//! Example: record one request and see where its time went.
//!
//! ```text
//!  Request ─► Engine ── events ──► Recorder ─► Recording ─► Timeline ─► Analysis ─► Report
//!               │                     ▲ (rings, off by     lanes and    idle causes,   plain
//!               ▼                     │  default)          spans        critical path  numbers
//!             tokens ─► this program ─┘                       └───────────────┬──────────┘
//!                       (its own spans)                       text::text ◄────┴───► html::page
//! ```

use std::sync::Arc;

use lapwing::models::{FetchEvent, ModelCache, ModelName, fetch};
use lapwing::traces::html::{PageRun, page};
use lapwing::traces::text::{TextOptions, text};
use lapwing::traces::{Analysis, OsClock, Recorder, RecorderConfig, Report, Scope, Timeline};
use lapwing::{Engine, Request, Shutdown};
use lapwing_traces::layer::TimelineLayer;
use tracing::info_span;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = ModelName::default_model();
    let model = fetch(&ModelCache::open(None)?, &name, &mut |_: FetchEvent| {}).await?;
    // The engine and this program's spans share a recorder, so that they are on the same timeline.
    let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
    // What the engine tells subscribers is recorded by itself.
    let own = Targets::new().with_target(module_path!(), LevelFilter::TRACE);
    let timeline = TimelineLayer::new(recorder.clone()).with_filter(own);
    tracing_subscriber::registry().with(timeline).init();
    let engine = Engine::builder().model(model).recorder(recorder.clone()).build().await?;

    // Only marked requests and spans are recorded. This request is not marked.
    recorder.set_scope(Scope::Marked);
    engine.generate(Request::ask("Hello!").greedy().max_tokens(4)).await?.into_text().await?;
    let request = Request::ask("What is gravity?").greedy().max_tokens(24).traced();
    let answer = engine.generate(request).await?.into_text().await?;
    info_span!("print the answer", marked = true).in_scope(|| println!("{answer}\n"));
    // The actors record their last events before they end.
    engine.shutdown(Shutdown::Drain).await?;

    let timeline = Timeline::new(&recorder.recording());
    let analysis = Analysis::new(&timeline);
    let report = Report::new(&timeline, &analysis);
    println!("{}", text(&timeline, &analysis, &report, &TextOptions::default()));
    assert_eq!((report.requests.count, report.requests.finished), (1, 1));
    assert!(report.requests.generated_tokens <= 24);
    let cpu = report.lanes.iter().find(|lane| lane.name == "cpu").ok_or("the CPU has no lane")?;
    assert!(cpu.utilization > 0.5, "the CPU was idle for {} ns: {:?}", cpu.idle_ns, cpu.idle);

    assert!(timeline.spans.iter().any(|span| span.name == "print the answer"));

    let run =
        PageRun { title: "one answer", timeline: &timeline, analysis: &analysis, report: &report };
    std::fs::create_dir_all("target")?;
    std::fs::write("target/timeline.html", page(&[run])?)?;
    println!("\nthe same timeline as a page: target/timeline.html");
    Ok(())
}
