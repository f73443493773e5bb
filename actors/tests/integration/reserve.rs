//! Requests that were promised room for their peak keep their pages: in any schedule none is preempted, and all end.

use lapwing_actors::RunError;
use lapwing_actors::policy::{PolicyChoice, known};
use lapwing_actors::scheduler::Reserve;
use lapwing_traces::Nanos;

use crate::cases::cases;
use crate::random_schedules::{Dice, setup};
use crate::requests::{Draw, Request, play};
use crate::support::{Setup, World, generate, prompt};

/// A random schedule with drafts, cancellations, shared prefixes and device errors; returns the number of preemptions.
fn preempted(policy: &str, reserve: Reserve, seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let setup = Setup { policy: PolicyChoice::from(policy), reserve, ..setup(&mut dice) };
    // A peak is below the cache.
    let setup = Setup { pages: setup.pages + 1, ..setup };
    let mut world = World::new(&setup);
    let requests = (0..2 + dice.below(12)).map(|i| {
        let (prompt_tokens, tokens_max) = (1 + dice.below(60) as usize, dice.below(30) as usize);
        let at = Nanos(dice.below(4_000_000));
        let cancel_at = (dice.below(5) == 0).then(|| Nanos(at.0 + dice.below(6_000_000)));
        let drafted = (i % 3 == 0).then_some(seed + i);
        let embeds = (i % 5 == 4).then_some(i as usize..);
        let draw = Draw { prompt_tokens, tokens_max, at, cancel_at, drafted, embeds };
        let client = ["a", "b", "c"][dice.below(3) as usize];
        Request::submit_of(&mut world, client, seed as u32 + dice.below(1 + i) as u32, draw)
    });
    let requests = requests.collect();
    play(&mut world, requests, seed);
    world.sim.scheduler().stats().all.preempted
}

#[test]
fn room_for_the_peak_is_kept_in_any_schedule() {
    let mut without = 0;
    for known in known() {
        for seed in 0..cases(60, 600) {
            let seed = seed * 37 + known.name().len() as u64;
            assert_eq!(preempted(known.name(), Reserve::Peak, seed), 0, "{}: {seed}", known.name());
            without += preempted(known.name(), Reserve::Prompt, seed);
        }
    }
    assert!(without > 100, "the schedules have {without} preemptions without it");
}

#[test]
fn a_request_whose_answer_may_outgrow_the_cache_is_refused() {
    // 8 pages of 4 rows. The last token of an answer is not stored.
    for (tokens_max, fits) in [(21, true), (22, false)] {
        let setup = Setup { pages: 8, reserve: Reserve::Peak, ..Setup::default() };
        let mut world = World::new(&setup);
        let prompt = prompt(3, 8);
        let mut stream = world.submit_of("a", Nanos(0), &prompt, generate(&prompt, tokens_max));
        world.sim.run();
        stream.drain();
        match fits {
            true => assert!(matches!(stream.end, Some(Ok(_))), "{:?}", stream.end),
            false => {
                let error = RunError::OutOfKvPages { wanted: 9, capacity: 8 };
                assert_eq!((stream.end, stream.tokens.len()), (Some(Err(error)), 0));
            }
        }
        world.assert_empty();
    }
}
