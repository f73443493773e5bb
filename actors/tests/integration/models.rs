//! Two models in one engine: requests of both run concurrently on the same devices, each with its
//! model's planner, KV cache and limits.

use std::sync::Arc;

use lapwing_actors::RunError;
use lapwing_actors::message::{StreamEvent, Traced};
use lapwing_plan::strategy::LayerSplit;
use lapwing_traces::event::Activity;
use lapwing_traces::{Nanos, Scope, Timeline};

use crate::oracle::foretell;
use crate::support::{generate, prompt};
use crate::two_models::{Engine, Setup};

fn engine(context_of_draft: usize) -> Engine {
    Engine::new(&Setup {
        strategies: [Arc::new(LayerSplit), Arc::new(LayerSplit)],
        chunk_rows: 8,
        wrong: None,
        rates: [(70, 9); 3],
        context_of_draft,
        ..Setup::default()
    })
}

fn submit(engine: &mut Engine, model: usize, at: u64, ids: &[u32], tokens: usize) -> Events {
    Events(engine.send(model, Nanos(at), ids, generate(ids, tokens)))
}

struct Events(flume::Receiver<Traced<StreamEvent>>);

impl Events {
    fn tokens(&self) -> Vec<u32> {
        let token = |event: Traced<StreamEvent>| match event.message {
            StreamEvent::Token(token) => Some(token.id),
            StreamEvent::Failed(error) => panic!("{error}"),
            _ => None,
        };
        self.0.try_iter().filter_map(token).collect()
    }

    fn error(&self) -> Option<RunError> {
        self.0.try_iter().find_map(|event| match event.message {
            StreamEvent::Failed(error) => Some(error),
            _ => None,
        })
    }
}

#[test]
fn requests_of_both_models_run_side_by_side_with_the_tokens_of_their_model() {
    let mut engine = engine(128);
    engine.sim.recorder().set_scope(Scope::All);
    let requests: Vec<(Vec<u32>, usize, Events)> = (0..8)
        .map(|number| {
            let (model, ids) = (number % 2, prompt(number as u32, 5 + 7 * number));
            let events = submit(&mut engine, model, 40_000 * number as u64, &ids, 12);
            (ids, 12, events)
        })
        .collect();
    engine.sim.run();
    for (ids, tokens, events) in &requests {
        assert_eq!(events.tokens(), foretell(ids, *tokens).0);
    }
    engine.assert_empty("two models");
    // Requests alternate between the models, and stages of both ran at the same time.
    let timeline = Timeline::new(&engine.sim.recorder().recording());
    let stages = || {
        let stages = timeline.spans.iter().filter(|s| s.activity == Activity::Compute);
        stages.filter_map(|s| Some((s.tags.request? % 2, s.start, s.end)))
    };
    let overlap = stages().any(|(model, start, end)| {
        stages().any(|other| other.0 != model && other.1 < end && start < other.2)
    });
    assert!(overlap, "the models took turns");
}

#[test]
fn each_model_has_its_own_limits() {
    let mut engine = engine(16);
    let ids = prompt(3, 20);
    let (target, draft) = (submit(&mut engine, 0, 0, &ids, 4), submit(&mut engine, 1, 0, &ids, 4));
    let unknown = submit(&mut engine, 2, 0, &ids, 4);
    engine.sim.run();
    assert_eq!(target.tokens(), foretell(&ids, 4).0);
    assert_eq!(draft.error(), Some(RunError::PromptTooLong { tokens: 20, context: 16 }));
    assert_eq!(unknown.error(), Some(RunError::UnknownModel { model: 2, models: 2 }));
    engine.assert_empty("two models");
}
