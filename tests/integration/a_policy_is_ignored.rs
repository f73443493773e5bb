//! A queue policy reaches the engine, by name or as an object, and changes no token.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lapwing::policy::{Candidate, Charge, Fcfs, Nanos, PrefixView, QueuePolicy, Rank};
use lapwing::{ClientStats, Engine, ErrorKind, Prompt, Request, Shutdown};

use crate::support::collect_ids;

/// The youngest request goes first; what each client is charged is added up for the test.
#[derive(Clone, Default)]
struct Charges(Arc<Mutex<BTreeMap<String, (usize, usize)>>>);

impl QueuePolicy for Charges {
    fn name(&self) -> &str {
        "youngest-first"
    }

    fn rank(&self, request: &Candidate<'_>, _: &dyn PrefixView, _: Nanos) -> Rank {
        Rank::by(-(request.sequence.0 as f64))
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, _: Nanos) {
        let mut clients = self.0.lock().expect("no panic");
        let (prompt, generated) = clients.entry(request.client.to_string()).or_default();
        *prompt += charge.prompt_rows;
        *generated += charge.generated_tokens;
    }
}

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf")
}

/// Ids of the answers to the requests of three clients, one of which gives no name.
async fn answers(engine: &Engine) -> Vec<Vec<u32>> {
    let mut streams = Vec::new();
    for (number, client) in [Some("a"), Some("b"), None, Some("a")].into_iter().enumerate() {
        let prompt = Prompt::Ids((1..10 + number as u32).collect());
        let request = Request::new(prompt).greedy().ignore_eos().max_tokens(12);
        let request = client.into_iter().fold(request, Request::client);
        streams.push(engine.generate(request).await.expect("a stream"));
    }
    let mut answers = Vec::new();
    for stream in streams {
        answers.push(collect_ids(stream).await);
    }
    answers
}

#[tokio::test]
async fn a_policy_of_ones_own_sees_every_client_and_changes_no_token() {
    // Every row of the prompts is charged.
    let builder =
        || Engine::builder().model(tiny()).threads(1).sequences_max(2).prefix_cache(false);
    let plain = builder().build().await.expect("an engine");
    let expected = answers(&plain).await;
    assert_eq!((plain.policy(), expected[0].len()), ("fcfs", 12));

    let charges = Charges::default();
    let own = builder().policy(charges.clone()).build().await.expect("an engine");
    assert_eq!(own.policy(), "youngest-first");
    assert_eq!(answers(&own).await, expected);
    let charged = charges.0.lock().expect("no panic").clone();
    let of = |name: &str, prompt, generated| (name.to_owned(), (prompt, generated));
    let all = [of("a", 9 + 12, 24), of("anonymous", 11, 12), of("b", 10, 12)];
    assert_eq!(charged, BTreeMap::from(all));
}

#[tokio::test]
async fn a_policy_is_chosen_by_name_or_as_an_object() {
    let builder = || Engine::builder().model(tiny()).threads(1);
    let named = builder().policy("fcfs").build().await.expect("an engine");
    let object = builder().policy(Fcfs).build().await.expect("an engine");
    assert_eq!((named.policy(), object.policy()), ("fcfs", "fcfs"));
    let error = builder().policy("best").build().await.map(|_| ()).expect_err("unknown");
    let message = error.to_string();
    assert!(message.starts_with("policy is 'best', but must be one of fcfs, "), "{message}");
}

#[tokio::test]
async fn statistics_tell_what_each_client_got_and_who_was_refused() {
    let policy = "vtc:rpm.b=1";
    let builder = || Engine::builder().model(tiny()).threads(1).policy(policy);
    let engine = builder().prefix_cache(false).build().await.expect("an engine");
    answers(&engine).await;
    let prompt = Prompt::Ids((1..10).collect());
    let request = Request::new(prompt).greedy().max_tokens(2).client("b");
    let mut refused = engine.generate(request).await.expect("a stream");
    let error = refused.next().await.expect("an item").expect_err("the second one in a minute");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("'b'") && error.to_string().contains(" s"), "{error}");
    let stats = engine.stats().await.expect("it runs");
    assert_eq!((stats.waiting, stats.running, stats.kv_pages_leased), (0, 0, 0), "{stats:?}");
    let got = |name: Option<&str>| {
        let client = stats.clients.iter().find(|stats| stats.client.name() == name);
        let ClientStats { work, generated_tokens_last_minute, .. } = client.expect(policy);
        (work.finished, work.refused, work.prompt_tokens, *generated_tokens_last_minute)
    };
    assert_eq!(
        [Some("a"), Some("b"), None].map(got),
        [(2, 0, 21, 24), (1, 1, 10, 12), (1, 0, 11, 12)]
    );
    let times: Vec<usize> =
        stats.clients.iter().map(|stats| stats.latencies.ttft_ms.count).collect();
    assert_eq!((times.iter().sum(), times.iter().max()), (stats.latencies.ttft_ms.count, Some(&2)));
    assert!(stats.latencies.tpot_ms.p99 >= stats.latencies.tpot_ms.p50);
    assert_eq!((stats.all.finished, stats.all.generated_tokens, stats.all.refused), (4, 48, 1));
    let counter = stats.policy_numbers.iter().find(|(name, _)| name == "counter a");
    // More if it was lifted, because its second request came after the first one had ended.
    let service = 21.0 + 2.0 * 24.0;
    assert!(counter.is_some_and(|(_, counter)| *counter >= service), "{counter:?}");
    engine.shutdown(Shutdown::Drain).await.expect("an end");
    assert_eq!(engine.stats().await.expect_err("it has ended").kind(), ErrorKind::Engine);
}
