//! Reads what the hub states about a file before it is transferred.
//!
//! `hf-hub`'s own metadata call follows the redirect to the storage server, whose answer has neither
//! commit nor SHA-256. The hub's own answer has both, so it is read here.

use std::path::PathBuf;

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode, Url};

use super::{CONNECT_TIMEOUT, HubSource, READ_TIMEOUT, with_causes};
use crate::models::digest;
use crate::models::error::FetchError;

/// Maximum number of redirects between addresses of the hub itself.
const HOPS_MAX: usize = 5;

/// A file's identity on the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Headers {
    /// The commit that the revision points to.
    pub(super) commit: String,
    /// The hub's tag for the content.
    pub(super) etag: String,
    /// Size in bytes.
    pub(super) bytes: u64,
    /// SHA-256 in lower-case hex, which the hub states for files in large-file storage.
    pub(super) sha256: Option<String>,
}

impl Headers {
    /// One line that identifies the content.
    pub(super) fn version(&self) -> String {
        format!("{} {}", self.etag, self.bytes)
    }

    fn read(headers: &HeaderMap) -> Result<Self, &'static str> {
        let text = |key: &str| headers.get(key).and_then(|value| value.to_str().ok());
        let etag = text("x-linked-etag").or_else(|| text("etag")).ok_or("it has no ETag header")?;
        let etag = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"').to_owned();
        let bytes = text("x-linked-size")
            .or_else(|| text("content-length"))
            .and_then(|size| size.parse().ok())
            .filter(|bytes| *bytes > 0)
            .ok_or("it does not state the file's size")?;
        let commit = text("x-repo-commit").ok_or("it has no X-Repo-Commit header")?.to_owned();
        let sha256 = digest::as_sha256(&etag);
        Ok(Self { commit, etag, bytes, sha256 })
    }
}

/// Requests the headers of the source's file from the hub at `endpoint`.
pub(super) async fn request(source: &HubSource, endpoint: &str) -> Result<Headers, FetchError> {
    let file = &source.file;
    let unusable = |detail: String| FetchError::HubAnswer { file: file.to_string(), detail };
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(Policy::none())
        .user_agent(concat!("lapwing/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| unusable(with_causes(&error)))?;
    let mut url = address(source, endpoint)
        .ok_or_else(|| unusable(format!("{endpoint:?} is not a valid address of a hub")))?;
    let token = token();
    for _ in 0..HOPS_MAX {
        let mut request = client.head(url.clone());
        if let Some(token) = &token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(|error| FetchError::HubUnreachable {
            endpoint: endpoint.to_owned(),
            detail: with_causes(&error),
        })?;
        match next_hop(&url, &response) {
            Some(next) => url = next,
            None => return check_response(source, &response),
        }
    }
    Err(unusable("too many redirects".to_owned()))
}

/// `{endpoint}/{owner}/{repo}/resolve/{revision}/{file}`, with everything escaped.
fn address(source: &HubSource, endpoint: &str) -> Option<Url> {
    let file = &source.file;
    let mut url = Url::parse(endpoint).ok()?;
    url.path_segments_mut()
        .ok()?
        .pop_if_empty()
        .extend([&file.owner, &file.repo, "resolve", file.revision.as_deref().unwrap_or("main")])
        .extend(file.file.split('/'));
    Some(url)
}

/// The target of a redirect to another address of the hub (a renamed repository). A redirect to
/// the storage server does not count, as that server knows neither commit nor hash.
fn next_hop(url: &Url, response: &Response) -> Option<Url> {
    let headers = response.headers();
    if !response.status().is_redirection() || headers.contains_key("x-repo-commit") {
        return None;
    }
    let next = url.join(headers.get(LOCATION)?.to_str().ok()?).ok()?;
    (next.origin() == url.origin()).then_some(next)
}

fn check_response(source: &HubSource, response: &Response) -> Result<Headers, FetchError> {
    let file = source.file.to_string();
    let status = response.status();
    let reason = response.headers().get("x-error-message").and_then(|value| value.to_str().ok());
    let detail = reason.map_or_else(|| status.to_string(), |reason| format!("{status}: {reason}"));
    match status {
        StatusCode::NOT_FOUND => Err(FetchError::HubNotFound { file, detail }),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(FetchError::HubRefused { file, detail })
        }
        _ if status.is_success() || status.is_redirection() => Headers::read(response.headers())
            .map_err(|what| FetchError::HubAnswer { file, detail: what.to_owned() }),
        _ => Err(FetchError::HubAnswer { file, detail }),
    }
}

/// The token that `hf-hub` also uses: `HF_TOKEN`, or the file of Hugging Face's tools.
pub(super) fn token() -> Option<String> {
    let variable = |key| std::env::var(key).ok().filter(|value| !value.is_empty());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(key, value)| (key.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn headers_of_the_linked_file_win_over_those_of_the_pointer() {
        let hash = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
        let quoted: &'static str =
            "\"b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53\"";
        let found = Headers::read(&headers(&[
            ("etag", "\"abc\""),
            ("x-linked-etag", quoted),
            ("content-length", "12"),
            ("x-linked-size", "98362432"),
            ("x-repo-commit", "c0ffee"),
        ]))
        .unwrap();
        assert_eq!(found.sha256.as_deref(), Some(hash));
        assert_eq!(found.bytes, 98_362_432);
    }

    #[test]
    fn an_answer_without_commit_size_or_tag_is_rejected() {
        let full = [("etag", "W/\"abc\""), ("content-length", "12"), ("x-repo-commit", "c0ffee")];
        assert_eq!(Headers::read(&headers(&full)).unwrap().sha256, None);
        for missing in 0..full.len() {
            let mut some = full.to_vec();
            some.remove(missing);
            assert!(Headers::read(&headers(&some)).is_err(), "{some:?}");
        }
    }

    #[test]
    fn awkward_file_names_and_revisions_are_escaped_in_the_address() {
        let source = HubSource::new("hf:o/r/a dir/q#1?.gguf@refs/pr/1".parse().unwrap());
        let url = address(&source, "http://hub.example/mirror/").unwrap();
        assert_eq!(
            url.as_str(),
            "http://hub.example/mirror/o/r/resolve/refs%2Fpr%2F1/a%20dir/q%231%3F.gguf"
        );
    }
}
