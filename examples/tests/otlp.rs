//! A collector gets the spans of a run with their parents and links, in the trace of the caller.

#[path = "../otlp/collector.rs"]
mod collector;
#[path = "../otlp/exporter.rs"]
mod exporter;

use std::path::Path;
use std::time::Duration;

use collector::{Collector, Exported};
use exporter::{place, provider};
use lapwing::serve::{ServeConfig, Server};
use lapwing::{Engine, EngineBuilder, Prompt, Request};
use opentelemetry::trace::TracerProvider;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tracing::{Instrument, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn tiny() -> EngineBuilder {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
    Engine::builder().model(folder.join("llama.gguf")).threads(1)
}

/// The spans of a name, all in one trace.
fn named<'a>(spans: &'a [Exported], name: &str, trace: &str) -> Vec<&'a Exported> {
    let of_trace = |span: &&Exported| span.name == name && span.trace_id == trace;
    spans.iter().filter(of_trace).collect()
}

/// Checks the spans of a request for three tokens: a chunk for the prompt, and one for each token but the last.
fn check(spans: &[Exported], parent: &Exported) {
    let requests = named(spans, "request", &parent.trace_id);
    let [request] = requests[..] else { panic!("{spans:#?}") };
    assert_eq!(request.parent_id, parent.span_id);
    let said = |name: &str| request.attribute(name).unwrap_or_default();
    assert_eq!(said("gen_ai.usage.output_tokens"), "3");
    assert!(said("gen_ai.response.finish_reasons").contains("length"));
    assert!(said("gen_ai.response.time_to_first_chunk").parse::<f64>().is_ok_and(|s| s > 0.0));
    let (chunks, stages) =
        (named(spans, "chunk", &parent.trace_id), named(spans, "stage", &parent.trace_id));
    assert_eq!((chunks.len(), stages.len()), (3, 3), "{spans:#?}");
    for (chunk, stage) in chunks.iter().zip(&stages) {
        assert_eq!(chunk.parent_id, request.span_id);
        assert_eq!(chunk.links, [request.span_id.as_str()]);
        assert_eq!(stage.attribute("device").as_deref(), Some("cpu"));
        assert!(chunks.iter().any(|chunk| chunk.span_id == stage.parent_id), "{stage:?}");
        assert!(stage.ms <= request.ms);
    }
}

/// Asks a server as a client with a trace of its own.
async fn ask(trace: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut config = ServeConfig::default();
    config.listen = "127.0.0.1:0".to_owned();
    let server = Server::builder().model("tiny", tiny()).config(config);
    let server = server.on_trace_parent(|span, parent| {
        span.set_parent(place(&parent.to_string())).expect("a span that has not begun");
    });
    let server = server.bind().await?;
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let client = async {
        let body = r#"{"prompt": "a b", "max_tokens": 3, "ignore_eos": true}"#;
        let head = format!(
            "POST /v1/completions HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             traceparent: 00-{trace}-{SPAN}-01\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(head.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        drop(stop);
        std::io::Result::Ok(answer)
    };
    let (answer, served) = tokio::join!(client, server.run(async { drop(stopped.await) }));
    served?;
    Ok(answer?)
}

#[tokio::test]
async fn a_collector_gets_request_chunk_and_stage_in_the_callers_trace() {
    let collector = Collector::start().await.expect("a port");
    let provider = provider(&collector.endpoint()).expect("an endpoint");
    let spans = Targets::new()
        .with_target("lapwing", LevelFilter::DEBUG)
        .with_target(module_path!(), LevelFilter::INFO);
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("lapwing"));
    tracing_subscriber::registry().with(layer.with_filter(spans)).init();

    let engine = tiny().build().await.expect("an engine");
    let request = Request::new(Prompt::Ids(vec![1, 5, 9, 4])).ignore_eos().max_tokens(3);
    let text = async { engine.generate(request).await?.into_text().await };
    let caller = info_span!("caller");
    caller.set_parent(place(&format!("00-{TRACE}-{SPAN}-01"))).expect("a span that has not begun");
    text.instrument(caller).await.expect("a text");
    let other = "0123456789abcdef0123456789abcdef";
    let answer = ask(other).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{answer}");
    // A minute is long on a busy machine, too.
    let end = move || provider.shutdown_with_timeout(Duration::from_secs(60));
    let sent = tokio::task::spawn_blocking(end).await;
    sent.expect("no panic").expect("a collector that takes them");

    let spans = collector.spans();
    for (name, trace) in [("caller", TRACE), ("POST /v1/completions", other)] {
        let roots = named(&spans, name, trace);
        let [root] = roots[..] else { panic!("{name}: {spans:#?}") };
        assert_eq!(root.parent_id, SPAN, "{name}");
        check(&spans, root);
    }
}
