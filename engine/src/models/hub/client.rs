//! Requests to a hub: its address, the token, timeouts, and what a refusal means.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

use super::with_causes;
use crate::models::error::FetchError;

/// The hub that is used unless a program or `HF_ENDPOINT` names another.
const ENDPOINT: &str = "https://huggingface.co";
/// Timeout of connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout of reading from a connected server.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A client of one hub, for requests about one file or repository.
#[derive(Debug)]
pub(super) struct HubClient {
    /// The file or repository, as errors name it.
    subject: String,
    endpoint: String,
    token: Option<String>,
    client: Client,
}

impl HubClient {
    /// A client of the hub at `endpoint`, or of the one of the environment.
    ///
    /// # Errors
    /// When `HF_HUB_OFFLINE` forbids requests, the system offers no TLS certificates, or proxies cannot be
    /// read.
    pub(super) fn new(
        subject: String,
        endpoint: Option<&str>,
        redirects: Policy,
    ) -> Result<Self, FetchError> {
        if let Some(variable) = forbidding() {
            return Err(FetchError::Offline { name: subject, variable });
        }
        let endpoint = endpoint.map(str::to_owned).or_else(|| variable("HF_ENDPOINT"));
        let unusable = |error: &dyn std::error::Error| FetchError::HubAnswer {
            file: subject.clone(),
            detail: with_causes(error),
        };
        let tls = tls().map_err(|error| unusable(&error))?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .redirect(redirects)
            .user_agent(concat!("lapwing/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| unusable(&error))?;
        let endpoint = endpoint.unwrap_or_else(|| ENDPOINT.to_owned());
        Ok(Self { subject, endpoint, token: token(), client })
    }

    /// The address of a path on the hub, given as its unescaped segments.
    ///
    /// # Errors
    /// When the hub's address is not one of the web.
    pub(super) fn address<'a>(
        &self,
        path: impl IntoIterator<Item = &'a str>,
    ) -> Result<Url, FetchError> {
        let url = Url::parse(&self.endpoint).ok().and_then(|mut url| {
            url.path_segments_mut().ok()?.pop_if_empty().extend(path);
            Some(url)
        });
        url.ok_or_else(|| self.unusable(format!("{:?} is not the address of a hub", self.endpoint)))
    }

    /// A request with the hub's token. A redirect to another host does not get the token.
    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The hub answered with something that cannot be used.
    pub(super) fn unusable(&self, detail: String) -> FetchError {
        FetchError::HubAnswer { file: self.subject.clone(), detail }
    }

    /// The hub did not answer.
    pub(super) fn unreachable(&self, error: &reqwest::Error) -> FetchError {
        FetchError::HubUnreachable { endpoint: self.endpoint.clone(), detail: with_causes(error) }
    }

    /// The error that an answer other than a success or a redirect stands for.
    pub(super) fn refusal(&self, response: &Response) -> Option<FetchError> {
        let status = response.status();
        if status.is_success() || status.is_redirection() {
            return None;
        }
        let reason = response.headers().get("x-error-message").and_then(|text| text.to_str().ok());
        let detail = match reason {
            Some(reason) => format!("{status}: {reason}"),
            None => status.to_string(),
        };
        let file = self.subject.clone();
        Some(match status {
            StatusCode::NOT_FOUND => FetchError::HubNotFound { file, detail },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                FetchError::HubRefused { file, detail }
            }
            _ => FetchError::HubAnswer { file, detail },
        })
    }
}

/// TLS by ring, with the certificates of the system.
fn tls() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_platform_verifier()?.with_no_client_auth())
}

/// The variable that forbids requests, if one does, as Hugging Face's tools read it.
fn forbidding() -> Option<&'static str> {
    let is_true = |value: &str| {
        ["1", "on", "yes", "true"].iter().any(|word| value.eq_ignore_ascii_case(word))
    };
    // The second variable counts only where the first is not set.
    let set = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]
        .into_iter()
        .find_map(|key| Some((key, variable(key)?)));
    set.filter(|(_, value)| is_true(value)).map(|(key, _)| key)
}

fn variable(key: &str) -> Option<String> {
    std::env::var(key).ok().filter(|value| !value.is_empty())
}

/// The token of Hugging Face's tools: `HF_TOKEN`, or the file in which they keep it.
fn token() -> Option<String> {
    if variable("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some() {
        return None;
    }
    let cache = || {
        variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(std::env::home_dir()?.join(".cache")))
    };
    let home =
        || variable("HF_HOME").map(PathBuf::from).or_else(|| Some(cache()?.join("huggingface")));
    let stored = |path: PathBuf| {
        let token = std::fs::read_to_string(path).ok()?.trim().to_owned();
        (!token.is_empty()).then_some(token)
    };
    variable("HF_TOKEN")
        .or_else(|| stored(PathBuf::from(variable("HF_TOKEN_PATH")?)))
        .or_else(|| stored(home()?.join("token")))
}
