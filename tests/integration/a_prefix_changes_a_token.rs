//! The prefix cache changes no bit of an answer, and knows what was computed before.

use std::path::{Path, PathBuf};

use lapwing::devices::DeviceSpec;
use lapwing::draft::DraftChoice;
use lapwing::traces::RequestTimes;
use lapwing::{Engine, EngineBuilder, KvDtype, Prompt, Request, Shutdown};

use crate::cases::cases;

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf")
}

fn builder() -> EngineBuilder {
    Engine::builder().model(tiny()).threads(2).chunk_rows(20)
}

/// Ids and the bits of their log-probabilities.
type Answer = Vec<(u32, u32)>;

async fn ask(engine: &Engine, request: Request) -> (Answer, RequestTimes) {
    let mut stream = engine.generate(request).await.expect("a stream");
    let mut answer = Vec::new();
    while let Some(token) = stream.next().await {
        let token = token.expect("a token");
        answer.push((token.id, token.logprob.to_bits()));
    }
    (answer, stream.summary().expect("an end").times)
}

fn request(ids: &[u32]) -> Request {
    Request::new(Prompt::Ids(ids.to_vec())).greedy().ignore_eos().max_tokens(12)
}

fn prompt(len: u32) -> Vec<u32> {
    (0..len).map(|at| 1 + (at * at + 3 * at) % 200).collect()
}

/// The prompts of a conversation of four messages: each continues the last answer. Then the first two messages
/// with another third one.
async fn conversation(engine: &Engine) -> (Vec<Answer>, Vec<usize>) {
    let (mut answers, mut cached) = (Vec::new(), Vec::new());
    let (mut ids, mut second) = (prompt(45), Vec::new());
    for turn in 0..4 {
        let (answer, times) = ask(engine, request(&ids)).await;
        ids.extend(answer.iter().map(|(id, _)| *id));
        ids.extend([7, 8, turn]);
        if turn == 1 {
            second = ids.clone();
        }
        answers.push(answer);
        cached.push(times.cached_tokens);
    }
    second.push(99);
    let (answer, times) = ask(engine, request(&second)).await;
    answers.push(answer);
    cached.push(times.cached_tokens);
    (answers, cached)
}

#[tokio::test]
async fn a_conversation_has_the_same_bits_with_and_without_the_cache() {
    let throttled = "cpu+gpu=throttled:gflops=40,gbps=8";
    for devices in cases(&["cpu"][..], &["cpu", throttled]) {
        for kv in KvDtype::ALL {
            for draft in [DraftChoice::none(), DraftChoice::lookup()] {
                let what = format!("{devices}, {kv}, {}", draft.name());
                let devices = DeviceSpec::list(devices).expect("devices");
                let builder = builder().kv(kv).draft(draft).devices(devices);
                let off = builder.clone().prefix_cache(false).build().await.expect("an engine");
                let (wanted, none) = conversation(&off).await;
                assert_eq!(none, [0; 5], "{what}");
                let on = builder.build().await.expect("an engine");
                let (found, cached) = conversation(&on).await;
                assert_eq!(found, wanted, "{what}");
                // Each turn knows all but the last generated token of the one before, and its own message.
                assert_eq!(cached, [0, 56, 71, 86, 75], "{what}");
            }
        }
    }
}

#[tokio::test]
async fn requests_choose_with_whom_they_share() {
    let engine = builder().build().await.expect("an engine");
    let ids = prompt(40);
    let rows = [
        (request(&ids), 0, "the first"),
        (request(&ids), 39, "again"),
        (request(&ids).cache_salt("mine"), 0, "with a salt"),
        (request(&ids).cache_salt("yours"), 0, "with another"),
        (request(&ids).cache_salt("mine"), 39, "with the salt again"),
        (request(&ids).prefix_cache(false), 0, "without"),
    ];
    let mut first = None;
    for (request, cached, what) in rows {
        let (answer, times) = ask(&engine, request).await;
        assert_eq!(times.cached_tokens, cached, "{what}");
        assert_eq!(&answer, first.get_or_insert_with(|| answer.clone()), "{what}");
    }
}

/// The answer to a prompt by a new engine, how many of its tokens were cached, and what the engine notes.
async fn run(builder: EngineBuilder) -> (Answer, usize, String) {
    let engine = builder.build().await.expect("an engine");
    let notes = engine.notes().join("\n");
    let (answer, times) = ask(&engine, request(&prompt(150))).await;
    engine.shutdown(Shutdown::Drain).await.expect("an end");
    (answer, times.cached_tokens, notes)
}

#[tokio::test]
async fn prefixes_are_kept_between_engines_of_the_same_settings_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("new/prefixes");
    let builder = || builder().keep_prefixes(&kept);
    let files =
        || std::fs::read_dir(&kept).expect("a folder").map(|entry| entry.expect("a file").path());
    let (wanted, cached, _) = run(builder()).await;
    assert_eq!(cached, 0);
    let again = run(builder()).await;
    assert_eq!(again, (wanted.clone(), 149, String::new()));
    assert_eq!(run(builder().kv(KvDtype::F32)).await.1, 0, "another type of keys and values");
    assert_eq!(run(builder().kv(KvDtype::F32)).await.1, 149);
    assert_eq!(run(builder()).await.1, 149, "each has its own file");

    for file in files() {
        let mut bytes = std::fs::read(&file).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, bytes).expect("a file");
    }
    let (answer, cached, notes) = run(builder()).await;
    assert_eq!((answer, cached), (wanted, 0));
    assert!(notes.contains("are not used: it is damaged (a page)"), "{notes}");
    assert_eq!(run(builder()).await.1, 149, "the damaged file was replaced");

    let blocked = folder.path().join("a file");
    std::fs::write(&blocked, "").expect("a file");
    let engine = builder().keep_prefixes(&blocked).build().await.expect("an engine");
    let error = engine.shutdown(Shutdown::Drain).await.expect_err("no folder");
    assert!(error.to_string().contains("prefixes cannot be kept in"), "{error}");
}
