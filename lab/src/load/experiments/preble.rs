//! Stand-ins for the workloads of Preble (Srivatsa et al., 2024): its traces are not published in a form with lengths only.

use crate::load::cost::PassTime;
use crate::load::generate::{LoadClient, Rate, SharedPrefixes, generate};
use crate::load::request::LoadRequest;
use crate::load::server::{Server, ServerOptions};

/// Seconds during which requests arrive.
const SECONDS: f64 = 300.0;

/// Mistral-7B on an A6000, as modelled by Preble.
pub(super) fn server() -> Server {
    Server {
        time: PassTime::PrebleA6000,
        kv_tokens: 198_516,
        chunk_rows: 2048,
        sequences_max: 256,
        prefix_cache: true,
        token_gap: None,
        options: ServerOptions::default(),
    }
}

/// Prompt, output and shared tokens are published. The artifact (WukLab/preble, `multi_node/benchmarks/multi_exp_configs`) has several
/// rates of each workload on two servers, with a number of prefixes: these are a half of those of the highest rate.
pub(super) fn requests(name: &str, seed: u64) -> Vec<LoadRequest> {
    let client = |name: &str, rate: f64| {
        let (prompt, output, share, count, zipf) = match name {
            "toolbench" => (1835, 43, 0.85, 100, 1.1),
            "embodied" => (2285, 16, 0.97, 100, 0.0),
            "programming" => (3871, 190, 0.97, 80, 0.0),
            "video" => (9865, 4, 0.88, 75, 0.0),
            _ => (23_474, 16, 0.91, 12, 0.0),
        };
        let tokens = (f64::from(prompt) * share).round() as usize;
        let prefixes = SharedPrefixes { name: name.to_owned(), count, tokens, zipf };
        LoadClient::new(name, Rate::Constant(rate), prompt as usize, output).sharing(prefixes)
    };
    let clients = match name {
        "preble-toolbench" => vec![client("toolbench", 9.0)],
        "preble-embodied" => vec![client("embodied", 7.5)],
        "preble-programming" => vec![client("programming", 3.0)],
        "preble-video" => vec![client("video", 2.5)],
        "preble-loogle" => vec![client("loogle", 0.6)],
        _ => vec![client("toolbench", 4.5), client("programming", 1.5)],
    };
    generate(&clients, SECONDS, seed)
}
