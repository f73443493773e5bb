//! Models in Hugging Face repositories.
//!
//! The hub's headers for a file state its commit, its size and, for large files, its SHA-256. The
//! bytes of that commit are then transferred, from where an earlier attempt stopped.

mod client;
mod headers;
mod list;
mod start;
mod writer;

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::RANGE;
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};

use super::blocking;
use super::error::FetchError;
use super::name::HubFile;
use super::progress::{FetchEvent, Gauge, Progress};
use super::source::{Claim, Site, Source};
use client::HubClient;
use headers::Headers;
pub use list::HubModel;
use writer::Writer;

/// Maximum number of attempts that transfer nothing new.
const ATTEMPTS: u32 = 4;
/// Delay before a transfer is retried; doubled each time.
const BACKOFF: Duration = Duration::from_millis(250);
/// An attempt that transferred this many bytes before it failed counts as a success.
const WORTHWHILE_BYTES: u64 = 1 << 20;

/// A GGUF file of a Hugging Face repository.
///
/// Token and endpoint come from the usual variables (`HF_TOKEN`, `HF_ENDPOINT`, …) or from the token
/// file of Hugging Face's own tools.
#[derive(Debug, Clone)]
pub struct HubSource {
    file: HubFile,
    endpoint: Option<String>,
    backoff: Duration,
}

impl HubSource {
    /// The file to fetch.
    pub fn new(file: HubFile) -> Self {
        Self { file, endpoint: None, backoff: BACKOFF }
    }

    /// Uses another hub than the environment states, for example a mirror.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Sets the delay before the first retry of a transfer.
    pub fn backoff(mut self, first: Duration) -> Self {
        self.backoff = first;
        self
    }

    /// Transfers from the writer's position to the end, or until the connection fails.
    async fn transfer(
        &self,
        task: &Transfer<'_>,
        writer: &mut Writer,
        progress: &mut Meter<'_>,
    ) -> Result<(), Broken> {
        let total = task.headers.bytes;
        let offset = writer.bytes();
        let url = task.client.address(headers::path(&self.file, &task.headers.commit));
        let mut request = task.client.request(Method::GET, url.map_err(Broken::Final)?);
        if offset > 0 {
            request = request.header(RANGE, format!("bytes={offset}-{}", total - 1));
        }
        let mut response = request.send().await.map_err(Broken::Connection)?;
        if let Some(error) = task.client.refusal(&response) {
            return Err(match response.status() {
                status if status.is_server_error() => Broken::Busy(status),
                StatusCode::TOO_MANY_REQUESTS => Broken::Busy(StatusCode::TOO_MANY_REQUESTS),
                _ => Broken::Final(error),
            });
        }
        if offset > 0 && response.content_length() != Some(total - offset) {
            writer.restart().await.map_err(Broken::Final)?;
            return Err(Broken::RangeIgnored);
        }
        while let Some(chunk) = response.chunk().await.map_err(Broken::Connection)? {
            let bytes = writer.bytes() + chunk.len() as u64;
            if bytes > total {
                let (name, expected) = (self.file.to_string(), total);
                let error = FetchError::SizeMismatch { name, expected, actual: bytes };
                return Err(Broken::Final(error));
            }
            writer.push(&chunk).await.map_err(Broken::Final)?;
            progress.reach(writer.bytes());
        }
        match writer.bytes() {
            bytes if bytes < total => Err(Broken::Short),
            _ => Ok(()),
        }
    }

    /// Transfers the whole file, retrying as long as attempts make progress.
    async fn persist(
        &self,
        task: &Transfer<'_>,
        writer: &mut Writer,
        meter: &mut Meter<'_>,
    ) -> Result<(), FetchError> {
        let mut failures = 0;
        while writer.bytes() < task.headers.bytes {
            let before = writer.bytes();
            let broken = match self.transfer(task, writer, meter).await {
                Ok(()) => break,
                Err(broken) => broken,
            };
            writer.flush().await?;
            if writer.bytes().saturating_sub(before) >= WORTHWHILE_BYTES {
                failures = 0;
            }
            failures += 1;
            let detail = match broken {
                Broken::Final(error) => return Err(error),
                Broken::Connection(error) => with_causes(&error),
                Broken::Busy(status) => status.to_string(),
                Broken::Short => "the server sent less than it announced".to_owned(),
                Broken::RangeIgnored => "the server cannot send a part of the file".to_owned(),
            };
            if failures >= ATTEMPTS {
                return Err(FetchError::Interrupted {
                    name: self.file.to_string(),
                    bytes: writer.bytes(),
                    detail,
                });
            }
            tokio::time::sleep(self.backoff * 2u32.pow(failures - 1)).await;
        }
        writer.flush().await
    }
}

/// Values that stay constant over all attempts of one fetch.
struct Transfer<'a> {
    client: &'a HubClient,
    headers: &'a Headers,
}

/// Why a transfer ended early.
enum Broken {
    Connection(reqwest::Error),
    /// The server cannot serve the request now.
    Busy(StatusCode),
    /// A later attempt would fail, too.
    Final(FetchError),
    Short,
    RangeIgnored,
}

/// A gauge, with the receiver of its reports.
struct Meter<'a> {
    gauge: Gauge,
    progress: &'a mut dyn Progress,
}

impl Meter<'_> {
    fn reach(&mut self, bytes: u64) {
        self.gauge.reach(bytes, self.progress);
    }
}

#[async_trait]
impl Source for HubSource {
    fn describe(&self) -> String {
        self.file.to_string()
    }

    fn claim(&self) -> Claim {
        Claim::default()
    }

    async fn deliver(&self, site: &Site, progress: &mut dyn Progress) -> Result<Claim, FetchError> {
        let endpoint = self.endpoint.as_deref();
        let headers = headers::request(&self.file, endpoint).await?;
        let client = HubClient::new(self.file.to_string(), endpoint, Policy::default())?;
        let bytes_total = Some(headers.bytes);
        let mut writer = {
            let (site, headers) = (site.clone(), headers.clone());
            blocking::run(move |_| Writer::open(site, &headers)).await?
        };
        progress.on_event(FetchEvent::Started { name: site.name().to_owned(), bytes_total });
        let mut meter = Meter { gauge: Gauge::new(bytes_total), progress };
        meter.reach(writer.bytes());
        let task = Transfer { client: &client, headers: &headers };
        self.persist(&task, &mut writer, &mut meter).await?;
        Ok(Claim { bytes: bytes_total, sha256: headers.sha256 })
    }
}

/// An error with all its causes, on one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
