//! Lesson: a queue policy of your own decides whose request is computed next.
//!
//! ```text
//!  arrival      flood 1   flood 2   flood 3   flood 4   quiet
//!
//!  fcfs       ─ flood 1 ─ flood 2 ─ flood 3 ─ flood 4 ─ quiet ──►  time
//!  fair share ─ flood 1 ─ quiet ─── flood 2 ─ flood 3 ─ flood 4 ►
//! ```
//!
//! Two clients share an engine that computes one request at a time. One of them floods it, the other
//! asks a single question after that. In order of arrival the quiet client waits for all of the flood;
//! with the policy below, for the one request that runs already.
//!
//! A policy gives every request a *rank*, and the engine admits, computes and preempts in that order. It
//! cannot change a token: here the answers are compared with those in order of arrival. The same policy
//! then runs in virtual time. With the argument `simulate` that is all it does.

use std::collections::HashMap;
use std::path::Path;

use lapwing::models::{FetchEvent, ModelCache, ModelName, fetch};
use lapwing::policy::{
    Candidate, Charge, ClientId, End, Nanos, PolicyChoice, PrefixView, QueuePolicy, Rank,
};
use lapwing::simulate::Scenario;
use lapwing::{Engine, Request};

/// The client that was served least goes first: the idea of the Virtual Token Counter ("Fairness in
/// Serving Large Language Models", OSDI 2024), reduced to what fits a lesson.
#[derive(Clone, Default)]
struct FairShare {
    clients: HashMap<ClientId, Account>,
}

/// Service that a client has received.
#[derive(Clone, Copy, Default)]
struct Account {
    /// Service, where a prompt token counts 1 and a generated token 2.
    service: f64,
    /// Requests that wait or run.
    requests: usize,
}

impl QueuePolicy for FairShare {
    fn name(&self) -> &str {
        "fair-share"
    }

    fn rank(&self, request: &Candidate<'_>, _prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        Rank::by(self.clients[request.client].service)
    }

    fn arrive(&mut self, request: &Candidate<'_>, _now: Nanos) {
        // A returning client gets no credit for the time in which it sent no request.
        let busy = self.clients.values().filter(|account| account.requests > 0);
        let least = busy.map(|account| account.service).min_by(f64::total_cmp).unwrap_or(0.0);
        let account = self.clients.entry(request.client.clone()).or_default();
        if account.requests == 0 {
            account.service = account.service.max(least);
        }
        account.requests += 1;
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, _now: Nanos) {
        // Rows that a preemption lost are computed again at no charge.
        let tokens = charge.prompt_rows + 2 * charge.generated_tokens;
        self.clients.entry(request.client.clone()).or_default().service += tokens as f64;
    }

    fn finish(&mut self, request: &Candidate<'_>, _end: End, _now: Nanos) {
        self.clients.entry(request.client.clone()).or_default().requests -= 1;
    }
}

/// Both worlds.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() != Some("simulate") {
        live().await?;
    }
    simulated()
}

/// On this machine, with true values.
async fn live() -> Result<(), Box<dyn std::error::Error>> {
    let name = ModelName::default_model();
    let model = fetch(&ModelCache::open(None)?, &name, &mut |_: FetchEvent| {}).await?;

    let (by_arrival, answers) = serve(&model, "fcfs").await?;
    let (by_share, same) = serve(&model, FairShare::default()).await?;
    assert_eq!(by_arrival.last().map(String::as_str), Some("quiet"), "it came last");
    let turn = by_share.iter().position(|client| client == "quiet");
    assert!(turn < Some(by_share.len() - 1), "it waited for the whole flood");
    assert_eq!(answers, same, "a policy decides who is computed when, and never what");
    println!("{}", answers.last().map_or("", String::as_str));
    Ok(())
}

/// Serves both clients. Returns the clients in the order in which their requests were admitted, and all
/// answers in order of arrival.
async fn serve(
    model: &Path,
    policy: impl Into<PolicyChoice>,
) -> Result<(Vec<String>, Vec<String>), Box<dyn std::error::Error>> {
    let builder = Engine::builder().model(model).context(512).sequences_max(1).policy(policy);
    let engine = builder.build().await?;
    let mut streams = Vec::new();
    for number in 1..=4 {
        let question = format!("Tell me {number} things about gravity.");
        let request = Request::ask(question).greedy().max_tokens(32).client("flood");
        streams.push(("flood", engine.generate(request).await?));
    }
    let request = Request::ask("What is gravity?").greedy().max_tokens(16).client("quiet");
    streams.push(("quiet", engine.generate(request).await?));

    let (mut admitted, mut answers) = (Vec::new(), Vec::new());
    for (client, mut stream) in streams {
        let mut answer = String::new();
        while let Some(token) = stream.next().await {
            answer.push_str(&token?.text);
        }
        let summary = stream.summary().ok_or("a stream without an end")?;
        admitted.push((summary.times.admitted, client.to_owned()));
        answers.push(answer);
    }
    admitted.sort();
    let admitted: Vec<String> = admitted.into_iter().map(|(_, client)| client).collect();
    println!("{:10} {}", engine.policy(), admitted.join(", "));
    Ok((admitted, answers))
}

/// On a phone, in virtual time. The request is alone there, so that no policy changes its times.
fn simulated() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::new("sd8gen3")?;
    let own = scenario.clone().policy(FairShare::default());
    let run = own.run()?;
    println!("{}, in virtual time: {:.0} ms to the first token", own.policy_name(), run.prefill_ms);
    assert_eq!(run, scenario.run()?);
    Ok(())
}
