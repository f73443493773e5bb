//! Example: a timeline of any tokio program, from its existing `tracing` spans. This program counts
//! the words of generated pages; it is unrelated to language models.
//!
//! ```text
//!            pages              counts
//!  reader ──────────► counter ──────────► merger       each stage is a task and a lane;
//!           └───────► counter ────┘                    each channel holds up to 4 items
//! ```
//!
//! It writes `target/trace_any_tokio_app.lwt`, loads it, prints a summary, and writes the page
//! `target/trace_any_tokio_app.html`.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use lapwing_traces::html::{PageRun, page};
use lapwing_traces::layer::TimelineLayer;
use lapwing_traces::{
    Analysis, OsClock, Recorder, RecorderConfig, Recording, Report, Scope, Timeline,
};
use tokio::sync::{Mutex, mpsc};
use tracing::{Span, info, info_span};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const PAGES: usize = 60;
const WORDS_PER_PAGE: usize = 4000;
const FILE: &str = "target/trace_any_tokio_app.lwt";
const PAGE: &str = "target/trace_any_tokio_app.html";

fn main() -> Result<(), Box<dyn Error>> {
    // ── Lines that add the timeline ─────────────────────────────────────────────────────────
    let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
    recorder.set_scope(Scope::All);
    // Leaves out the spans and events of libraries.
    let own = Targets::new().with_target(module_path!(), LevelFilter::TRACE);
    let timeline = TimelineLayer::new(recorder.clone()).with_filter(own);
    tracing_subscriber::registry().with(timeline).init();

    let words = tokio::runtime::Runtime::new()?.block_on(count_words())?;

    std::fs::create_dir_all("target")?;
    recorder.recording().save(FILE)?;
    // ────────────────────────────────────────────────────────────────────────────────────────

    assert_eq!(words, PAGES * WORDS_PER_PAGE);
    show(&Recording::load(FILE)?)
}

/// A page in transit, with the span of the stage that receives it.
struct Page {
    text: String,
    span: Span,
}

/// The word counts of a page in transit, with the span of the stage that receives them.
struct Counted {
    words: HashMap<String, usize>,
    span: Span,
}

#[expect(clippy::disallowed_methods, reason = "this program owns its runtime")]
async fn count_words() -> Result<usize, Box<dyn Error>> {
    let (pages_in, pages_out) = mpsc::channel::<Page>(4);
    let (counts_in, counts_out) = mpsc::channel::<Counted>(4);
    let pages_out = Arc::new(Mutex::new(pages_out));
    for name in ["counter 1", "counter 2"] {
        tokio::spawn(count(name, Arc::clone(&pages_out), counts_in.clone()));
    }
    drop(counts_in);
    let merger = tokio::spawn(merge(counts_out));
    for number in 0..PAGES {
        // Creating the span of the next stage inside this span records a message between them.
        let page = info_span!("read", lane = "reader", chunk = number).in_scope(|| {
            let text = generate_page(number);
            let span = info_span!(
                "count",
                lane = tracing::field::Empty,
                chunk = number,
                bytes = text.len()
            );
            Page { text, span }
        });
        pages_in.send(page).await?;
    }
    drop(pages_in);
    Ok(merger.await?)
}

async fn count(name: &str, pages: Arc<Mutex<mpsc::Receiver<Page>>>, out: mpsc::Sender<Counted>) {
    loop {
        let page = pages.lock().await.recv().await;
        let Some(Page { text, span }) = page else { return };
        span.record("lane", name);
        let counted = span.in_scope(|| {
            let mut words = HashMap::new();
            for word in text.split_whitespace() {
                *words.entry(word.to_lowercase()).or_default() += 1;
            }
            Counted { words, span: info_span!("merge", lane = "merger") }
        });
        if out.send(counted).await.is_err() {
            return;
        }
    }
}

async fn merge(mut counts: mpsc::Receiver<Counted>) -> usize {
    let mut all: HashMap<String, usize> = HashMap::new();
    while let Some(Counted { words, span }) = counts.recv().await {
        span.in_scope(|| {
            for (word, count) in words {
                *all.entry(word).or_default() += count;
            }
            info!(counter.words = all.len());
        });
    }
    all.into_values().sum()
}

/// Generates the text of a page; the same page always has the same text.
fn generate_page(page: usize) -> String {
    let mut state = page as u64 + 1;
    let mut word = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("Word{} ", (state >> 33) % 1000)
    };
    (0..WORDS_PER_PAGE).map(|_| word()).collect()
}

fn show(recording: &Recording) -> Result<(), Box<dyn Error>> {
    let timeline = Timeline::new(recording);
    let analysis = Analysis::new(&timeline);
    println!(
        "{FILE}: {} events, {:.1} ms",
        recording.events.len(),
        timeline.makespan() as f64 / 1e6
    );
    for (index, lane) in timeline.lanes.iter().enumerate() {
        let spans: Vec<_> = timeline.spans.iter().filter(|span| span.lane == index).collect();
        let busy: u64 = spans.iter().map(|span| span.duration()).sum();
        println!("{:<10} {:3} spans, busy {:6.1} ms", lane.name, spans.len(), busy as f64 / 1e6);
    }
    let overlap = analysis.overlap.ratio().expect("something ran");
    println!("overlap    {:.0} % of the busy time overlapped with other work", overlap * 100.0);
    println!("messages between lanes: {}", timeline.messages.len());
    let words = timeline.counters[0].values.last().expect("a counter").1;
    println!("distinct words: {words}");

    for stage in ["read", "count", "merge"] {
        let spans = timeline.spans.iter().filter(|span| span.name == stage).count();
        assert_eq!(spans, PAGES, "every page passes through {stage} once");
    }
    let mut lanes: Vec<&str> = timeline.lanes.iter().map(|lane| &lane.name[..]).collect();
    lanes.retain(|lane| *lane != "counter 1" && *lane != "counter 2");
    lanes.sort_unstable();
    assert_eq!(lanes, ["merger", "reader"]);
    assert!(timeline.spans.iter().all(|span| span.finished));
    // The reader runs on the main thread, the counters on others.
    assert!(timeline.messages.len() >= PAGES);
    assert!(timeline.messages.iter().all(|message| message.from.is_some() && message.to.is_some()));
    assert!((0.0..1.0).contains(&overlap));
    assert_eq!((words, recording.dropped, timeline.orphans), (1000, 0, 0));

    let report = Report::new(&timeline, &analysis);
    let title = "words of generated pages";
    let run = PageRun { title, timeline: &timeline, analysis: &analysis, report: &report };
    std::fs::write(PAGE, page(&[run])?)?;
    println!("open {PAGE} in a browser");
    Ok(())
}
