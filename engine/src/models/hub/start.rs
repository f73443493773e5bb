//! The first bytes of a file of the hub: its header, without the weights.

use lapwing_kernels::weights::{Gguf, HeaderStart, parse_start};
use reqwest::header::RANGE;
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};

use super::client::HubClient;
use super::headers::{self, Headers};
use super::{ATTEMPTS, Broken, HubSource, with_causes};
use crate::models::blocking;
use crate::models::error::FetchError;

/// Largest accepted header; a vocabulary of 260 000 tokens takes 16 MB.
pub(super) const HEADER_BYTES_MAX: u64 = 64 << 20;
/// Bytes of the first request. Each later one asks for so many behind what is known to be needed, or for half of what is there.
const FIRST_BYTES: u64 = 1 << 20;

/// What precedes the weights in a file of the hub.
#[derive(Debug)]
pub(in crate::models) struct RemoteHeader {
    pub(in crate::models) gguf: Gguf,
    /// Bytes of the whole file.
    pub(in crate::models) bytes: u64,
}

impl HubSource {
    /// Reads metadata and tensor table of the file, by requests for ranges of its first bytes. Nothing is stored.
    ///
    /// # Errors
    /// [`FetchError`] when the hub does not answer, has no such file or denies access, or when the header is invalid or larger
    /// than 64 MiB.
    pub(in crate::models) async fn header(&self) -> Result<RemoteHeader, FetchError> {
        let endpoint = self.endpoint.as_deref();
        let headers = headers::request(&self.file, endpoint).await?;
        let client = HubClient::new(self.file.to_string(), endpoint, Policy::default())?;
        let total = headers.bytes;
        let most = total.min(HEADER_BYTES_MAX);
        let mut start = Start { client: &client, headers: &headers, bytes: Vec::new() };
        let mut wanted = FIRST_BYTES.min(most);
        loop {
            self.read_to(wanted, &mut start).await?;
            let bytes = std::mem::take(&mut start.bytes);
            let parsed = blocking::run(move |_| {
                let parsed = parse_start(&bytes, total);
                Ok((bytes, parsed))
            });
            let (bytes, parsed) = parsed.await?;
            let bad = |error| FetchError::BadHeader {
                file: self.file.to_string(),
                source: Box::new(error),
            };
            match parsed.map_err(bad)? {
                HeaderStart::Whole(gguf) => return Ok(RemoteHeader { gguf, bytes: total }),
                HeaderStart::Needs(needed) if needed > most || wanted == most => {
                    let (file, limit) = (self.file.to_string(), HEADER_BYTES_MAX);
                    return Err(FetchError::HeaderTooLarge { file, limit });
                }
                HeaderStart::Needs(needed) => {
                    wanted = (needed + FIRST_BYTES).max(wanted + wanted / 2).min(most);
                }
            }
            start.bytes = bytes;
        }
    }

    /// Reads on until `wanted` bytes of the file are there; retries as long as the connection fails.
    async fn read_to(&self, wanted: u64, start: &mut Start<'_>) -> Result<(), FetchError> {
        let mut failures = 0;
        while (start.bytes.len() as u64) < wanted {
            let detail = match self.read_once(wanted, start).await {
                Ok(()) => return Ok(()),
                Err(Broken::Final(error)) => return Err(error),
                Err(Broken::Connection(error)) => with_causes(&error),
                Err(Broken::Busy(status)) => status.to_string(),
                Err(Broken::Short | Broken::RangeIgnored) => {
                    "the server sent less than it announced".to_owned()
                }
            };
            failures += 1;
            if failures >= ATTEMPTS {
                let (name, bytes) = (self.file.to_string(), start.bytes.len() as u64);
                return Err(FetchError::Interrupted { name, bytes, detail });
            }
            tokio::time::sleep(self.backoff * 2u32.pow(failures - 1)).await;
        }
        Ok(())
    }

    async fn read_once(&self, wanted: u64, start: &mut Start<'_>) -> Result<(), Broken> {
        let Start { client, headers, bytes } = start;
        let url = client.address(headers::path(&self.file, &headers.commit));
        let range = format!("bytes={}-{}", bytes.len(), wanted - 1);
        let request = client.request(Method::GET, url.map_err(Broken::Final)?).header(RANGE, range);
        let mut response = request.send().await.map_err(Broken::Connection)?;
        if let Some(error) = client.refusal(&response) {
            return Err(match response.status() {
                status if status.is_server_error() => Broken::Busy(status),
                StatusCode::TOO_MANY_REQUESTS => Broken::Busy(StatusCode::TOO_MANY_REQUESTS),
                _ => Broken::Final(error),
            });
        }
        // A server that ignores ranges sends the file from its start; it is left when there is enough.
        let mut known = match response.status() {
            StatusCode::PARTIAL_CONTENT => 0,
            _ => bytes.len(),
        };
        while let Some(chunk) = response.chunk().await.map_err(Broken::Connection)? {
            let skipped = known.min(chunk.len());
            known -= skipped;
            let (new, room) = (&chunk[skipped..], wanted as usize - bytes.len());
            bytes.extend_from_slice(&new[..new.len().min(room)]);
            if bytes.len() as u64 == wanted {
                return Ok(());
            }
        }
        Err(Broken::Short)
    }
}

/// The first bytes of a file, and where more of them are.
struct Start<'a> {
    client: &'a HubClient,
    headers: &'a Headers,
    bytes: Vec<u8>,
}
