//! Routes at a described moment, beside the bound of all prompts.

use std::sync::Arc;
use std::time::Duration;

use lapwing_plan::moment::{Haste, RatedMoment, Scene};
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{StrategyOptions, by_name};

use crate::setup::Setup;

const IN_FLIGHT: usize = 4;

fn rated(names: &str, prompt: usize, scene: &Scene) -> Option<RatedMoment> {
    let Setup { graph, devices, cost, .. } = Setup::new("llama", names);
    let mut planner = Planner::new(PlannerParts {
        model: Default::default(),
        graph,
        devices,
        cost: Arc::new(cost),
        strategy: by_name("auto", &StrategyOptions::default()).expect("is known"),
        chunk_rows: 512,
    });
    planner.rate_moment(prompt, scene, IN_FLIGHT).expect("routes")
}

fn scene(text: &str) -> Scene {
    text.parse().expect(text)
}

#[test]
fn a_moment_parses_or_says_how_it_is_written() {
    let both = scene("streams=2, prompts=1000+300");
    assert_eq!((both.streams, &both.prompts[..]), (2, &[1000, 300][..]));
    assert_eq!(scene("prompts=5").prompts, [5]);
    for text in ["", "streams", "streams=x", "prompts=0", "prompts=1+", "threads=2", "prompts=-1"] {
        let error = text.parse::<Scene>().expect_err(text).to_string();
        assert!(error.contains("streams=2,prompts=1000+1000"), "{error}");
    }
}

#[test]
fn no_route_is_rated_below_the_bound() {
    for names in ["cpu gpu", "cpu npu", "cpu gpu npu"] {
        for text in ["prompts=600", "streams=2,prompts=900+40", "streams=1"] {
            let rated = rated(names, 700, &scene(text)).expect("several devices");
            let bound = rated.bound.time();
            assert!(rated.all >= bound && bound > Duration::ZERO, "{names} {text}: {rated:?}");
            assert!(rated.candidates.iter().all(|it| it.all >= bound), "{names} {text}");
            let chosen = &rated.candidates[rated.chosen];
            let first = rated.candidates.iter().map(|it| it.end).min().expect("routes");
            assert!(chosen.end <= first.mul_f64(1.03), "{names} {text}: {:?}", chosen.end);
            let end = rated.moment.end_of(&chosen.candidate, Haste::InTurn);
            assert_eq!(chosen.end, end, "{names} {text}");
            assert_eq!(rated.step.is_some(), text.contains("streams"));
        }
    }
}

#[test]
fn without_others_the_devices_are_free_and_a_chunk_takes_its_own_route() {
    let alone = rated("cpu gpu", 400, &Scene::default()).expect("several devices");
    assert!(alone.moment.lanes.iter().all(|lane| lane.time.is_zero()) && alone.chosen == 0);
    assert_eq!(alone.candidates[0].end, alone.candidates[0].candidate.alone);
    let beside = rated("cpu gpu", 400, &scene("prompts=400")).expect("several devices");
    assert!(beside.moment.lanes.iter().any(|lane| !lane.time.is_zero()));
    assert!(beside.all > alone.all && beside.bound.area > alone.bound.area);
    assert!(rated("cpu", 400, &Scene::default()).is_none(), "one device leaves no choice");
}

#[test]
fn beside_streams_chunks_are_short() {
    let rated = rated("cpu gpu", 512, &scene("streams=2,prompts=512")).expect("several devices");
    let step = rated.step.expect("a step");
    assert!(step.gap >= step.alone * 3 && rated.rows <= 256, "{} rows", rated.rows);
}
