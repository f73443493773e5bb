//! Drafts by a model that is given the hidden states of the target: no draft changes a token, and each row is given those of the row
//! before it, as the oracle finds the right next token only then.

use std::sync::Arc;

use lapwing_actors::draft::{Drafts, Schedule};
use lapwing_kernels::device::ModelId;
use lapwing_plan::DeviceId;
use lapwing_plan::strategy::{CpuOnly, LayersOn, Strategy};
use lapwing_traces::{Nanos, Scope};

use crate::cases::cases;
use crate::drafts_by_model::{Request, placements, play, random_of, submit};
use crate::oracle::{PAGE_ROWS, foretell};
use crate::random_schedules::Dice;
use crate::support::prompt;
use crate::two_models::{Engine, Setup};

fn drafts(schedule: Schedule) -> Drafts {
    Drafts::of_predictor(ModelId(1), schedule).always(15)
}

fn setup() -> Setup {
    Setup { given: true, wrong: None, ..Setup::default() }
}

/// Prompts of these lengths after which the text goes on for `tokens` tokens.
fn prompts(lengths: &[usize], tokens: usize) -> Vec<Vec<u32>> {
    let long = |len: &usize| {
        let mut seeds = (0..).map(|seed| prompt(seed, *len));
        seeds.find(|ids| foretell(ids, tokens).0.len() == tokens).expect("a long text")
    };
    lengths.iter().map(long).collect()
}

/// Sends requests at the same time, and checks that no drafted token of theirs is rejected.
fn all_are_accepted(engine: &mut Engine, prompts: &[Vec<u32>], schedule: Schedule, what: &str) {
    let now = engine.sim.now();
    let send = |ids: &Vec<u32>| submit(engine, now, ids.clone(), 40, Some(drafts(schedule)));
    let mut requests: Vec<Request> = prompts.iter().map(send).collect();
    play(engine, &mut requests, what);
    for request in &requests {
        request.check(what);
        let stats = request.stats();
        assert_eq!(stats.accepted, stats.drafted, "{what}: {stats:?}");
        assert!(stats.accepted * 2 > request.found.len(), "{what}: {stats:?}");
        assert_eq!(stats.stopped, None, "{what}");
    }
}

#[test]
fn each_row_is_given_the_hidden_states_of_the_row_before_it() {
    // Prompts of one chunk and of several, and one of a single token.
    let prompts = prompts(&[1, 7, 16, 17, 45], 40);
    for (name, strategies) in placements() {
        for schedule in Schedule::ALL {
            let what = format!("{name}, {}", schedule.name());
            for ids in &prompts {
                let mut engine = Engine::new(&Setup { strategies: strategies.clone(), ..setup() });
                all_are_accepted(&mut engine, std::slice::from_ref(ids), schedule, &what);
            }
            let mut engine =
                Engine::new(&Setup { strategies: strategies.clone(), pages: [200; 2], ..setup() });
            all_are_accepted(&mut engine, &prompts, schedule, &what);
        }
    }
}

#[test]
fn behind_a_cached_prefix_the_predictor_begins_at_the_first_row_that_is_computed() {
    for schedule in Schedule::ALL {
        let mut engine = Engine::new(&Setup { prefixes: true, pages: [200; 2], ..setup() });
        let ids = &prompts(&[5 * PAGE_ROWS + 2], 40)[0];
        for turn in 0..3 {
            let before = engine.sim.scheduler().stats().all.cached_tokens;
            all_are_accepted(&mut engine, std::slice::from_ref(ids), schedule, schedule.name());
            let cached = engine.sim.scheduler().stats().all.cached_tokens - before;
            assert_eq!(cached > 0, turn > 0, "turn {turn}");
        }
    }
}

#[test]
fn preempted_requests_draft_again() {
    for schedule in Schedule::ALL {
        // Room for two of four texts at a time.
        let mut engine = Engine::new(&Setup { pages: [34, 200], ..setup() });
        let prompts = prompts(&[9, 14, 20, 23], 40);
        all_are_accepted(&mut engine, &prompts, schedule, schedule.name());
        assert!(engine.sim.scheduler().stats().all.preempted > 0);
    }
}

#[test]
fn a_target_with_states_goes_on_behind_drafts_of_a_predictor() {
    for schedule in Schedule::ALL {
        let strategies: [Arc<dyn Strategy>; 2] = [Arc::new(CpuOnly), Arc::new(CpuOnly)];
        let states = Some(60);
        let mut engine = Engine::new(&Setup { strategies, states, pages: [200; 2], ..setup() });
        all_are_accepted(&mut engine, &prompts(&[7, 45], 40), schedule, schedule.name());
    }
}

/// Without the hidden states of the target there are no drafts, and the request goes on.
#[test]
fn a_target_that_passes_nothing_on_has_no_drafts() {
    for schedule in Schedule::ALL {
        let mut engine = Engine::new(&Setup { given: false, ..setup() });
        let ids = prompts(&[9], 40).remove(0);
        let mut requests = [submit(&mut engine, Nanos(0), ids, 40, Some(drafts(schedule)))];
        play(&mut engine, &mut requests, schedule.name());
        requests[0].check(schedule.name());
        assert_eq!(requests[0].stats().drafted, 0);
    }
}

#[test]
fn random_schedules_with_a_predictor_change_no_token_and_leak_nothing() {
    let on = |devices: &[usize]| -> Arc<dyn Strategy> {
        Arc::new(LayersOn { devices: devices.iter().copied().map(DeviceId).collect() })
    };
    for seed in 0..cases(1000, 10_000) {
        let change = |setup: &mut Setup, dice: &mut Dice| {
            setup.given = true;
            setup.prefixes = dice.below(2) == 0;
            if dice.below(3) == 0 {
                // States are on CPUs.
                setup.states = Some(setup.sequences_max as u32 + dice.below(20) as u32);
                setup.strategies = match dice.below(2) {
                    0 => [on(&[0]), on(&[0])],
                    _ => [on(&[0, 3]), on(&[2])],
                };
            }
        };
        random_of(seed, Scope::Off, Drafts::of_predictor, change);
    }
}
