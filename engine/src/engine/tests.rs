use std::path::Path;

use super::Engine;
use crate::config::PROMPT_THREADS;
use crate::error::{ErrorKind, RunError};
use crate::request::{Prompt, Request};
#[cfg(feature = "structured")]
use crate::stream::EndReason;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_long_prompts_are_read_by_a_few_threads() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let engine = Engine::builder().model(model).threads(1).build().await.expect("an engine");
    assert_eq!(engine.inner.prompts.threads(), 0, "none is started before it is needed");
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let engine = engine.clone();
        callers.spawn(async move { engine.generate(Request::text("word ".repeat(5000))).await });
    }
    while let Some(caller) = callers.join_next().await {
        let error = caller.expect("no panic").expect_err("a prompt that is too long");
        assert_eq!(error.kind(), ErrorKind::Request, "{error}");
    }
    let threads = engine.inner.prompts.threads();
    assert!((1..=PROMPT_THREADS).contains(&threads), "{threads} threads");
}

#[test]
fn a_request_that_cannot_run_is_an_error_before_its_stream() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let engine = Engine::builder().model(model).threads(1).context(16).build_blocking();
    let engine = engine.expect("an engine");
    let refused = |prompt: Prompt| {
        let error = engine.generate_blocking(Request::new(prompt)).expect_err("no stream");
        assert_eq!((error.kind(), error.http_status()), (ErrorKind::Request, 400), "{error}");
        error
    };
    for tokens in [16, 17, 400] {
        let error = refused(Prompt::Ids(vec![1; tokens]));
        let want = RunError::PromptTooLong { tokens, context: 16 };
        assert!(error.is_prompt_too_long());
        assert_eq!(error.run_error(), Some(&want));
    }
    assert!(engine.generate_blocking(Request::new(Prompt::Ids(vec![1; 15]))).is_ok());
    assert_eq!(refused(Prompt::Ids(Vec::new())).run_error(), Some(&RunError::EmptyPrompt));
    let outside = refused(Prompt::Ids(vec![u32::MAX]));
    assert!(matches!(outside.run_error(), Some(RunError::TokenId { id: u32::MAX, .. })));
    assert!(refused(Prompt::Chat(Vec::new())).to_string().contains("no messages"));
}

#[cfg(feature = "structured")]
#[tokio::test]
async fn an_answer_says_that_a_limit_has_cut_it_whether_it_is_divided_or_not() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let engine = Engine::builder().model(model).threads(1).build().await.expect("an engine");
    let request = Request::new(Prompt::Ids(vec![1, 2])).greedy().ignore_eos().max_tokens(3);
    for request in [request.clone(), request.divided()] {
        let stream = engine.generate(request).await.expect("a stream");
        let answer = stream.into_answer().await.expect("an answer");
        assert_eq!((&answer.reason, answer.is_cut()), (&Some(EndReason::Length), true));
    }
}
