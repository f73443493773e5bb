//! Reads what the hub states about a file before it is transferred.
//!
//! The hub answers with commit and SHA-256, and redirects to a storage server, which knows neither. So
//! that redirect is not followed here.

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Method, Response, Url};

use super::client::HubClient;
use crate::models::digest;
use crate::models::error::FetchError;
use crate::models::name::HubFile;

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

/// Requests the headers of a file from the hub at `endpoint`, or from the one of the environment.
pub(super) async fn request(file: &HubFile, endpoint: Option<&str>) -> Result<Headers, FetchError> {
    let client = HubClient::new(file.to_string(), endpoint, Policy::none())?;
    let mut url = client.address(path(file, file.revision.as_deref().unwrap_or("main")))?;
    for _ in 0..HOPS_MAX {
        let response = client.request(Method::HEAD, url.clone()).send().await;
        let response = response.map_err(|error| client.unreachable(&error))?;
        match next_hop(&url, &response) {
            Some(next) => url = next,
            None => match client.refusal(&response) {
                Some(error) => return Err(error),
                None => {
                    return Headers::read(response.headers())
                        .map_err(|what| client.unusable(what.to_owned()));
                }
            },
        }
    }
    Err(client.unusable("too many redirects".to_owned()))
}

/// The path of a file's content on the hub: `{owner}/{repo}/resolve/{revision}/{file}`.
pub(super) fn path<'a>(
    file: &'a HubFile,
    revision: &'a str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    [file.owner.as_str(), file.repo.as_str(), "resolve", revision]
        .into_iter()
        .chain(file.file.split('/'))
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
        let file: HubFile = "hf:o/r/a dir/q#1?.gguf@refs/pr/1".parse().unwrap();
        let client =
            HubClient::new(String::new(), Some("http://hub.example/mirror/"), Policy::none())
                .unwrap();
        let url = client.address(path(&file, file.revision.as_deref().unwrap())).unwrap();
        assert_eq!(
            url.as_str(),
            "http://hub.example/mirror/o/r/resolve/refs%2Fpr%2F1/a%20dir/q%231%3F.gguf"
        );
    }
}
