use std::path::Path;

use super::Engine;
use crate::config::PROMPT_THREADS;
use crate::error::ErrorKind;
use crate::request::Request;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_long_prompts_are_read_by_a_few_threads() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let engine = Engine::builder().model(model).threads(1).build().await.expect("an engine");
    assert_eq!(engine.inner.prompts.threads(), 0, "none is started before it is needed");
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let engine = engine.clone();
        callers.spawn(async move {
            let mut stream = engine.generate(Request::text("word ".repeat(5000))).await?;
            stream.next().await.expect("an item")
        });
    }
    while let Some(caller) = callers.join_next().await {
        let error = caller.expect("no panic").expect_err("a prompt that is too long");
        assert_eq!(error.kind(), ErrorKind::Request, "{error}");
    }
    let threads = engine.inner.prompts.threads();
    assert!((1..=PROMPT_THREADS).contains(&threads), "{threads} threads");
}
