//! A strategy of a user's own that panics: the engine and the simulator return an error with its text.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lapwing::plan::strategy::CpuOnly;
use lapwing::plan::{ChunkShape, PlanError, PlanInput, PromptRows, Route, Strategy};
use lapwing::simulate::Scenario;
use lapwing::{Engine, EngineBuilder, Error, ErrorKind, Prompt, Request};

use crate::support::collect_ids;

/// Which method panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum In {
    Route,
    ChunkRows,
}

/// Plans as `cpu-only` until it is armed, then panics.
struct Panics {
    place: In,
    armed: Arc<AtomicBool>,
}

impl Panics {
    fn new(place: In, armed: bool) -> Panics {
        Panics { place, armed: Arc::new(AtomicBool::new(armed)) }
    }

    fn panic(&self, place: In) {
        if self.place == place && self.armed.load(Ordering::Relaxed) {
            panic!("no idea about {place:?}");
        }
    }
}

impl Strategy for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        self.panic(In::ChunkRows);
        prompt.remaining.min(input.chunk_rows)
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        self.panic(In::Route);
        CpuOnly.route(input, shape)
    }
}

fn builder() -> EngineBuilder {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    Engine::builder().model(model).threads(1)
}

#[track_caller]
fn assert_says(error: &Error, place: In) {
    let text = format!("no idea about {place:?}");
    let Some(PlanError::Panicked { strategy, reason }) = error.plan_error() else {
        panic!("{error:?}");
    };
    assert_eq!((strategy.as_str(), reason), ("panics", &text));
    assert!(error.to_string().contains(&text), "{error}");
}

#[test]
fn an_engine_is_refused_with_the_text_of_its_strategys_panic() {
    for place in [In::Route, In::ChunkRows] {
        let built = builder().own_strategy(Panics::new(place, true)).build_blocking();
        let error = built.expect_err("a panic");
        assert_says(&error, place);
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}

#[tokio::test]
async fn a_plan_or_request_fails_with_the_text_and_the_engine_goes_on() {
    for place in [In::Route, In::ChunkRows] {
        let strategy = Panics::new(place, false);
        let armed = Arc::clone(&strategy.armed);
        let engine = builder().own_strategy(strategy).build().await.expect("an engine");
        let request =
            |rows| Request::new(Prompt::Ids(vec![5; rows])).greedy().ignore_eos().max_tokens(2);
        let ids = collect_ids(engine.generate(request(9)).await.expect("a stream")).await;
        armed.store(true, Ordering::Relaxed);
        assert_says(&engine.plan(77).expect_err("a panic"), place);
        assert_says(&engine.predict(77).expect_err("a panic"), place);
        if place == In::Route {
            assert_says(&engine.plan_decode(3, 50).expect_err("a panic"), place);
        }
        let mut stream = engine.generate(request(77)).await.expect("a stream");
        let mut failed = None;
        while let Some(token) = stream.next().await {
            failed = token.err();
        }
        assert_says(&failed.expect("a panic"), place);
        armed.store(false, Ordering::Relaxed);
        let again = collect_ids(engine.generate(request(9)).await.expect("a stream")).await;
        assert_eq!(again, ids, "the engine goes on");
    }
}

#[test]
fn a_scenario_fails_with_the_text() {
    for place in [In::Route, In::ChunkRows] {
        let scenario = Scenario::new("sd8gen3").expect("a preset");
        let scenario = scenario.own_strategy(Panics::new(place, true));
        let error = scenario.run().expect_err("a panic").to_string();
        assert!(error.contains(&format!("no idea about {place:?}")), "{error}");
    }
}
