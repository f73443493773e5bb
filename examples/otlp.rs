//! Example: the spans of a run, sent to an OpenTelemetry collector.
//!
//! ```text
//!  this program ──► request ──► chunk ──► stage        tracing: each span below the one before it
//!       │              │          │         │
//!       └──────────────┴──────────┴─────────┘
//!                      ▼
//!                  Exporter ── OTLP/JSON over HTTP ──► collector (Jaeger, Tempo, …)
//! ```
//!
//! `OTEL_EXPORTER_OTLP_ENDPOINT` is the collector's address, such as `http://localhost:4318`. Without it, a stand-in in this
//! program receives the spans, which are then printed. The exporter is as small as a lesson may be. A program that needs
//! batches with retries, sampling or TLS takes the crate `tracing-opentelemetry` in its place, with which the same spans
//! arrive (docs/timeline.md).

#[path = "otlp/collector.rs"]
mod collector;
#[path = "otlp/exporter.rs"]
mod exporter;

use std::error::Error;

use collector::{Collector, Exported};
use exporter::Exporter;
use lapwing::{Engine, Request};
use tracing::{Instrument, info_span};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let stand_in = Collector::start().await?;
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT");
    let endpoint = endpoint.unwrap_or_else(|_| stand_in.endpoint());

    // ── Lines that add the export ───────────────────────────────────────────────────────────
    let (exporter, export) = Exporter::start(&endpoint)?;
    // Requests are spans at the level info, chunks and stages at debug.
    let ours = Targets::new()
        .with_target("lapwing", LevelFilter::DEBUG)
        .with_target(module_path!(), LevelFilter::INFO);
    tracing_subscriber::registry().with(exporter.with_filter(ours)).init();
    // ────────────────────────────────────────────────────────────────────────────────────────

    let engine = Engine::builder().model_named("smollm2").build().await?;
    // The ids of a caller's trace, as they come in a `traceparent`; without them, a new trace begins here.
    let caller = info_span!(
        "ask",
        trace_id = "4bf92f3577b34da6a3ce929d0e0e4736",
        parent_id = "00f067aa0ba902b7"
    );
    let request = Request::ask("What is gravity?").greedy().max_tokens(8);
    let answer = async { engine.generate(request).await?.into_text().await };
    println!("{}\n", answer.instrument(caller).await?);

    let sent = export.finish().await?;
    println!("{} spans sent to {endpoint}, {} lost", sent.spans, sent.lost);
    assert!(sent.spans > 0 && sent.lost == 0);
    let spans = stand_in.spans();
    if let Some(first) = spans.first() {
        println!("trace {}:", first.trace_id);
    }
    print(&spans, "00f067aa0ba902b7", 0);
    Ok(())
}

/// Prints the spans below a parent as a tree.
fn print(spans: &[Exported], parent: &str, depth: usize) {
    for span in spans.iter().filter(|span| span.parent_id == parent) {
        let details: Vec<String> = ["gen_ai.usage.output_tokens", "phase", "rows", "device"]
            .iter()
            .filter_map(|name| Some(format!("{name}={}", span.attribute(name)?)))
            .collect();
        let (indent, links) = ("  ".repeat(depth), span.links.len());
        println!("{indent}{} {:.2} ms {} ({links} links)", span.name, span.ms, details.join(" "));
        print(spans, &span.span_id, depth + 1);
    }
}
