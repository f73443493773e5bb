//! KV events over ZeroMQ: one who reads them knows what the server has. `tests/serve/kv_events.py` reads them with pyzmq and msgspec.

mod peer;

use std::collections::BTreeMap;
use std::time::Duration;

use lapwing::Engine;
use lapwing::serve::{KvEventsAddress, ServeConfig, Server, ServerBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use self::peer::{END, Peer, unpack};
use super::{Client, Running, local, start, tiny, until};

fn publishing() -> ServeConfig {
    let mut config = local();
    config.kv_events.address = Some("tcp://127.0.0.1:0".to_owned());
    config.kv_events.replay = Some("tcp://127.0.0.1:0".to_owned());
    config
}

/// A server whose cache holds 16 pages of 32 tokens, and where it publishes.
async fn with_events(config: ServeConfig, model: &str) -> (Running, Vec<KvEventsAddress>) {
    let engine = |name| Engine::builder().model(tiny(name)).threads(1).cache_tokens(512);
    let models =
        Server::builder().model("tiny", engine(model)).model("other", engine("gemma2.gguf"));
    let server = models.config(config).bind().await.expect("a server");
    let published = server.kv_events().to_vec();
    let client = Client::new(server.address());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(server.run(async { drop(stopped.await) }));
    (Running { client, stop: Some(stop), task }, published)
}

/// A router that follows a server.
#[derive(Default)]
struct Router {
    /// Blocks by group and hash, with those before them.
    blocks: BTreeMap<(u64, u64), Option<u64>>,
    next: Option<u64>,
    gaps: usize,
    cleared: usize,
}

impl Router {
    fn apply(&mut self, number: &[u8], payload: &[u8]) {
        let number = u64::from_be_bytes(number.try_into().expect("8 bytes"));
        self.gaps += usize::from(self.next.is_some_and(|next| next != number));
        self.next = Some(number + 1);
        let batch = unpack(&mut &*payload);
        let group = |event: &Value| event["group_idx"].as_u64().unwrap_or(0);
        let hashes = |event: &Value| -> Vec<u64> {
            let hashes = event["block_hashes"].as_array().expect("hashes").iter();
            hashes.map(|hash| hash.as_u64().expect("a number")).collect()
        };
        for event in batch[1].as_array().expect("events") {
            match event["type"].as_str().expect("a type") {
                "AllBlocksCleared" => {
                    self.blocks.clear();
                    self.cleared += 1;
                }
                "BlockStored" => {
                    let mut before = event["parent_block_hash"].as_u64();
                    assert!(before.is_none_or(|before| self.blocks.contains_key(&(0, before))));
                    for hash in hashes(event) {
                        let known = self.blocks.insert((group(event), hash), before.replace(hash));
                        assert_eq!(known, None, "it is stored once");
                    }
                }
                _ => {
                    for hash in hashes(event) {
                        assert!(self.blocks.remove(&(group(event), hash)).is_some(), "it is known");
                    }
                }
            }
        }
    }

    /// Reads what comes until it knows what the server has of a model.
    async fn follow(&mut self, peer: &mut Peer, client: &Client, model: &str) {
        for _ in 0..600 {
            while let Ok(frames) = timeout(Duration::from_millis(100), peer.message()).await {
                let [topic, number, payload] = &frames[..] else { panic!("{frames:?}") };
                assert_eq!(String::from_utf8_lossy(topic), model);
                self.apply(number, payload);
            }
            if self.blocks == listed(client, model).await {
                return;
            }
        }
        panic!("the blocks of {model} are not known within a minute");
    }

    /// Applies what a server repeats from a number on.
    async fn catch_up(&mut self, replay: &mut Peer, from: u64) {
        replay.frame(1, b"").await;
        replay.frame(0, &from.to_be_bytes()).await;
        loop {
            let frames = replay.message().await;
            let [delimiter, topic, number, payload] = &frames[..] else { panic!("{frames:?}") };
            assert!(delimiter.is_empty());
            if **number == END.to_be_bytes() {
                assert!(topic.is_empty() && payload.is_empty());
                return;
            }
            self.apply(number, payload);
        }
    }
}

/// What a server says that it has.
async fn listed(client: &Client, model: &str) -> BTreeMap<(u64, u64), Option<u64>> {
    let listed = client.get(&format!("/debug/blocks?model={model}")).await.json();
    let hash = |hash: &Value| u64::from_str_radix(hash.as_str()?, 16).ok();
    let blocks = listed["blocks"].as_array().expect("blocks").iter();
    let one = |block: &Value| {
        let group = block["group"].as_u64().expect("a group");
        ((group, hash(&block["hash"]).expect("a hash")), hash(&block["parent"]))
    };
    blocks.map(one).collect()
}

/// Requests that begin alike and part at different places.
async fn ask(client: &Client, model: &str, count: usize) {
    for nth in 0..count {
        let ids: Vec<usize> = (0..40 + 11 * (nth % 9))
            .map(|at| if at < 17 * (nth % 5) { 20 + at } else { 30 + (nth * 7 + at) % 90 })
            .collect();
        let mut body =
            json!({ "model": model, "prompt": ids, "max_tokens": 3, "ignore_eos": true });
        if nth % 3 == 2 {
            body["cache_salt"] = "alice".into();
        }
        let answer = client.post("/v1/completions", &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[tokio::test]
async fn one_who_reads_the_events_knows_what_each_model_has() {
    let (running, published) = with_events(publishing(), "llama.gguf").await;
    let names: Vec<&str> = published.iter().map(|of| &*of.model).collect();
    assert_eq!(names, ["tiny", "other"], "each has sockets of its own");
    for of in &published {
        let (mut peer, mut router) = (Peer::subscribe(&of.address, "").await, Router::default());
        assert!(listed(&running.client, &of.model).await.is_empty(), "it is not loaded yet");
        ask(&running.client, &of.model, 30).await;
        router.follow(&mut peer, &running.client, &of.model).await;
        assert!(
            router.blocks.len() > 8 && router.gaps == 0,
            "{} {}",
            router.blocks.len(),
            router.gaps
        );
        let mut other = Peer::subscribe(&of.address, "no such topic").await;
        ask(&running.client, &of.model, 5).await;
        router.follow(&mut peer, &running.client, &of.model).await;
        assert!(timeout(Duration::from_millis(200), other.message()).await.is_err());
        let body = json!({ "model": of.model, "prompt": "ab", "raw": true, "stream": false, "keep_alive": 0 });
        assert_eq!(running.client.post("/api/generate", &body).await.status, 200);
        until("it is unloaded", async || listed(&running.client, &of.model).await.is_empty()).await;
        router.follow(&mut peer, &running.client, &of.model).await;
        assert!(router.blocks.is_empty() && router.cleared >= 2);
        ask(&running.client, &of.model, 2).await;
        router.follow(&mut peer, &running.client, &of.model).await;
        assert!(!router.blocks.is_empty() && router.gaps == 0, "it is loaded again");
    }
    let state = running.client.get("/debug/state").await.json();
    assert_eq!(state["models"][1]["kv_events"]["address"], json!(published[1].address));
    assert_eq!(state["models"][1]["kv_events"]["topic"], "other");
    running.stop().await;
}

#[tokio::test]
async fn one_who_comes_late_or_loses_batches_gets_them_again() {
    let mut config = publishing();
    config.kv_events.batches_max = 8;
    let (running, published) = with_events(config, "llama.gguf").await;
    let (live, replay) = (&published[0].address, published[0].replay.as_deref().expect("a socket"));
    // Nothing is there yet: the answer is empty.
    let mut again = Peer::connect(replay, "DEALER").await;
    let mut router = Router::default();
    router.catch_up(&mut again, 0).await;
    assert_eq!(router.next, None);
    // This subscriber reads nothing. The others do not wait for it.
    let mut stalled = Peer::subscribe(live, "tiny").await;
    ask(&running.client, "tiny", 40).await;
    // The first batches are gone. All is told again, to everybody.
    let mut peer = Peer::subscribe(live, "").await;
    router.catch_up(&mut again, 0).await;
    assert!(router.cleared >= 1);
    let known = router.blocks.clone();
    router.gaps = 0;
    let mut told = Router::default();
    told.follow(&mut peer, &running.client, "tiny").await;
    assert_eq!((told.blocks == known, told.cleared), (true, 1), "the other one is told, too");
    // Those that are kept are repeated from the number on.
    ask(&running.client, "tiny", 3).await;
    told.follow(&mut peer, &running.client, "tiny").await;
    router.catch_up(&mut again, router.next.expect("a number")).await;
    assert_eq!((router.blocks == told.blocks, router.gaps), (true, 0));
    // What the slow one finds at last has a gap, or is all that there was.
    let mut slow = Router::default();
    while let Ok(frames) = timeout(Duration::from_millis(500), stalled.message()).await {
        if slow.next.is_some_and(|next| next.to_be_bytes() != frames[1][..]) {
            slow.catch_up(&mut again, slow.next.expect("a number")).await;
        }
        if slow.next.is_none_or(|next| next.to_be_bytes() == frames[1][..]) {
            slow.apply(&frames[1], &frames[2]);
        }
    }
    assert_eq!(slow.blocks, told.blocks);
    running.stop().await;
}

#[tokio::test]
async fn states_are_blocks_of_a_group_of_their_own() {
    let (running, published) = with_events(publishing(), "lfm2.gguf").await;
    let mut peer = Peer::subscribe(&published[0].address, "").await;
    let mut router = Router::default();
    ask(&running.client, "tiny", 20).await;
    router.follow(&mut peer, &running.client, "tiny").await;
    let states = router.blocks.keys().filter(|(group, _)| *group == 1);
    let with_rows = states.filter(|(_, hash)| router.blocks.contains_key(&(0, *hash))).count();
    assert!(with_rows > 0, "{:?}", router.blocks);
    running.stop().await;
}

#[tokio::test]
async fn a_peer_that_breaks_the_protocol_is_left() {
    let (running, published) = with_events(publishing(), "llama.gguf").await;
    let address = published[0].address.strip_prefix("tcp://").expect("TCP").to_owned();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0; 64]] {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        let padded = [bytes, &[0; 64]].concat();
        stream.write_all(&padded).await.expect("it is read");
        let mut rest = Vec::new();
        let ended = timeout(Duration::from_secs(30), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "{bytes:?}: the connection is closed");
    }
    let mut peer = Peer::subscribe(&published[0].address, "").await;
    peer.stream.write_all(&[2, 0, 0, 1, 0, 0, 0, 0, 0]).await.expect("the head of a long frame");
    let ended = timeout(Duration::from_secs(30), peer.stream.read_u8()).await;
    assert!(ended.is_ok_and(|byte| byte.is_err()), "a frame of a tebibyte is not awaited");
    running.stop().await;
}

/// Why a server with these settings cannot start.
async fn refused(set: impl FnOnce(&mut ServeConfig)) -> String {
    let mut config = local();
    set(&mut config);
    let builder: ServerBuilder = super::with_llama(config);
    builder.bind().await.expect_err("it cannot start").to_string()
}

#[tokio::test]
async fn addresses_that_cannot_be_published_on_are_named() {
    let error = refused(|config| config.kv_events.replay = Some("tcp://127.0.0.1:0".into())).await;
    assert!(error.contains("kv_events.replay") && error.contains("--kv-events"), "{error}");
    let error = refused(|config| config.kv_events.address = Some("127.0.0.1:1".into())).await;
    assert!(error.contains("tcp://127.0.0.1:5557"), "{error}");
    let error = refused(|config| config.kv_events.address = Some("tcp://*:0".into())).await;
    assert!(error.contains("--public"), "{error}");
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let address = format!("tcp://{}", taken.local_addr().expect("an address"));
    let error = refused(|config| config.kv_events.address = Some(address.clone())).await;
    assert!(error.contains(&address) && error.contains("--kv-events"), "{error}");
}

#[tokio::test]
async fn without_an_address_nothing_is_published() {
    let running = start(super::with_llama(local())).await;
    ask(&running.client, "tiny", 1).await;
    let state = running.client.get("/debug/state").await.json();
    assert_eq!(state["models"][0]["kv_events"], Value::Null);
    assert_eq!(listed(&running.client, "tiny").await.len(), 2, "what is there is listed");
    running.stop().await;
}
