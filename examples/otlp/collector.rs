//! A stand-in of an OpenTelemetry collector: takes spans in JSON at `/v1/traces`, and keeps them.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The stand-in, which runs until its runtime ends.
pub(crate) struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Exported>>>,
}

/// A span that was received.
#[derive(Clone, Debug)]
pub(crate) struct Exported {
    pub(crate) name: String,
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    /// Empty for the first span of a trace.
    pub(crate) parent_id: String,
    /// Milliseconds.
    pub(crate) ms: f64,
    /// Ids of the spans that it is linked to.
    pub(crate) links: Vec<String>,
    attributes: Value,
}

impl Exported {
    fn of(span: &Value) -> Exported {
        let text = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
        let nanos = |key: &str| span[key].as_str().and_then(|ns| ns.parse::<u64>().ok());
        let (start, end) = (nanos("startTimeUnixNano"), nanos("endTimeUnixNano"));
        let ns = end.unwrap_or_default().saturating_sub(start.unwrap_or_default());
        let links = span["links"].as_array().into_iter().flatten();
        Exported {
            name: text("name"),
            trace_id: text("traceId"),
            span_id: text("spanId"),
            parent_id: text("parentSpanId"),
            ms: ns as f64 / 1e6,
            links: links.filter_map(|link| Some(link["spanId"].as_str()?.to_owned())).collect(),
            attributes: span["attributes"].clone(),
        }
    }

    /// The value of an attribute, as text.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let all = self.attributes.as_array()?.iter();
        let value = &all.into_iter().find(|attribute| attribute["key"] == name)?["value"];
        let value = value.as_object()?.values().next()?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }
}

impl Collector {
    /// Listens at a free port.
    ///
    /// # Errors
    /// When the system has none.
    #[expect(clippy::disallowed_methods, reason = "this program owns its runtime")]
    pub(crate) async fn start() -> io::Result<Collector> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let spans = Arc::<Mutex<Vec<Exported>>>::default();
        let received = Arc::clone(&spans);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A message that is not understood has an answer that says so.
                let _ = answer(stream, &received).await;
            }
        });
        Ok(Collector { address, spans })
    }

    /// Its address, as an exporter takes it.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans so far.
    pub(crate) fn spans(&self) -> Vec<Exported> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads a message and answers it.
async fn answer(mut stream: TcpStream, spans: &Mutex<Vec<Exported>>) -> io::Result<()> {
    let (mut bytes, mut part) = (Vec::new(), [0; 1 << 14]);
    let body = loop {
        if let Some(body) = body_of(&bytes) {
            break body;
        }
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            read => bytes.extend_from_slice(&part[..read]),
        }
    };
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let is_ours = bytes.starts_with(b"POST /v1/traces ") && message["resourceSpans"].is_array();
    let status = if is_ours { "200 OK" } else { "400 Bad Request" };
    let received = message["resourceSpans"].as_array().into_iter().flatten();
    let received = received.flat_map(|of| of["scopeSpans"].as_array().into_iter().flatten());
    let received = received.flat_map(|of| of["spans"].as_array().into_iter().flatten());
    spans.lock().unwrap_or_else(PoisonError::into_inner).extend(received.map(Exported::of));
    let answer = format!("HTTP/1.0 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
    stream.write_all(answer.as_bytes()).await
}

/// The body of a message that has arrived as a whole.
fn body_of(bytes: &[u8]) -> Option<&[u8]> {
    let at = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let head = str::from_utf8(&bytes[..at]).ok()?.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    bytes.get(at..at + length.trim().parse::<usize>().ok()?)
}
