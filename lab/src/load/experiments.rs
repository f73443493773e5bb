//! The experiments of VTC (Sheng et al., 2024), DLPM (Cao et al., 2025) and Preble (Srivatsa et al., 2024), as far as
//! their settings are public, on modelled servers.

use super::cost::{CostError, PassTime};
use super::generate::{LoadClient, Rate, SharedPrefixes, generate};
use super::report::Measure;
use super::request::{LoadRequest, WorkloadError};
use super::server::Server;
use super::trace::Trace;

/// Requests of 27 clients of Chatbot Arena, and measured costs, from the artifact of VTC.
const ARENA: &str = include_str!("traces/arena-27-clients.jsonl");
const A10G: &str = include_str!("traces/a10g-llama-2-7b-cost.json");

/// A workload with the server that it is for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Experiment {
    /// Name.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The requests.
    pub requests: Vec<LoadRequest>,
    /// The server.
    pub server: Server,
    /// Seconds after which it ends; `None`: when all requests have ended.
    pub until: Option<f64>,
    /// How service is counted.
    pub measure: Measure,
}

/// Why an experiment cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// There is none of that name.
    #[error("there is no experiment '{name}'; it must be one of {}", known())]
    Unknown {
        /// The name.
        name: String,
    },
    /// Its trace cannot be read.
    #[error(transparent)]
    Trace(#[from] WorkloadError),
    /// Its costs cannot be read.
    #[error(transparent)]
    Cost(#[from] CostError),
}

fn known() -> String {
    Experiment::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Seconds of an experiment of VTC.
const DURATION: f64 = 600.0;

impl Experiment {
    /// Names of all experiments, and what they show.
    pub const ALL: [(&'static str, &'static str); 17] = [
        ("vtc-overload", "two clients send 1.5 and 3 requests/s, more than the server can do"),
        ("vtc-8-clients", "eight clients send 0.5 to 4 requests/s"),
        ("vtc-proportional", "three clients send 0.25, 0.5 and 1.5 requests/s"),
        ("vtc-on-off", "one client pauses every other minute; both stay below their share"),
        (
            "vtc-on-off-overload",
            "one client pauses every other minute; the other overloads the server",
        ),
        ("vtc-short-long", "8 short requests/s of one client, 1.5 long ones/s of another"),
        ("vtc-ramp", "one client keeps its rate, the other raises it from 0.5 to 5 requests/s"),
        ("vtc-shift", "the rates of two clients change twice in 15 minutes"),
        ("vtc-4-clients", "four clients send 2 requests/s each"),
        ("vtc-arena", "requests of 27 clients, recorded by Chatbot Arena"),
        ("dlpm", "three users ask 150 questions each, with 16, 2 and 2 branches"),
        ("preble-toolbench", "prompts of 1835 tokens, 85 % of them a tool's instructions"),
        ("preble-embodied", "prompts of 2285 tokens, 97 % of them the steps before"),
        ("preble-programming", "prompts of 3871 tokens, 97 % of them shared"),
        ("preble-video", "prompts of 9865 tokens, 88 % of them a video"),
        ("preble-loogle", "prompts of 23 474 tokens, 91 % of them a document"),
        ("preble-mixed", "tools and programming together, one client each"),
    ];

    /// The experiment of that name. The same seed gives the same requests.
    ///
    /// # Errors
    /// [`ExperimentError`].
    pub fn named(name: &str, seed: u64) -> Result<Experiment, ExperimentError> {
        let entry = Experiment::ALL.iter().find(|(known, _)| *known == name);
        let Some((name, about)) = entry.copied() else {
            return Err(ExperimentError::Unknown { name: name.to_owned() });
        };
        let server = if name.starts_with("preble") { a6000() } else { a10g(name)? };
        let requests = match name {
            "vtc-arena" => Trace::read(ARENA.as_bytes())?.requests,
            "dlpm" => branches(seed),
            _ if name.starts_with("preble") => preble(name, seed),
            "vtc-shift" => generate(&vtc(name), 900.0, seed),
            _ => generate(&vtc(name), DURATION, seed),
        };
        let until = match name {
            "vtc-shift" => Some(900.0),
            _ if name.starts_with("vtc") => Some(DURATION),
            _ => None,
        };
        let measure = Measure::default();
        Ok(Experiment { name, about, requests, server, until, measure })
    }
}

/// Llama on an A10G, as measured by VTC; with the KV cache of the experiment.
fn a10g(name: &str) -> Result<Server, CostError> {
    let is_dlpm = name == "dlpm";
    Ok(Server {
        time: PassTime::fit(A10G)?,
        kv_tokens: if is_dlpm { 20_000 } else { 10_000 },
        chunk_rows: 2048,
        sequences_max: 256,
        prefix_cache: is_dlpm,
        token_gap: None,
    })
}

/// Mistral-7B on an A6000, as modelled by Preble.
fn a6000() -> Server {
    Server {
        time: PassTime::PrebleA6000,
        kv_tokens: 198_516,
        chunk_rows: 2048,
        sequences_max: 256,
        prefix_cache: true,
        token_gap: None,
    }
}

/// Clients of VTC's synthetic experiments: 256 prompt and 256 output tokens unless the experiment is about lengths.
fn vtc(name: &str) -> Vec<LoadClient> {
    let client =
        |number: usize, rate: Rate| LoadClient::new(&format!("client {number}"), rate, 256, 256);
    let constant = |rates: &[f64]| -> Vec<LoadClient> {
        let rates = rates.iter().enumerate();
        rates.map(|(at, rate)| client(at + 1, Rate::Constant(*rate))).collect()
    };
    let on_off = |rate: f64| client(1, Rate::OnOff { rate, on: 60.0, off: 60.0 });
    match name {
        "vtc-8-clients" => constant(&[0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]),
        "vtc-proportional" => constant(&[0.25, 0.5, 1.5]),
        "vtc-4-clients" => constant(&[2.0; 4]),
        "vtc-on-off" => vec![on_off(0.5), client(2, Rate::Constant(1.0))],
        "vtc-on-off-overload" => vec![on_off(2.0), client(2, Rate::Constant(3.0))],
        "vtc-short-long" => vec![
            LoadClient::new("short", Rate::Constant(8.0), 64, 64),
            LoadClient::new("long", Rate::Constant(1.5), 256, 256),
        ],
        "vtc-ramp" => {
            vec![client(1, Rate::Constant(1.0)), client(2, Rate::Ramp { from: 0.5, to: 5.0 })]
        }
        "vtc-shift" => vec![
            client(1, Rate::Steps(vec![0.5, 3.0, 1.0])),
            client(2, Rate::Steps(vec![1.0, 1.0, 3.0])),
        ],
        _ => constant(&[1.5, 3.0]),
    }
}

/// Stand-ins for Preble's workloads: prompt, output and shared tokens, and how many different prefixes there are.
fn preble(name: &str, seed: u64) -> Vec<LoadRequest> {
    let client = |name: &str, rate: f64| {
        let (prompt, output, share, count, zipf) = match name {
            "toolbench" => (1835, 43, 0.85, 200, 1.1),
            "embodied" => (2285, 16, 0.97, 100, 0.0),
            "programming" => (3871, 190, 0.97, 30, 0.0),
            "video" => (9865, 4, 0.88, 40, 0.0),
            _ => (23_474, 16, 0.91, 20, 0.0),
        };
        let tokens = (f64::from(prompt) * share).round() as usize;
        let prefixes = SharedPrefixes { name: name.to_owned(), count, tokens, zipf };
        LoadClient::new(name, Rate::Constant(rate), prompt as usize, output).sharing(prefixes)
    };
    let clients = match name {
        "preble-toolbench" => vec![client("toolbench", 4.0)],
        "preble-embodied" => vec![client("embodied", 4.0)],
        "preble-programming" => vec![client("programming", 2.0)],
        "preble-video" => vec![client("video", 1.0)],
        "preble-loogle" => vec![client("loogle", 0.5)],
        _ => vec![client("toolbench", 2.0), client("programming", 1.0)],
    };
    generate(&clients, 300.0, seed)
}

/// Three users with 150 questions each, which they branch 16, 2 and 2 times: all branches of a question share its
/// prompt. The lengths are not published with the settings; 512 tokens are shared, each branch has 64 of its own and
/// generates 128.
fn branches(seed: u64) -> Vec<LoadRequest> {
    const QUESTIONS: usize = 150;
    let users = [("user 1", 16), ("user 2", 2), ("user 3", 2)];
    let clients = users.map(|(name, branches)| {
        // All questions within five minutes.
        let rate = Rate::Constant(QUESTIONS as f64 / 300.0);
        (LoadClient::new(name, rate, 576, 128), branches)
    });
    let mut requests = Vec::new();
    for (number, (client, branches)) in clients.iter().enumerate() {
        // Twice the time, so that there are enough arrivals to take the questions from.
        let own = generate(std::slice::from_ref(client), 600.0, seed + number as u64);
        for (question, arrival) in own.into_iter().take(QUESTIONS).enumerate() {
            let prefix = vec![(format!("{} {question}", client.name), 512)];
            let branch = LoadRequest { prefix, ..arrival };
            requests.extend(std::iter::repeat_n(branch, *branches));
        }
    }
    requests.sort_by(|one, other| one.at.total_cmp(&other.at));
    requests
}
