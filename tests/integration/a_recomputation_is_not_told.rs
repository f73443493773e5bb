//! A request says how many tokens of its prompt are computed again though they are known, because states of layers are kept behind some
//! tokens only.

use std::path::Path;

use lapwing::{Engine, Prompt, Request, RequestTimes};

async fn engine(name: &str) -> Engine {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny");
    let builder = Engine::builder().model(tiny.join(format!("{name}.gguf"))).threads(2);
    builder.build().await.expect("an engine")
}

fn request(ids: &[u32], tokens: usize) -> Request {
    Request::new(Prompt::Ids(ids.to_vec())).greedy().ignore_eos().max_tokens(tokens)
}

/// Tokens of a text, and from some place on those of another one.
fn text(common: u32, other: u32) -> Vec<u32> {
    (0..90).map(|at| if at < common { at * at % 113 } else { (at * other + 3) % 113 }).collect()
}

async fn times(engine: &Engine, ids: &[u32]) -> RequestTimes {
    let mut stream = engine.generate(request(ids, 4)).await.expect("a stream");
    while let Some(token) = stream.next().await {
        token.expect("a token");
    }
    stream.summary().expect("an end").times
}

#[tokio::test]
async fn known_tokens_are_cached_or_computed_again() {
    for (name, has_state) in [("qwen35", true), ("lfm2", true), ("qwen3", false)] {
        let engine = engine(name).await;
        let first = times(&engine, &text(90, 0)).await;
        assert_eq!((first.cached_tokens, first.recomputed_tokens), (0, 0), "{name}");
        for (common, other) in [(50, 5), (75, 7)] {
            let found = times(&engine, &text(common, other)).await;
            let known = found.cached_tokens + found.recomputed_tokens;
            assert_eq!(known, common as usize, "{name}: {found:?}");
            assert_eq!(found.recomputed_tokens > 0, has_state, "{name}: {found:?}");
        }
        // States are kept at the last border of pages since, before the place where the two parted.
        let again = times(&engine, &text(75, 11)).await;
        let expected = if has_state { (64, 11) } else { (75, 0) };
        assert_eq!((again.cached_tokens, again.recomputed_tokens), expected, "{name}");
        let all = engine.stats().await.expect("the state").all;
        assert_eq!(all.recomputed_tokens > 0, has_state, "{name}");
    }
}

#[tokio::test]
async fn a_running_request_is_reported_with_its_counts() {
    let engine = engine("qwen35").await;
    times(&engine, &text(90, 0)).await;
    let mut stream = engine.generate(request(&text(50, 5), 200)).await.expect("a stream");
    for _ in 0..3 {
        stream.next().await.expect("a token").expect("no error");
    }
    let requests = engine.stats().await.expect("the state").requests;
    let [running] = requests[..] else { panic!("{requests:?}") };
    assert_eq!(running.prompt_tokens, 90);
    assert_eq!(running.computed_tokens, 90);
    assert_eq!(running.cached_tokens + running.recomputed_tokens, 50);
    assert!((1..=200).contains(&running.generated_tokens), "{running:?}");
}
