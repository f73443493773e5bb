//! A layer for `tracing` that sends ended spans to a collector, as OTLP in JSON.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Spans that wait to be sent; later ones are lost, and counted.
const WAITING_MAX: usize = 1 << 16;
/// Spans of one message to the collector.
const BATCH: usize = 512;

/// The layer.
pub(crate) struct Exporter {
    ended: mpsc::Sender<Value>,
    lost: Arc<AtomicU64>,
}

/// The task that sends spans.
pub(crate) struct Export {
    finish: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<u64, String>>,
    lost: Arc<AtomicU64>,
}

/// How many spans were sent, and how many were not.
pub(crate) struct Sent {
    pub(crate) spans: u64,
    pub(crate) lost: u64,
}

impl Exporter {
    /// Starts to send to `http://HOST:PORT`, on the present runtime.
    ///
    /// # Errors
    /// When the address has another form.
    #[expect(clippy::disallowed_methods, reason = "this program owns its runtime")]
    pub(crate) fn start(endpoint: &str) -> Result<(Exporter, Export), Box<dyn Error>> {
        let host = endpoint.strip_prefix("http://").map(|host| host.trim_end_matches('/'));
        let host = host.ok_or("the endpoint is not http://HOST:PORT")?.to_owned();
        let (ended, spans) = mpsc::channel(WAITING_MAX);
        let (finish, finished) = oneshot::channel();
        let lost = Arc::<AtomicU64>::default();
        let task = tokio::spawn(send(host, spans, finished));
        let exporter = Exporter { ended, lost: Arc::clone(&lost) };
        Ok((exporter, Export { finish, task, lost }))
    }
}

impl Export {
    /// Sends all spans that have ended.
    ///
    /// # Errors
    /// When the collector cannot be reached, or refuses them.
    pub(crate) async fn finish(self) -> Result<Sent, Box<dyn Error>> {
        drop(self.finish);
        let spans = self.task.await??;
        Ok(Sent { spans, lost: self.lost.load(Ordering::Relaxed) })
    }
}

async fn send(
    host: String,
    mut spans: mpsc::Receiver<Value>,
    mut finished: oneshot::Receiver<()>,
) -> Result<u64, String> {
    let (mut sent, mut is_over) = (0, false);
    while !is_over {
        let first = tokio::select! {
            span = spans.recv() => span,
            _ = &mut finished => None,
        };
        is_over = first.is_none();
        let mut batch: Vec<Value> = first.into_iter().collect();
        loop {
            while batch.len() < BATCH
                && let Ok(span) = spans.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                break;
            }
            sent += batch.len() as u64;
            post(&host, message(std::mem::take(&mut batch))).await?;
        }
    }
    Ok(sent)
}

/// The message that a collector takes at `/v1/traces`.
fn message(spans: Vec<Value>) -> String {
    let service = json!({ "key": "service.name", "value": { "stringValue": "lapwing" } });
    let scope = json!({ "scope": { "name": "tracing" }, "spans": spans });
    let resource = json!({ "resource": { "attributes": [service] }, "scopeSpans": [scope] });
    json!({ "resourceSpans": [resource] }).to_string()
}

async fn post(host: &str, body: String) -> Result<(), String> {
    let exchange = async {
        let mut stream = TcpStream::connect(host).await?;
        let head = format!(
            "POST /v1/traces HTTP/1.0\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = exchange.await.map_err(|error| format!("{host} cannot be reached: {error}"))?;
    match answer.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(format!("{host} does not take spans: {}", answer.lines().next().unwrap_or(""))),
    }
}

/// What is kept of a span until it ends.
struct Open {
    trace_id: String,
    span_id: String,
    parent_id: String,
    start: String,
    fields: Fields,
    events: Vec<Value>,
    links: Vec<Value>,
}

/// Fields, as OTLP's values.
#[derive(Default)]
struct Fields(BTreeMap<&'static str, Value>);

impl Fields {
    /// The attributes of a span or an event.
    fn attributes(&self) -> Vec<Value> {
        self.0.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.get("stringValue")?.as_str()
    }

    /// An id of so many digits that is not zero.
    fn id(&self, name: &str, digits: usize) -> Option<String> {
        let id = self.text(name)?;
        let is_valid = id.len() == digits && u128::from_str_radix(id, 16).is_ok_and(|id| id > 0);
        is_valid.then(|| id.to_owned())
    }
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name(), json!({ "intValue": value.to_string() }));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), json!({ "intValue": value.to_string() }));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name(), json!({ "doubleValue": value }));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name(), json!({ "boolValue": value }));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text = json!({ "stringValue": value });
        // The conventions have a list here, which `tracing` has not.
        let value = match field.name() {
            "gen_ai.response.finish_reasons" => json!({ "arrayValue": { "values": [text] } }),
            _ => text,
        };
        self.0.insert(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// A random id of a span: 16 digits.
fn new_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}", RandomState::new().hash_one(count).max(1))
}

/// The present time in ns since 1970, as OTLP's JSON has it.
#[expect(clippy::disallowed_methods, reason = "OTLP has times of the calendar")]
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos()).to_string()
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Exporter {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            let open = extensions.get::<Open>()?;
            Some((open.trace_id.clone(), open.span_id.clone()))
        });
        // A span without a parent may have one in another process.
        let remote = || Some((fields.id("trace_id", 32)?, fields.id("parent_id", 16)?));
        let new = || (new_id() + &new_id(), String::new());
        let (trace_id, parent_id) = parent.or_else(remote).unwrap_or_else(new);
        let (span_id, start) = (new_id(), now());
        let (events, links) = (Vec::new(), Vec::new());
        let open = Open { trace_id, span_id, parent_id, start, fields, events, links };
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            values.record(&mut open.fields);
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        let (Some(span), Some(before)) = (context.span(id), context.span(follows)) else { return };
        let link = |open: &Open| json!({ "traceId": open.trace_id, "spanId": open.span_id });
        let link = before.extensions().get::<Open>().map(link);
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            open.links.extend(link);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut fields = Fields::default();
        event.record(&mut fields);
        let name = fields.text("message").unwrap_or(event.metadata().name()).to_owned();
        fields.0.remove("message");
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            let attributes = fields.attributes();
            let event = json!({ "timeUnixNano": now(), "name": name, "attributes": attributes });
            open.events.push(event);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<Open>() else { return };
        let Open { trace_id, span_id, parent_id, start, fields, events, links } = open;
        let status = match fields.text("otel.status_code") {
            Some("ERROR") => {
                json!({ "code": 2, "message": fields.text("otel.status_description") })
            }
            _ => json!({}),
        };
        let ended = json!({
            "traceId": trace_id,
            "spanId": span_id,
            "parentSpanId": parent_id,
            "name": fields.text("otel.name").unwrap_or(span.metadata().name()),
            "kind": if fields.text("otel.kind") == Some("server") { 2 } else { 1 },
            "startTimeUnixNano": start,
            "endTimeUnixNano": now(),
            "attributes": fields.attributes(),
            "events": events,
            "links": links,
            "status": status,
        });
        if self.ended.try_send(ended).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
