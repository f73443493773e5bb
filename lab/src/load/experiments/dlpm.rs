//! The experiment of DLPM (Cao et al., 2025).

use lapwing_actors::scheduler::Batches;

use crate::load::cost::PassTime;
use crate::load::request::LoadRequest;
use crate::load::server::{Server, ServerOptions};

const QUESTIONS: usize = 50;

/// Seconds from one question of a user to the next.
const EVERY: f64 = 2.0;

/// Tokens that all questions of a user begin with. Chosen: that there are some is inferred from the published hit rates.
const COMMON: usize = 2000;

/// Name, branches of a question, tokens of its prompt and of each answer. Which of the three users has prompts of which length
/// within the published 3 400 to 3 700 tokens is chosen.
const USERS: [(&str, usize, usize, usize); 3] =
    [("user 1", 16, 3400, 160), ("user 2", 2, 3550, 111), ("user 3", 2, 3700, 111)];

/// The published quantum, and prefixes compared in a queue of any length.
pub(super) const PARAMETERS: [(&str, &str); 2] =
    [("dlpm", "quantum=50000,most=1000000"), ("lpm", "most=1000000")];

/// The published KV cache. No times of Llama-3.1-8B are public with the settings; those of Mistral-7B on an A6000 are for the same
/// layers, heads and feed-forward widths. Prompts have passes of their own, as in SGLang.
pub(super) fn server() -> Server {
    Server {
        time: PassTime::PrebleA6000,
        kv_tokens: 20_000,
        chunk_rows: 8192,
        sequences_max: 256,
        prefix_cache: true,
        token_gap: None,
        options: ServerOptions {
            batches: Batches { alone: true, ..Batches::default() },
            ..ServerOptions::default()
        },
    }
}

/// The branches of a question have the same prompt and arrive together.
pub(super) fn requests() -> Vec<LoadRequest> {
    let mut requests = Vec::new();
    for question in 0..QUESTIONS {
        for (user, branches, prompt, answer) in USERS {
            let own = (format!("{user} {question}"), prompt - COMMON);
            let branch = LoadRequest {
                prefix: vec![(user.to_owned(), COMMON), own],
                ..LoadRequest::new(question as f64 * EVERY, user, prompt, answer)
            };
            requests.extend(std::iter::repeat_n(branch, branches));
        }
    }
    requests
}
