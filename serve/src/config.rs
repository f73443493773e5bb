//! Settings of the server, as in its TOML file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::address;
use super::kv_events::KvEventsConfig;
use lapwing_engine::config::SEQUENCES_DEFAULT;

/// Settings of a [`Server`](super::Server). A TOML file has the same names; unknown ones are errors.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ServeConfig {
    /// Address and port to listen on. The default is that of Ollama, which many clients know:
    /// `127.0.0.1:11434`. One of both may be left out, and port 0 takes a free one.
    pub listen: String,
    /// Allow an address that other machines reach although no key is set.
    pub public: bool,
    /// Keys, and the clients that they belong to. Without any, every key is accepted.
    pub keys: Vec<KeyConfig>,
    /// File with more keys, one `NAME KEY` a line; empty lines and those with `#` are skipped.
    pub key_file: Option<PathBuf>,
    /// Limits of clients by name.
    pub clients: BTreeMap<String, ClientConfig>,
    /// Queue policy of the engines ([`policy::known`](lapwing_engine::policy::known)).
    pub policy: String,
    /// Requests of a model that wait or run; further ones are refused with 429.
    pub requests_max: usize,
    /// Requests of a model that are computed at once; further ones wait.
    pub sequences_max: usize,
    /// Open connections; further ones wait until one ends.
    pub connections_max: usize,
    /// Largest body of a request, in bytes.
    pub body_bytes_max: usize,
    /// Longest time for a request, in seconds; 0 for no limit. A request may ask for less with the header
    /// `x-request-timeout`.
    pub timeout_s: f64,
    /// Time that running requests have to end after a signal, in seconds.
    pub grace_s: f64,
    /// A connection whose client reads nothing for so many seconds is closed.
    pub stalled_s: f64,
    /// Time without requests after which a model is unloaded, in seconds; negative for never.
    pub keep_alive_s: f64,
    /// Bytes that the loaded models may take, by the sizes of their files; 0 for no limit. Beyond it, the
    /// model that was not used for the longest time is unloaded.
    pub memory_bytes: u64,
    /// Origins that browsers may send requests from, as in `http://localhost:3000`; `*` for all.
    pub cors: Vec<String>,
    /// Write prompts and answers to the log.
    pub log_prompts: bool,
    /// Events of the timeline that are kept for `/debug/timeline`; 0 records nothing. An event takes 88
    /// bytes.
    pub timeline_events: usize,
    /// What the prefix caches store and remove, published for routers; nothing by default.
    pub kv_events: KvEventsConfig,
}

impl Default for ServeConfig {
    fn default() -> ServeConfig {
        ServeConfig {
            listen: "127.0.0.1:11434".to_owned(),
            public: false,
            keys: Vec::new(),
            key_file: None,
            clients: BTreeMap::new(),
            policy: "vtc".to_owned(),
            requests_max: 256,
            sequences_max: SEQUENCES_DEFAULT,
            connections_max: 1024,
            body_bytes_max: 16 << 20,
            timeout_s: 0.0,
            grace_s: 30.0,
            stalled_s: 120.0,
            keep_alive_s: 300.0,
            memory_bytes: 0,
            cors: Vec::new(),
            log_prompts: false,
            timeline_events: 1 << 17,
            kv_events: KvEventsConfig::default(),
        }
    }
}

/// A key of the API.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// Name of the client.
    pub client: String,
    /// The key that it sends.
    pub key: String,
}

impl std::fmt::Debug for KeyConfig {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyConfig").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Share and limits of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Share of the service relative to other clients, for the policies `vtc` and `dlpm`; 1 by default.
    pub weight: Option<f64>,
    /// Requests in any 60 seconds; further ones are refused with 429.
    pub requests_per_minute: Option<u32>,
    /// Requests at the same time; further ones are refused with 429.
    pub requests_at_once: Option<usize>,
}

impl ServeConfig {
    /// Settings from the text of a TOML file.
    ///
    /// # Errors
    /// When the text is not TOML, or has an unknown name or a wrong type; the message says where.
    pub fn from_toml(text: &str) -> Result<ServeConfig, toml::de::Error> {
        toml::from_str(text)
    }

    /// The whole address to listen on.
    pub fn address(&self) -> String {
        address::complete(&self.listen)
    }

    /// Replaces the host or the port of the address to listen on.
    pub fn listen_at(&mut self, host: Option<&str>, port: Option<u16>) {
        self.listen = address::replaced(&self.listen, host, port);
    }

    /// The queue policy with the weights and limits of clients as its parameters.
    pub(crate) fn policy_text(&self) -> String {
        let mut text = self.policy.clone();
        let mut separator = if text.contains(':') { ',' } else { ':' };
        let mut add = |key: String| {
            text.push(separator);
            text.push_str(&key);
            separator = ',';
        };
        for (name, client) in &self.clients {
            client.weight.iter().for_each(|weight| add(format!("weight.{name}={weight}")));
            let rpm = client.requests_per_minute.iter();
            rpm.for_each(|rpm| add(format!("rpm.{name}={rpm}")));
        }
        text
    }

    /// Longest time for a request, if there is a limit.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        (self.timeout_s > 0.0).then(|| seconds(self.timeout_s))
    }

    /// Time without requests after which a model is unloaded.
    pub(crate) fn keep_alive(&self) -> Option<Duration> {
        (self.keep_alive_s >= 0.0).then(|| seconds(self.keep_alive_s))
    }
}

/// So many seconds, at most about 30 years.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.clamp(0.0, 1e9)).unwrap_or(Duration::MAX)
}
