//! An HTTP client that can leave at any moment.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends requests to one server, each over a connection of its own.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    headers: String,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Client {
        Client { address, headers: String::new() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// As this one, with a header more.
    pub(crate) fn with(&self, header: &str) -> Client {
        Client { headers: format!("{}{header}\r\n", self.headers), ..self.clone() }
    }

    /// Sends a request; the response is to be read from the connection. HTTP/1.0, so that it ends with the
    /// connection.
    pub(crate) async fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-length: {length}\r\n{}\r\n",
            self.headers
        );
        stream.write_all(head.as_bytes()).await.expect("headers are sent");
        // The server may refuse a body before it is sent.
        let _ = stream.write_all(body.as_bytes()).await;
        stream
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        read(self.send("GET", path, "").await).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        read(self.send("POST", path, &body.to_string()).await).await
    }
}

/// Reads a response to its end.
pub(crate) async fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A connection that the server closes before the body was sent ends with an error after the response.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).expect("UTF-8");
    let (headers, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, headers: headers.to_lowercase(), body: body.to_owned() }
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The objects of a stream of events, or of lines.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        lines
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}
