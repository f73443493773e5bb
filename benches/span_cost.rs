//! Cost of spans during decode. In one generation, the level of a subscriber changes every few tokens, so that adjacent
//! times are compared and slow changes of the machine cancel out: `off` asks for no span at all, at `info` there are none of chunks,
//! at `debug` there are those of chunks and stages, at `trace` also those of sampling, and an event for each token. The subscriber reads every
//! field, as an exporter does. Prints the decode speed at each level, from the median gap between two tokens. Fails if the
//! speed at `trace`, relative to that at `off`, is below [`RATIO_MIN`].
//!
//! ```text
//! cargo bench -p lapwing --bench span_cost -- FILE.gguf [TOKENS]
//! ```

use std::fmt::Debug;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use lapwing::{Engine, Prompt, Request};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Tokens between two changes of the level: odd, so that all levels have all places of a KV page.
const BLOCK: usize = 5;
/// Smallest accepted speed with all spans, relative to the speed without any.
const RATIO_MIN: f64 = 0.99;
/// The levels in turn.
const LEVELS: [LevelFilter; 4] =
    [LevelFilter::OFF, LevelFilter::INFO, LevelFilter::DEBUG, LevelFilter::TRACE];

static SPANS: AtomicU64 = AtomicU64::new(0);
static FIELDS: AtomicU64 = AtomicU64::new(0);

/// Reads and counts what is told.
struct Reader;

struct Fields;

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        black_box((field.name(), value));
        FIELDS.fetch_add(1, Ordering::Relaxed);
    }
}

impl<S: Subscriber> Layer<S> for Reader {
    fn on_new_span(&self, attributes: &Attributes<'_>, _id: &Id, _context: Context<'_, S>) {
        SPANS.fetch_add(1, Ordering::Relaxed);
        attributes.record(&mut Fields);
    }

    fn on_record(&self, _id: &Id, values: &Record<'_>, _context: Context<'_, S>) {
        values.record(&mut Fields);
    }

    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        event.record(&mut Fields);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("usage: cargo bench -p lapwing --bench span_cost -- FILE.gguf");
        return Ok(());
    };
    let tokens: usize = args.next().map_or(Ok(1024), |arg| arg.parse())?;
    let (filter, level) = reload::Layer::new(LevelFilter::INFO);
    tracing_subscriber::registry().with(filter).with(Reader).init();
    let engine = Engine::builder().model(model).context(tokens + 2).build().await?;
    let clock = engine.recorder().clock().clone();
    let bos = engine.tokenizer().bos().unwrap_or(0);
    let request = Request::new(Prompt::Ids(vec![bos])).greedy().ignore_eos().max_tokens(tokens);
    let mut stream = engine.generate(request).await?;
    let mut gaps = LEVELS.map(|_| Vec::new());
    let mut last = clock.now();
    let mut count = 0;
    while let Some(token) = stream.next().await {
        token?;
        let now = clock.now();
        // Skips the first gaps after a change, which have some of both, and the first blocks, which warm up.
        if count % BLOCK >= 2 && count > 2 * BLOCK {
            gaps[count / BLOCK % LEVELS.len()].push((now - last).as_nanos() as u64);
        }
        last = now;
        count += 1;
        if count % BLOCK == 0 {
            level.modify(|level| *level = LEVELS[count / BLOCK % LEVELS.len()])?;
        }
    }
    let medians = gaps.map(|mut gaps| {
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).copied().unwrap_or(1) as f64
    });
    for (level, median) in LEVELS.iter().zip(medians) {
        println!("{level}: {:.2} tok/s, of off {:.4}", 1e9 / median, medians[0] / median);
    }
    let (spans, fields) = (SPANS.load(Ordering::Relaxed), FIELDS.load(Ordering::Relaxed));
    println!("{spans} spans, {fields} fields");
    if spans < tokens as u64 / 2 {
        return Err("there were too few spans to measure".into());
    }
    if medians[0] / medians[3] < RATIO_MIN {
        return Err(format!("spans cost too much: trace/off is below {RATIO_MIN}").into());
    }
    Ok(())
}
