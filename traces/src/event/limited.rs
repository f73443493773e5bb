//! Why a chunk has no more rows of prompts.

use std::fmt;

/// The rows of prompts in a chunk were limited, so that requests that stream have their next tokens in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limited {
    /// Number of the chunk.
    pub chunk: u64,
    /// Request whose next token was due; none if chunks are kept short for requests without a target.
    pub stream: Option<u64>,
    /// Time in ns until that token was due; 0 without such a request.
    pub slack: u64,
}

impl fmt::Display for Limited {
    /// The reason, such as `because stream 3 was due in 48 ms` or `kept short for streams`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stream {
            Some(stream) => {
                let ms = (self.slack as f64 / 1e3).round() / 1e3;
                write!(f, "because stream {stream} was due in {ms} ms")
            }
            None => f.write_str("kept short for streams"),
        }
    }
}
