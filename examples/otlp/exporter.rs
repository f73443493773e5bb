//! OpenTelemetry's exporter, set up to send OTLP in JSON over plain HTTP, as collectors take it at port 4318.

use std::collections::HashMap;
use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

use async_trait::async_trait;
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;

/// Sends spans to the collector at `http://HOST:PORT`, on a thread of its own; the rest of them at its shutdown.
///
/// # Errors
/// When that is no address.
pub(crate) fn provider(endpoint: &str) -> Result<SdkTracerProvider, Box<dyn Error>> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpJson)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_http_client(PlainHttp)
        .build()?;
    let resource = Resource::builder().with_service_name("lapwing").build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// The place in a trace that the header `traceparent` names.
pub(crate) fn place(traceparent: &str) -> Context {
    let carrier = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
    TraceContextPropagator::new().extract(&carrier)
}

/// A client without TLS. A program with the crate `reqwest` takes the exporter's feature for it.
#[derive(Debug)]
struct PlainHttp;

#[async_trait]
impl HttpClient for PlainHttp {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (uri, body) = (request.uri(), request.body());
        if uri.scheme_str() != Some("http") {
            return Err(format!("{uri} is not an address of plain HTTP").into());
        }
        let host = uri.authority().ok_or("the address has no host")?;
        let mut head = format!("POST {} HTTP/1.0\r\nhost: {host}\r\n", uri.path()).into_bytes();
        for (name, value) in request.headers() {
            write!(head, "{name}: ")?;
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        write!(head, "content-length: {}\r\n\r\n", body.len())?;
        let mut stream = TcpStream::connect(host.as_str())?;
        stream.write_all(&head)?;
        stream.write_all(body)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer has no end")?;
        let status: u16 = head.split(' ').nth(1).ok_or("the answer has no status")?.parse()?;
        let mut response = Response::new(Bytes::from(body.to_owned()));
        *response.status_mut() = status.try_into()?;
        Ok(response)
    }
}
