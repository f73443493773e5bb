//! Why a server cannot start.

use std::path::PathBuf;

use lapwing_engine::error::Error;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// There is no model.
    #[error("a server needs a model")]
    NoModel,
    /// No path is to be offered.
    #[error("a server needs paths; choose at least one group of them")]
    NoPath,
    /// The page is offered without the paths that it asks for.
    #[error(
        "the page asks for paths of the groups OpenAi and Operation; offer these, too, or not the page"
    )]
    PageAlone,
    /// A setting would have no effect.
    #[error("the setting {setting} would have no effect: {reason}; leave it at its default")]
    NoEffect {
        /// Name of the setting.
        setting: &'static str,
        /// Why it has none.
        reason: &'static str,
    },
    /// Two models have the same name.
    #[error("two models have the name '{name}'; give each its own")]
    SameName {
        /// The name.
        name: String,
    },
    /// A model's file cannot be read.
    #[error("model '{name}': {source}")]
    Model {
        /// Name of the model.
        name: String,
        /// Why.
        source: Box<Error>,
    },
    /// A model cannot be loaded.
    #[error("{reason}")]
    Load {
        /// Why.
        reason: String,
    },
    /// A key is empty, or has no client.
    #[error("a key of client '{client}' is empty, or its client has no name")]
    EmptyKey {
        /// The client.
        client: String,
    },
    /// The file of keys cannot be read.
    #[error("cannot read the keys in {}: {reason}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {listen}: {source}; choose another address or port (on the command line: --listen)"
    )]
    Listen {
        /// The address.
        listen: String,
        /// Why.
        source: std::io::Error,
    },
    /// An address of KV events is none.
    #[error("'{address}' is no address for KV events; tcp://127.0.0.1:5557 is one")]
    KvEventsAddress {
        /// The address.
        address: String,
    },
    /// An address of KV events cannot be listened on.
    #[error(
        "cannot publish KV events on {address}: {source}; each model takes the next port: choose another one \
         (on the command line: --kv-events, --kv-events-replay)"
    )]
    KvEventsListen {
        /// The address.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Other machines would reach KV events, which nothing protects.
    #[error(
        "{address} is reachable from other machines, and KV events have the tokens of all prompts and need no key; \
         use an address of 127.0.0.1, or allow it (--public)"
    )]
    KvEventsPublic {
        /// The address.
        address: String,
    },
    /// Other machines would reach the server, and no key is set.
    #[error(
        "{listen} is reachable from other machines, but no key is set, so that everyone could use the models; \
         set keys (--key-file), listen on 127.0.0.1, or allow it (--public)"
    )]
    Public {
        /// The address.
        listen: String,
    },
}
