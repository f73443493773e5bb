//! Calls with impossible arguments, strategies that panic, and a model file that changes: typed errors, and
//! the engine goes on where it can.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lapwing::plan::strategy::CpuOnly;
use lapwing::plan::{ChunkShape, PlanError, PlanInput, PromptRows, Route, Strategy};
use lapwing::{Engine, EngineBuilder, Error, ErrorKind, Prompt, Request, SamplingParams};

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf")
}

fn builder() -> EngineBuilder {
    Engine::builder().model(tiny()).threads(1)
}

async fn text_of(engine: &Engine, request: Request) -> Result<String, Error> {
    engine.generate(request).await?.into_text().await
}

fn greedy() -> Request {
    Request::text("ab").greedy().ignore_eos().max_tokens(6)
}

#[tokio::test]
async fn sizes_beyond_the_engine_are_refused_by_every_plan() {
    let engine = builder().build().await.expect("an engine");
    for (sequences, context, named) in [
        (usize::MAX, 1, "sequences"),
        (1 << 40, 1, "sequences"),
        (0, 1, "sequences"),
        (1, usize::MAX, "context"),
        (1, 1 << 40, "context"),
    ] {
        let error = engine.plan_decode(sequences, context).expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().starts_with(named), "{error}");
    }
    assert!(engine.plan_decode(1, engine.context()).is_ok());
    for length in [0, usize::MAX, 1 << 40] {
        assert!(engine.plan(length).is_err() && engine.predict(length).is_err());
    }
}

#[tokio::test]
async fn a_bias_on_a_token_that_does_not_exist_is_refused() {
    let engine = builder().build().await.expect("an engine");
    let vocab = engine.tokenizer().vocab_size() as u32;
    let biased = |id: u32| {
        let sampling = SamplingParams { logit_bias: vec![(id, 5.0)], ..SamplingParams::greedy() };
        greedy().sampling(sampling)
    };
    for id in [vocab, u32::MAX] {
        let error = text_of(&engine, biased(id)).await.expect_err("no such token");
        assert_eq!(error.kind(), ErrorKind::Request);
        assert!(error.to_string().contains(&format!("logit_bias has token id {id}")), "{error}");
    }
    text_of(&engine, biased(vocab - 1)).await.expect("the last token");
}

/// Panics in the named function for chunks of some sizes.
struct Panics {
    function: &'static str,
    at: fn(usize) -> bool,
}

impl Strategy for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        let rows = prompt.remaining.min(input.chunk_rows);
        assert!(self.function != "chunk_rows" || !(self.at)(rows), "no chunk of {rows} rows");
        rows
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let rows = shape.rows;
        assert!(self.function != "route" || !(self.at)(rows), "no route for {rows} rows");
        CpuOnly.route(input, shape)
    }
}

#[tokio::test]
async fn a_strategy_that_panics_is_an_error_with_its_text() {
    for (function, text) in [("route", "no route for"), ("chunk_rows", "no chunk of")] {
        let whole = format!("strategy 'panics' panicked: {text}");
        let always = builder().own_strategy(Panics { function, at: |_| true }).build().await;
        let error = always.expect_err("a panic while building");
        assert!(error.to_string().starts_with(&whole), "{error}");
        assert!(matches!(error.plan_error(), Some(PlanError::Panicked { .. })), "{error:?}");

        // The largest chunk is planned while building, one of 40 rows later.
        let engine = builder().own_strategy(Panics { function, at: |rows| rows == 40 }).build();
        let engine = engine.await.expect("an engine");
        assert!(engine.plan(20).is_ok());
        let error = engine.plan(40).expect_err("a panic in a plan");
        assert!(error.to_string().starts_with(&format!("{whole} 40 rows")), "{error}");
        let prompt = Request::new(Prompt::Ids(vec![5; 40])).greedy().max_tokens(1);
        let error = text_of(&engine, prompt).await.expect_err("a panic in a request");
        assert!(error.to_string().contains(&format!("{text} 40 rows")), "{error}");
    }
}

#[tokio::test]
async fn a_model_truncated_under_a_running_engine_is_an_error_that_names_file_and_tensor() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    fs::copy(tiny(), &path).expect("a copy");
    let engine = Engine::builder().model(&path).threads(1).build().await.expect("an engine");
    let want = text_of(&engine, greedy()).await.expect("an answer");
    let file = fs::File::options().write(true).open(&path).expect("a file");
    file.set_len(5000).expect("truncated");
    // The rows of this model's embedding table are read when they are needed.
    let error = text_of(&engine, greedy()).await.expect_err("a truncated file").to_string();
    assert!(error.contains("token_embd.weight") && error.contains("model.gguf"), "{error}");
    drop(engine);
    fs::copy(tiny(), &path).expect("restored");
    let engine = Engine::builder().model(&path).threads(1).build().await.expect("an engine");
    assert_eq!(text_of(&engine, greedy()).await.expect("an answer"), want);
}
