//! Plans that were stored are those that a strategy would solve again, and others are not used.

use std::sync::Arc;

use lapwing_plan::moment::Candidate;
use lapwing_plan::plans::{Planned, Plans, PlansError, PlansSubject};
use lapwing_plan::strategy::{ChunkShape, PlanInput, PromptRows, Strategy, StrategyOptions, all};
use lapwing_plan::{PlanError, Route};

use crate::setup::{Setup, decode};
use crate::support::prefill;

fn subject() -> PlansSubject {
    PlansSubject {
        program: "1.0.0".to_owned(),
        model: "a model".to_owned(),
        settings: "devices".to_owned(),
        profile: Some(7),
    }
}

/// A strategy that must not be asked.
struct Unasked;

impl Strategy for Unasked {
    fn name(&self) -> &str {
        "unasked"
    }

    fn chunk_rows(&self, _: &PlanInput<'_>, prompt: PromptRows) -> usize {
        panic!("{prompt:?} is cut")
    }

    fn route(&self, _: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        panic!("{shape:?} is solved")
    }
}

/// Makes a subject another one.
type Change = fn(&mut PlansSubject);

fn stored(plans: &Plans) -> Plans {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(subject().file_name());
    std::fs::write(&path, plans.to_json().expect("text")).expect("a file");
    Plans::load(&path).expect("plans")
}

#[test]
fn stored_plans_are_the_routes_of_every_strategy() {
    let mut setup = Setup::new("llama", "cpu gpu npu");
    setup.chunk_rows = 256;
    let input = setup.input();
    let (mut stored_routes, mut chosen) = (0, 0);
    for strategy in all(&StrategyOptions::default()) {
        let (mut plans, mut routes) = (Plans::new(subject()), Vec::new());
        for prompt in [1, 300, 525] {
            // A strategy without a route for these devices has none to store.
            let Ok(added) = plans.add_prompt(&*strategy, &input, prompt) else { continue };
            routes.extend(added);
        }
        routes.extend((1..4).filter_map(|rows| plans.add(&*strategy, &input, &decode(rows)).ok()));
        stored_routes += plans.routes();
        let plans = stored(&plans);
        let known = Planned { inner: Arc::new(Unasked), plans: Arc::new(plans.clone()) };
        let mut again = plans.clone();
        let mut found = Vec::new();
        for prompt in [1, 300, 525] {
            if !routes.is_empty() {
                found.extend(again.add_prompt(&known, &input, prompt).expect("routes"));
            }
        }
        found.extend((1..4).filter(|_| !routes.is_empty()).map(|rows| {
            let shape = decode(rows).rounded();
            known.route(&input, &shape).expect("a route")
        }));
        for rows in (1..4).filter(|_| !routes.is_empty()) {
            let shape = decode(rows).rounded();
            let solved = strategy.routes(&input, &shape).expect("routes");
            let solved = Candidate::of_routes(&input, &shape, solved);
            let solved: Vec<_> = solved.into_iter().map(|candidate| candidate.route).collect();
            assert_eq!(
                known.routes(&input, &shape).expect("routes"),
                solved,
                "{}",
                strategy.name()
            );
            chosen = chosen.max(solved.len());
        }
        assert_eq!(found, routes, "{}", strategy.name());
        assert_eq!(again, plans, "{}: nothing is solved again", strategy.name());
    }
    assert!(stored_routes > 20, "{stored_routes}");
    assert!(chosen > 1, "a strategy chooses by the moment");
}

#[test]
fn shapes_that_were_not_stored_and_routes_that_cannot_run_are_solved() {
    let setup = Setup::new("llama", "cpu gpu npu");
    let options = StrategyOptions::default();
    let strategy = lapwing_plan::strategy::by_name("pipe", &options).expect("it is known");
    let mut plans = Plans::new(subject());
    plans.add_prompt(&*strategy, &setup.input(), 64).expect("routes");
    let planned = Planned { inner: Arc::clone(&strategy), plans: Arc::new(plans) };
    let other = setup.route(&planned, prefill(65)).expect("a route");
    assert_eq!(other, setup.route(&*strategy, prefill(65)).expect("a route"));
    // The same plans on fewer devices.
    let fewer = Setup::new("llama", "cpu npu");
    let solved = fewer.route(&planned, prefill(64)).expect("a route");
    assert_eq!(solved, fewer.route(&*strategy, prefill(64)).expect("a route"));
}

#[test]
fn plans_of_something_else_are_refused_by_name() {
    let plans = Plans::new(subject());
    plans.check_subject(&subject()).expect("the same");
    let changes: [(&str, Change); 4] = [
        ("program", |it| it.program.push('1')),
        ("model", |it| it.model.push('1')),
        ("devices", |it| it.settings.push('1')),
        ("profile", |it| it.profile = None),
    ];
    for (named, change) in changes {
        let mut here = subject();
        change(&mut here);
        let error = plans.check_subject(&here).expect_err(named);
        let PlansError::Mismatch { what } = &error else { panic!("{error}") };
        assert!(what.contains(named) && error.to_string().contains("lapwing prepare"), "{error}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plans.json");
    assert!(matches!(Plans::load(&path), Err(PlansError::File { .. })));
    let text = plans.to_json().expect("text");
    std::fs::write(&path, &text[1..]).expect("a file");
    assert!(matches!(Plans::load(&path), Err(PlansError::Format { .. })));
    std::fs::write(&path, text.replace("\"version\":2", "\"version\":1")).expect("a file");
    assert!(matches!(Plans::load(&path), Err(PlansError::Mismatch { .. })));
}
