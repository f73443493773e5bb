//! Who sends a request: keys, clients and their limits.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::config::{ClientConfig, KeyConfig, ServeConfig};
use super::error::ApiError;
use super::start_error::ServeError;
use lapwing_engine::policy::ClientId;

/// The clients.
#[derive(Debug)]
pub(crate) struct Clients {
    keys: Vec<KeyConfig>,
    limits: BTreeMap<String, ClientConfig>,
    running: Arc<Mutex<HashMap<String, usize>>>,
}

/// The sender of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Name of the client that its key belongs to, or that the program has named.
    name: Option<String>,
    /// Address of the connection, if it is known.
    address: Option<IpAddr>,
}

/// A request that counts as running until this is dropped.
#[derive(Debug)]
pub(crate) struct ClientPermit {
    client: String,
    running: Arc<Mutex<HashMap<String, usize>>>,
}

impl Clients {
    /// The clients of a configuration, with the keys of its file.
    ///
    /// # Errors
    /// When the file cannot be read, or a line has no key.
    pub(crate) fn new(config: &ServeConfig) -> Result<Clients, ServeError> {
        let mut keys = config.keys.clone();
        if let Some(path) = &config.key_file {
            keys.extend(read_keys(path)?);
        }
        if let Some(empty) = keys.iter().find(|key| key.key.is_empty() || key.client.is_empty()) {
            return Err(ServeError::EmptyKey { client: empty.client.clone() });
        }
        Ok(Clients { keys, limits: config.clients.clone(), running: Arc::default() })
    }

    /// Whether requests need a key.
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The sender of a request.
    ///
    /// # Errors
    /// When a key is needed and missing or wrong.
    pub(crate) fn caller(
        &self,
        headers: &HeaderMap,
        address: Option<IpAddr>,
    ) -> Result<Caller, ApiError> {
        if !self.has_keys() {
            return Ok(Caller::unknown(address));
        }
        let unauthorized =
            |message| ApiError::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message);
        let Some(sent) = sent_key(headers) else {
            return Err(unauthorized(
                "a key is needed: send it in the header 'Authorization: Bearer KEY' or 'x-api-key: KEY'",
            ));
        };
        match self.key_of(sent) {
            Some(key) => Ok(Caller::named(&self.keys[key].client, address)),
            None => Err(unauthorized("the key is wrong")),
        }
    }

    /// The number of the key that is `sent`. Takes the same time whichever it is.
    fn key_of(&self, sent: &[u8]) -> Option<usize> {
        let mut found = u32::MAX;
        for (at, key) in self.keys.iter().enumerate() {
            let equal: Choice = key.key.as_bytes().ct_eq(sent);
            found.conditional_assign(&(at as u32), equal);
        }
        (found != u32::MAX).then_some(found as usize)
    }

    /// Counts a request of `client` as running.
    ///
    /// # Errors
    /// When it has as many as it may have.
    pub(crate) fn admit(&self, client: &str) -> Result<ClientPermit, ApiError> {
        let most = self.limits.get(client).and_then(|limits| limits.requests_at_once);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let count = running.entry(client.to_owned()).or_default();
        if let Some(most) = most.filter(|most| *count >= *most) {
            let message = format!(
                "client '{client}' has {most} requests at the same time, which is its limit; send the next \
                 one when one has ended"
            );
            return Err(ApiError::busy("too_many_requests", message, Duration::from_secs(1)));
        }
        *count += 1;
        Ok(ClientPermit { client: client.to_owned(), running: Arc::clone(&self.running) })
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.client);
            }
        }
    }
}

impl Caller {
    /// A sender whose key is not looked at.
    pub(crate) fn unknown(address: Option<IpAddr>) -> Caller {
        Caller { name: None, address }
    }

    /// A sender with the name of its client.
    pub(crate) fn named(name: &str, address: Option<IpAddr>) -> Caller {
        Caller { name: Some(name.to_owned()), address }
    }

    /// Name of the client: that of its key or of the program, or else the `user` that the request names, or else the
    /// address.
    pub(crate) fn client(&self, user: Option<String>) -> String {
        let user = user.filter(|user| !user.is_empty() && user.len() <= USER_MAX);
        let address = || self.address.map(|address| address.to_string());
        let known = self.name.clone().or(user).or_else(address);
        known.unwrap_or_else(|| ClientId::anonymous().to_string())
    }
}

/// Longest name of a user, in bytes.
const USER_MAX: usize = 128;

/// The key of a request: a bearer token, or Anthropic's header.
fn sent_key(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(key)
    });
    bearer
        .or_else(|| headers.get("x-api-key").map(|value| value.as_bytes()))
        .map(<[u8]>::trim_ascii)
}

/// Keys of a file, one `NAME KEY` a line.
fn read_keys(path: &Path) -> Result<Vec<KeyConfig>, ServeError> {
    let fault = |reason: String| ServeError::KeyFile { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some(client), Some(key), None) => {
                    Ok(KeyConfig { client: client.to_owned(), key: key.to_owned() })
                }
                // The line may hold a key, so it is not shown.
                _ => Err(fault(format!("line {number} is not 'NAME KEY'"))),
            }
        })
        .collect()
}
