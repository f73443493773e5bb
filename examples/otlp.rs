//! Example: the spans of a run, sent to an OpenTelemetry collector, in the trace of a caller.
//!
//! ```text
//!  this program ──► request ──► chunk ──► stage        tracing: each span below the one before it
//!       │              │          │         │
//!       └──────────────┴──────────┴─────────┘
//!                      ▼
//!           tracing-opentelemetry ── OTLP/JSON ──► collector (Jaeger, Tempo, …)
//! ```
//!
//! `OTEL_EXPORTER_OTLP_ENDPOINT` is the collector's address, such as `http://localhost:4318`. Without it, a stand-in in this
//! program receives the spans, which are then printed. A server gets the caller's trace from each request
//! (`ServerBuilder::on_trace_parent`); `examples/tests/otlp.rs` has one.

#[path = "otlp/collector.rs"]
mod collector;
#[path = "otlp/exporter.rs"]
mod exporter;

use std::error::Error;

use collector::{Collector, Exported};
use exporter::{place, provider};
use lapwing::{Engine, Request};
use opentelemetry::trace::TracerProvider;
use tracing::{Instrument, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let stand_in = Collector::start().await?;
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT");
    let is_stand_in = endpoint.is_err();
    let endpoint = endpoint.unwrap_or_else(|_| stand_in.endpoint());

    // ── Lines that add the export ───────────────────────────────────────────────────────────
    let provider = provider(&endpoint)?;
    // Requests are spans at the level info, chunks and stages at debug.
    let spans = Targets::new()
        .with_target("lapwing", LevelFilter::DEBUG)
        .with_target(module_path!(), LevelFilter::INFO);
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("lapwing"));
    tracing_subscriber::registry().with(layer.with_filter(spans)).init();
    // ────────────────────────────────────────────────────────────────────────────────────────

    let engine = Engine::builder().model_named("smollm2").build().await?;
    let caller = info_span!("ask");
    // As a client's header names it; without it, a new trace begins here.
    caller.set_parent(place("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))?;
    let request = Request::ask("What is gravity?").greedy().max_tokens(8);
    let answer = async { engine.generate(request).await?.into_text().await };
    println!("{}\n", answer.instrument(caller).await?);

    // Sends what is left, on another thread: the stand-in runs on this one.
    tokio::task::spawn_blocking(move || provider.shutdown()).await??;
    let spans = stand_in.spans();
    println!("the spans were sent to {endpoint}");
    if let Some(first) = spans.first() {
        println!("trace {}:", first.trace_id);
    }
    print(&spans, "00f067aa0ba902b7", 0);
    assert_eq!(is_stand_in, spans.iter().any(|span| span.name == "stage"));
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
