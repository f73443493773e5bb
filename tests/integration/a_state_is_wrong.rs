//! A model whose layers keep a state has the same answers in any chunks, beside any requests, after preemption, with drafts, and on from the
//! states that earlier requests have kept.

use std::path::{Path, PathBuf};

use lapwing::devices::DeviceSpec;
use lapwing::draft::DraftChoice;
use lapwing::{Engine, EngineBuilder, ErrorKind, KvDtype, Prompt, Requant, Request, Shutdown};

const MODELS: [&str; 6] = ["lfm2", "lfm2-windows", "qwen35", "nemotron_h", "mamba", "jamba"];

fn builder(name: &str) -> EngineBuilder {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny");
    Engine::builder().model(tiny.join(format!("{name}.gguf"))).threads(2).chunk_rows(20)
}

/// Ids and the bits of their log-probabilities.
type Answer = Vec<(u32, u32)>;

fn request(ids: &[u32]) -> Request {
    Request::new(Prompt::Ids(ids.to_vec())).greedy().ignore_eos().max_tokens(40)
}

fn prompt(len: u32, step: u32) -> Vec<u32> {
    (0..len).map(|at| (at * at + step * at + step) % 128).collect()
}

/// The answers to prompts that are asked at the same time, and how many of their tokens were cached.
async fn together(engine: &Engine, prompts: &[Vec<u32>]) -> (Vec<Answer>, Vec<usize>) {
    let mut streams = Vec::new();
    for ids in prompts {
        streams.push(engine.generate(request(ids)).await.expect("a stream"));
    }
    let (mut answers, mut cached) = (Vec::new(), Vec::new());
    for mut stream in streams {
        let mut answer = Vec::new();
        while let Some(token) = stream.next().await {
            let token = token.expect("a token");
            answer.push((token.id, token.logprob.to_bits()));
        }
        cached.push(stream.summary().expect("an end").times.cached_tokens);
        answers.push(answer);
    }
    (answers, cached)
}

/// The same, one after the other.
async fn alone(engine: &Engine, prompts: &[Vec<u32>]) -> (Vec<Answer>, Vec<usize>) {
    let (mut answers, mut cached) = (Vec::new(), Vec::new());
    for ids in prompts {
        let (mut answer, mut known) = together(engine, std::slice::from_ref(ids)).await;
        answers.append(&mut answer);
        cached.append(&mut known);
    }
    (answers, cached)
}

fn prompts() -> Vec<Vec<u32>> {
    [(1, 3), (33, 5), (64, 7), (90, 9), (7, 11)].map(|(len, step)| prompt(len, step)).to_vec()
}

#[tokio::test]
async fn chunks_neighbours_devices_and_preemption_change_no_bit() {
    for name in MODELS {
        let off = || builder(name).prefix_cache(false);
        let whole = off().chunk_rows(512).threads(1).build().await.expect("an engine");
        let (wanted, _) = alone(&whole, &prompts()).await;
        for chunk in [1, 7, 32, 64] {
            let engine = off().chunk_rows(chunk).build().await.expect("an engine");
            assert_eq!(together(&engine, &prompts()).await.0, wanted, "{name} in {chunk}");
        }
        let devices = DeviceSpec::list("cpu+gpu=throttled:gflops=40,gbps=8").expect("devices");
        let engine = off().devices(devices).build().await.expect("an engine");
        assert_eq!(together(&engine, &prompts()).await.0, wanted, "{name} on two devices");
        // Room for the longest request and two pages more.
        let engine = off().context(160).cache_tokens(192).build().await.expect("an engine");
        assert_eq!(together(&engine, &prompts()).await.0, wanted, "{name} in little memory");
        let work = engine.stats().await.expect("stats").all;
        assert!(work.preempted > 0, "{name}: {work:?}");
    }
}

#[tokio::test]
async fn requests_go_on_where_earlier_ones_kept_their_states() {
    for (name, kv) in MODELS.into_iter().zip([KvDtype::F16, KvDtype::I8]) {
        let mut ids = prompt(75, 4);
        let mut all = vec![ids.clone(), ids.clone()];
        ids.truncate(70);
        ids.extend([9, 8, 7]);
        all.push(ids.clone());
        ids.extend(prompt(60, 6));
        all.push(ids);
        let off = builder(name).kv(kv).prefix_cache(false).build().await.expect("an engine");
        let (wanted, none) = alone(&off, &all).await;
        assert_eq!(none, [0; 4], "{name}");
        let folder = tempfile::tempdir().expect("a folder");
        let on = || builder(name).kv(kv).keep_prefixes(folder.path());
        let engine = on().build().await.expect("an engine");
        assert_eq!(alone(&engine, &all).await, (wanted.clone(), vec![0, 64, 64, 64]), "{name}");
        assert_eq!(together(&engine, &all).await.0, wanted, "{name}: at the same time");
        engine.shutdown(Shutdown::Drain).await.expect("an end");
        let again = on().build().await.expect("an engine");
        assert_eq!(alone(&again, &all).await, (wanted, vec![64, 64, 64, 128]), "{name}: kept");
    }
}

#[tokio::test]
async fn equal_prompts_at_the_same_time_share_pages_and_have_equal_answers() {
    let engine = builder("lfm2").build().await.expect("an engine");
    let all = vec![prompt(70, 4); 4];
    let (answers, cached) = together(&engine, &all).await;
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(cached, [0, 64, 64, 64]);
}

#[tokio::test]
async fn a_conversation_goes_on_at_the_end_of_the_answer() {
    for name in MODELS {
        let off = builder(name).prefix_cache(false).build().await.expect("an engine");
        let on = builder(name).build().await.expect("an engine");
        let (mut ids, mut known) = (prompt(33, 5), 0);
        for turn in 0..3 {
            let (wanted, _) = alone(&off, std::slice::from_ref(&ids)).await;
            let (found, cached) = alone(&on, std::slice::from_ref(&ids)).await;
            assert_eq!((&found, cached[0]), (&wanted, known), "{name}, turn {turn}");
            ids.extend(found[0].iter().map(|(id, _)| id));
            // The row of the last token has not been computed.
            known = ids.len() - 1;
            ids.extend(prompt(9, turn));
        }
    }
}

#[tokio::test]
async fn drafts_change_no_bit() {
    let tiny: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny");
    let path = |name: &str| tiny.join(name).display().to_string();
    for name in MODELS {
        let plain = builder(name).build().await.expect("an engine");
        let (wanted, _) = alone(&plain, &prompts()).await;
        let mut rejected = 0;
        for draft in [DraftChoice::lookup(), DraftChoice::model(path("qwen3-keys.gguf"))] {
            let engine = builder(name).draft(draft.clone()).build().await.expect("an engine");
            let (found, _) = alone(&engine, &prompts()).await;
            assert_eq!(found, wanted, "{name} with {}", draft.name());
            assert_eq!(together(&engine, &prompts()).await.0, wanted, "{name} at once");
            // The first draft of a request is verified, whether it pays or not.
            let mut stream = engine.generate(request(&[7, 9, 7, 9, 7, 9])).await.expect("a stream");
            while stream.next().await.is_some() {}
            let drafts = stream.summary().expect("an end").drafts.clone().expect("drafts");
            rejected += drafts.drafted - drafts.accepted;
        }
        assert!(rejected > 0, "{name}: no draft is rejected");
    }
}

#[tokio::test]
async fn a_draft_model_with_states_is_refused() {
    let tiny: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny");
    let drafts = [
        ("qwen3-keys", DraftChoice::model(tiny.join("lfm2.gguf").display().to_string())),
        ("lfm2", DraftChoice::own(Requant::Q8_0)),
    ];
    for (name, draft) in drafts {
        let error = builder(name).draft(draft).build().await.expect_err("a refusal");
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains("keep no state"), "{error}");
    }
}
