//! Requests of a workload, and the files that hold them.

use std::ops::Range;
use std::time::Duration;

use lapwing_actors::policy::Urgency;
use serde::{Deserialize, Serialize};

use super::random::mix;

/// A request of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadRequest {
    /// Seconds from the start to its arrival.
    pub at: f64,
    /// Client that sends it.
    #[serde(default)]
    pub client: String,
    /// Tokens of the prompt, those of `prefix` included.
    pub prompt_tokens: usize,
    /// Tokens to generate.
    pub output_tokens: usize,
    /// Priority; the greater number is more urgent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Seconds from its arrival at which its last token is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<f64>,
    /// Parts at the beginning of the prompt, by name and number of tokens: requests whose prompts begin with
    /// the same parts begin with the same tokens. The other tokens are this request's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefix: Vec<(String, usize)>,
}

/// Why a workload cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// It cannot be read.
    #[error("the workload cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// A line is not a request.
    #[error("line {line} is not a request: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

fn is_zero(priority: &i32) -> bool {
    *priority == 0
}

impl LoadRequest {
    /// A request whose prompt shares nothing, without priority or deadline.
    pub fn new(at: f64, client: &str, prompt_tokens: usize, output_tokens: usize) -> LoadRequest {
        let (priority, deadline, prefix) = (0, None, Vec::new());
        let client = client.to_owned();
        LoadRequest { at, client, prompt_tokens, output_tokens, priority, deadline, prefix }
    }

    /// How urgent it is.
    pub fn urgency(&self) -> Urgency {
        let deadline = self.deadline.and_then(|after| Duration::try_from_secs_f64(after).ok());
        Urgency { priority: self.priority, deadline, token_gap: None }
    }

    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let prefix: usize = self.prefix.iter().map(|(_, tokens)| tokens).sum();
        match self {
            _ if !(0.0..=1e9).contains(&self.at) => {
                Err(format!("at is {}, but must be a number of seconds from 0 to 1e9", self.at))
            }
            LoadRequest { prompt_tokens: 0, .. } => Err("a prompt has at least 1 token".to_owned()),
            LoadRequest { output_tokens: 0, .. } => {
                Err("output_tokens must be at least 1".to_owned())
            }
            LoadRequest { deadline: Some(after), .. } if !(0.0..=1e9).contains(after) => {
                Err(format!("deadline is {after}, but must be a number of seconds from 0 to 1e9"))
            }
            LoadRequest { prompt_tokens, .. } if prefix > *prompt_tokens => Err(format!(
                "its prefix has {prefix} tokens, more than the {prompt_tokens} of the prompt"
            )),
            _ => Ok(()),
        }
    }

    /// Token ids of its prompt, from `vocabulary`; `number` makes its own tokens different from those of other
    /// requests.
    pub fn ids(&self, number: usize, vocabulary: &Range<u32>) -> Vec<u32> {
        let span = u64::from(vocabulary.end - vocabulary.start).max(1);
        let id = |seed: u64, at: usize| {
            vocabulary.start + (mix(seed ^ (at as u64).wrapping_mul(0x9e37_79b9)) % span) as u32
        };
        let mut ids = Vec::with_capacity(self.prompt_tokens);
        for (name, tokens) in &self.prefix {
            let seed = name.bytes().fold(7, |seed, byte| mix(seed ^ u64::from(byte)));
            ids.extend((0..*tokens).map(|at| id(seed, at)));
        }
        let seed = mix(number as u64 + (1 << 40));
        let own = self.prompt_tokens.saturating_sub(ids.len());
        ids.extend((0..own).map(|at| id(seed, at)));
        ids
    }
}
