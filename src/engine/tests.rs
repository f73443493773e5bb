use std::path::Path;

use super::Engine;
use crate::config::PROMPT_THREADS;
use crate::error::ErrorKind;
use crate::request::Request;

/// Threads of this process that turn prompts into ids. No other test of this crate has an engine.
fn prompt_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("the list of threads");
    let names = threads.filter_map(|thread| {
        std::fs::read_to_string(thread.expect("a thread").path().join("comm")).ok()
    });
    names.filter(|name| name.trim_end() == "lapwing-prompt").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_long_prompts_are_read_by_a_few_threads() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let engine = Engine::builder().model(model).threads(1).build().await.expect("an engine");
    assert_eq!(prompt_threads(), 0, "none is started before it is needed");
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let engine = engine.clone();
        callers.spawn(async move {
            let mut stream = engine.generate(Request::text("word ".repeat(5000))).await?;
            stream.next().await.expect("an item")
        });
    }
    let mut most = 0;
    while let Some(caller) = callers.join_next().await {
        let error = caller.expect("no panic").expect_err("a prompt that is too long");
        assert_eq!(error.kind(), ErrorKind::Request, "{error}");
        most = most.max(prompt_threads());
    }
    assert!((1..=PROMPT_THREADS).contains(&most), "{most} threads");
}
