//! Models in Hugging Face repositories.
//!
//! The hub's headers for a file state its commit, its size and, for large files, its SHA-256. The
//! bytes of that commit are then transferred with `hf-hub`, from where an earlier attempt stopped.

mod headers;
mod list;
mod writer;

use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use hf_hub::{HFClient, HFError};

use super::blocking;
use super::error::FetchError;
use super::name::{HubFile, HubRepository};
use super::progress::{FetchEvent, Gauge, Progress};
use super::source::{Claim, Site, Source};
use headers::Headers;
use writer::Writer;

/// Maximum number of attempts that transfer nothing new.
const ATTEMPTS: u32 = 4;
/// Delay before a transfer is retried; doubled each time.
const BACKOFF: Duration = Duration::from_millis(250);
/// An attempt that transferred this many bytes before it failed counts as a success.
const WORTHWHILE_BYTES: u64 = 1 << 20;
/// Timeout of connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout of reading from a connected server.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

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

    /// The source of the file that a repository's name stands for: chosen from the hub's list.
    ///
    /// # Errors
    /// When the hub does not answer, or the repository has no such file.
    pub(super) async fn of_repository(
        repository: &HubRepository,
        endpoint: Option<&str>,
    ) -> Result<HubFile, FetchError> {
        if let Some(endpoint) = endpoint {
            return repository.listed(endpoint).await;
        }
        let client = HFClient::builder().cache_enabled(false).build();
        let client = client.map_err(|error| FetchError::HubAnswer {
            file: repository.to_string(),
            detail: with_causes(&error),
        })?;
        repository.listed(client.endpoint()).await
    }

    fn client(&self) -> Result<HFClient, FetchError> {
        let transport = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .user_agent(concat!("lapwing/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| self.unusable(&error))?;
        let mut builder = HFClient::builder()
            .client(transport)
            .cache_enabled(false)
            .retry_max_attempts(2)
            .retry_base_delay(self.backoff);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.endpoint(endpoint);
        }
        builder.build().map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, error: &dyn std::error::Error) -> FetchError {
        FetchError::HubAnswer { file: self.file.to_string(), detail: with_causes(error) }
    }

    /// Converts the hub's error into one that says what to do.
    fn explain(&self, error: &HFError, endpoint: &str) -> FetchError {
        let (file, detail) = (self.file.to_string(), with_causes(error));
        match error {
            HFError::RepoNotFound { .. }
            | HFError::RevisionNotFound { .. }
            | HFError::EntryNotFound { .. } => FetchError::HubNotFound { file, detail },
            HFError::AuthRequired { .. } | HFError::Forbidden { .. } => {
                FetchError::HubRefused { file, detail }
            }
            HFError::Request { source, .. } if source.is_connect() || source.is_timeout() => {
                FetchError::HubUnreachable { endpoint: endpoint.to_owned(), detail }
            }
            _ => FetchError::HubAnswer { file, detail },
        }
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
        let repository = task.client.model(&self.file.owner, &self.file.repo);
        let request = repository
            .download_file_stream()
            .filename(&self.file.file)
            .revision(&task.headers.commit)
            .maybe_range((offset > 0).then_some(offset..total))
            .send();
        let (length, mut stream) = request.await.map_err(Broken::Hub)?;
        if offset > 0 && length != Some(total - offset) {
            writer.restart().await.map_err(Broken::Local)?;
            return Err(Broken::RangeIgnored);
        }
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(Broken::Hub)?;
            let bytes = writer.bytes() + chunk.len() as u64;
            if bytes > total {
                let (name, expected) = (self.file.to_string(), total);
                let error = FetchError::SizeMismatch { name, expected, actual: bytes };
                return Err(Broken::Local(error));
            }
            writer.push(&chunk).await.map_err(Broken::Local)?;
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
                Broken::Local(error) => return Err(error),
                Broken::Hub(error @ HFError::Request { .. }) => with_causes(&error),
                Broken::Hub(error) if !is_server_trouble(&error) => {
                    return Err(self.explain(&error, task.client.endpoint()));
                }
                Broken::Hub(error) => with_causes(&error),
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
    client: &'a HFClient,
    headers: &'a Headers,
}

/// Why a transfer ended early.
enum Broken {
    Hub(HFError),
    Local(FetchError),
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
        let client = self.client()?;
        let headers = headers::request(self, client.endpoint()).await?;
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

/// Whether a retry may succeed although the server answered.
fn is_server_trouble(error: &HFError) -> bool {
    match error {
        HFError::Http { context } => context.status.is_server_error(),
        HFError::RateLimited { .. } | HFError::Xet { .. } => true,
        _ => false,
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
