//! Streams that draft by a model on their own device, beside targets and prompts.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::draft::{Drafts, Schedule};
use lapwing_actors::policy::Urgency;
use lapwing_kernels::device::ModelId;
use lapwing_plan::strategy::CpuOnly;
use lapwing_traces::{Nanos, Scope};

use super::{MICRO, arrivals, long_answer, micros};
use crate::cases::cases;
use crate::drafts_by_model;
use crate::random_schedules::Dice;
use crate::support::{foretell, prompt};
use crate::two_models;

/// An engine with a target and a draft model on one device.
fn engine(permits: usize) -> two_models::Engine {
    two_models::Engine::new(&two_models::Setup {
        strategies: [Arc::new(CpuOnly), Arc::new(CpuOnly)],
        permits,
        devices: 1,
        chunk_rows: 32,
        pages: [256, 256],
        ..two_models::Setup::default()
    })
}

#[test]
fn streams_that_draft_out_of_step_starve_no_prompt() {
    for schedule in Schedule::ALL {
        let mut engine = engine(4);
        engine.sim.recorder().set_scope(Scope::All);
        let is_long = |ids: &Vec<u32>| foretell(ids, 80).0.len() == 80;
        let streams: Vec<_> = (0..).map(|seed| prompt(seed, 9)).filter(is_long).take(3).collect();
        let mut requests: Vec<_> = streams
            .into_iter()
            .zip(0..)
            .map(|(ids, at)| {
                let drafts = Drafts::of_model(ModelId(1), schedule).always(2);
                let at = Nanos(at * 130 * MICRO);
                drafts_by_model::submit(&mut engine, at, ids, 80, Some(drafts))
            })
            .collect();
        let at = Nanos(1_000 * MICRO);
        requests.push(drafts_by_model::submit(&mut engine, at, prompt(77, 100), 1, None));
        drafts_by_model::play(&mut engine, &mut requests, schedule.name());
        let recording = engine.sim.recorder().recording();
        let first = arrivals(&recording, 3)[0];
        for stream in 0..3 {
            let of_stream = arrivals(&recording, stream);
            let meanwhile =
                of_stream.iter().filter(|at| **at > 1_000 * MICRO && **at < first).count();
            let what = schedule.name();
            assert!(meanwhile <= 40, "{what}: {meanwhile} tokens of stream {stream} meanwhile");
        }
    }
}

#[test]
fn a_draft_is_as_short_as_the_token_gap_needs() {
    let run = |target: Option<Duration>, schedule: Schedule| {
        let mut engine = engine(4);
        engine.sim.recorder().set_scope(Scope::All);
        engine.urgency.token_gap = target;
        let ids = long_answer(9, 100);
        let drafts = Drafts::of_model(ModelId(1), schedule).always(12);
        let mut requests = [drafts_by_model::submit(&mut engine, Nanos(0), ids, 100, Some(drafts))];
        drafts_by_model::play(&mut engine, &mut requests, schedule.name());
        requests[0].check(schedule.name());
        let arrivals = arrivals(&engine.sim.recorder().recording(), 0);
        // The first steps show what steps take.
        let learned = &arrivals[arrivals.len() / 2..];
        learned.windows(2).map(|pair| pair[1] - pair[0]).max().expect("tokens")
    };
    for schedule in Schedule::ALL {
        // A step takes 20 µs and 2 µs more for each row, of the target and of the draft model.
        let free = run(None, schedule);
        assert!(free > 250 * MICRO, "{}: {free} ns", schedule.name());
        for target in [60, 100, 150] {
            let worst = run(Some(micros(target)), schedule);
            let what = format!("{}, target {target} µs: {worst} ns", schedule.name());
            assert!(worst <= target * MICRO, "{what}");
            // No draft is as long as before, but each has what fits.
            assert!(target < 100 || worst > 40 * MICRO, "{what}");
        }
    }
}

#[test]
fn drafts_of_a_model_on_the_same_device_change_no_token_beside_targets() {
    for seed in 0..cases(60, 600) {
        let mut dice = Dice::new(seed);
        let setup = two_models::Setup {
            strategies: [Arc::new(CpuOnly), Arc::new(CpuOnly)],
            devices: 1,
            permits: 1 + dice.below(3) as usize,
            chunk_rows: 4 + dice.below(60) as usize,
            pages: [40 + dice.below(60) as u32; 2],
            ..two_models::Setup::default()
        };
        let mut engine = two_models::Engine::new(&setup);
        let mut requests: Vec<drafts_by_model::Request> = (0..1 + dice.below(6))
            .map(|i| {
                let gap = (dice.below(2) == 0).then(|| micros(dice.below(2_000)));
                let priority = dice.below(3) as i32 - 1;
                engine.urgency = Urgency { priority, deadline: None, token_gap: gap };
                let ids = prompt(i as u32, 1 + dice.below(60) as usize);
                let schedule = Schedule::ALL[dice.below(Schedule::ALL.len() as u64) as usize];
                let drafts = (dice.below(4) > 0).then(|| drafts_by_model::drafts(schedule));
                let at = Nanos(dice.below(1_000_000));
                drafts_by_model::submit(&mut engine, at, ids, 30, drafts)
            })
            .collect();
        drafts_by_model::play(&mut engine, &mut requests, &format!("seed {seed}"));
        requests.iter().for_each(|request| request.check(&format!("seed {seed}")));
    }
}

#[test]
fn a_stream_that_drafts_goes_on_beside_one_that_does_not() {
    for (permits, schedule) in [1, 2, 3].into_iter().zip(Schedule::ALL.into_iter().cycle()) {
        let mut engine = engine(permits);
        engine.sim.recorder().set_scope(Scope::All);
        let drafts = Drafts::of_model(ModelId(1), schedule).always(2);
        let mut requests = [Some(drafts), None].map(|drafts| {
            drafts_by_model::submit(&mut engine, Nanos(0), long_answer(9, 80), 80, drafts)
        });
        drafts_by_model::play(&mut engine, &mut requests, schedule.name());
        let recording = engine.sim.recorder().recording();
        let last = *arrivals(&recording, 1).last().expect("tokens");
        let meanwhile = arrivals(&recording, 0).iter().filter(|at| **at < last).count();
        assert!(meanwhile > 20, "{permits} permits, {}: {meanwhile} tokens", schedule.name());
    }
}
