//! A hub on loopback: it answers `resolve` with a redirect to a storage path, as the real hub does
//! for large files, and can be made to misbehave.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The commit that the hub states.
pub(super) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The response to one request for content.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reply {
    /// Close the connection after this many bytes.
    CutAfter(usize),
    /// State no length, and send the content over and over.
    Endless,
    /// Send no more after this many bytes, and keep the connection.
    StallAfter(usize),
}

/// The content and behaviour of the hub.
#[derive(Debug)]
pub(super) struct State {
    pub(super) content: Vec<u8>,
    /// Other content of files whose paths end so.
    pub(super) others: Vec<(&'static str, Vec<u8>)>,
    pub(super) etag: String,
    /// Stated size of the content, if it is not the true one.
    pub(super) size: Option<usize>,
    pub(super) status: u16,
    pub(super) ranges_work: bool,
    /// Files of the repository, for its list.
    pub(super) files: Vec<&'static str>,
    /// Responses to the next requests for content, in order; further requests succeed.
    pub(super) script: Vec<Reply>,
    /// Bytes of the bodies of all responses.
    sent: usize,
    log: Vec<Request>,
}

#[derive(Debug, Clone)]
struct Request {
    method: String,
    path: String,
    start: Option<usize>,
    /// The last byte.
    end: Option<usize>,
}

impl State {
    /// The content of a file or path.
    fn content_of(&self, path: &str) -> &[u8] {
        let other = self.others.iter().find(|(end, _)| path.ends_with(end));
        other.map_or(&self.content, |(_, content)| content)
    }
}

pub(super) struct Hub {
    address: std::net::SocketAddr,
    state: Arc<Mutex<State>>,
    _server: JoinSet<()>,
}

impl Hub {
    /// A hub that has one file and states correct headers.
    pub(super) async fn start(content: &[u8]) -> Self {
        let state = Arc::new(Mutex::new(State {
            content: content.to_vec(),
            others: Vec::new(),
            etag: crate::models::testing::hash(content),
            size: None,
            status: 200,
            ranges_work: true,
            files: Vec::new(),
            script: Vec::new(),
            log: Vec::new(),
            sent: 0,
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = JoinSet::new();
        let shared = Arc::clone(&state);
        server.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                connections.spawn(async move { drop(serve(stream, &state).await) });
            }
        });
        Self { address, state, _server: server }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    pub(super) fn requests(&self) -> usize {
        self.state.lock().unwrap().log.len()
    }

    /// Bytes of content in all answers.
    pub(super) fn sent(&self) -> usize {
        self.state.lock().unwrap().sent
    }

    /// Paths of all requests for a body.
    pub(super) fn gets(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state
            .log
            .iter()
            .filter(|request| request.method == "GET")
            .map(|request| request.path.clone())
            .collect()
    }

    /// Start offset of each request for content.
    pub(super) fn ranges(&self) -> Vec<Option<usize>> {
        let state = self.state.lock().unwrap();
        let content = state
            .log
            .iter()
            .filter(|request| request.method == "GET" && request.path.starts_with("/cdn"));
        content.map(|request| request.start).collect()
    }
}

async fn serve(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await? {
        let (head, body, reply) = {
            let mut state = state.lock().unwrap();
            state.log.push(request.clone());
            answer(&mut state, &request)
        };
        if let Some(Reply::Endless) = reply {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nETag: \"cdn\"\r\nConnection: close\r\n\r\n")
                .await?;
            loop {
                stream.write_all(&body).await?;
            }
        }
        stream.write_all(head.as_bytes()).await?;
        let count = match reply {
            Some(Reply::CutAfter(count) | Reply::StallAfter(count)) => count.min(body.len()),
            Some(Reply::Endless) | None => body.len(),
        };
        stream.write_all(&body[..count]).await?;
        stream.flush().await?;
        match reply {
            Some(Reply::CutAfter(_)) => return stream.shutdown().await,
            Some(Reply::StallAfter(_)) => std::future::pending().await,
            Some(Reply::Endless) | None => {}
        }
    }
    Ok(())
}

async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut start, mut end) = (None, None);
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            return Ok(Some(Request { method, path, start, end }));
        }
        if let Some(range) = header.strip_prefix("range: bytes=") {
            let mut range = range.split('-').map(|number| number.parse().ok());
            (start, end) = (range.next().flatten(), range.next().flatten());
        }
    }
}

fn answer(state: &mut State, request: &Request) -> (String, Vec<u8>, Option<Reply>) {
    if state.status != 200 {
        return (
            format!("HTTP/1.1 {} No\r\nContent-Length: 0\r\n\r\n", state.status),
            Vec::new(),
            None,
        );
    }
    if request.path.starts_with("/api/models/") {
        let with_sizes = request.path.contains("blobs=true");
        let sibling = |file: &&str| match with_sizes {
            true => serde_json::json!({ "rfilename": file, "size": state.content_of(file).len() }),
            false => serde_json::json!({ "rfilename": file }),
        };
        let siblings: Vec<_> = state.files.iter().map(sibling).collect();
        let body = serde_json::json!({ "id": "owner/repo", "siblings": siblings }).to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        return (head, body.into_bytes(), None);
    }
    let content = state.content_of(&request.path).to_vec();
    let is_other = state.others.iter().any(|(end, _)| request.path.ends_with(end));
    let etag = if is_other { crate::models::testing::hash(&content) } else { state.etag.clone() };
    let total = content.len();
    if !request.path.starts_with("/cdn") {
        let file = request.path.rsplit('/').next().unwrap_or_default();
        let head = format!(
            "HTTP/1.1 302 Found\r\nLocation: /cdn/{file}\r\nX-Repo-Commit: {COMMIT}\r\nX-Linked-ETag: \"{}\"\r\n\
             X-Linked-Size: {}\r\nETag: \"pointer\"\r\nContent-Length: 0\r\n\r\n",
            etag,
            state.size.unwrap_or(total)
        );
        return (head, Vec::new(), None);
    }
    let start = request.start.filter(|_| state.ranges_work);
    let end = start.and(request.end).map_or(total, |last| total.min(last + 1));
    let body = content[start.unwrap_or(0).min(end)..end].to_vec();
    let status = if start.is_some() { "206 Partial Content" } else { "200 OK" };
    let head =
        format!("HTTP/1.1 {status}\r\nETag: \"cdn\"\r\nContent-Length: {}\r\n\r\n", body.len());
    match request.method.as_str() {
        "HEAD" => (head, Vec::new(), None),
        _ => {
            let reply = (!state.script.is_empty()).then(|| state.script.remove(0));
            state.sent += body.len();
            (head, body, reply)
        }
    }
}
