//! Background work gives way to other requests, and does not starve.

use lapwing_actors::policy::Urgency;
use lapwing_plan::time::FixedRate;
use lapwing_traces::{Nanos, Scope};

use crate::support::{Setup, World, foretell, generate, prompt};
use crate::token_gap::{MICRO, arrivals, micros, one_device};

#[test]
fn background_work_gives_way_however_long_it_has_run() {
    let rate = FixedRate { per_stage: micros(2_000), per_row: micros(1_000) };
    let mut setup = Setup { rates: vec![rate], ..one_device() };
    setup.config.sequences_max = 4;
    let foreground = prompt(9, 1000);
    let start = 25_000_000 * MICRO;
    let first_token = |background: u32| {
        let mut world = World::new(&setup);
        world.sim.recorder().set_scope(Scope::All);
        world.urgency = Urgency::BACKGROUND;
        let submit = |seed| {
            let ids = prompt(seed + 20, 1500);
            world.submit(Nanos(0), &ids, generate(&ids, 30))
        };
        let _streams: Vec<_> = (0..background).map(submit).collect();
        world.urgency = Urgency::default();
        let _asked = world.submit(Nanos(start), &foreground, generate(&foreground, 1));
        world.sim.run();
        arrivals(&world.sim.recorder().recording(), u64::from(background))[0] - start
    };
    let (alone, beside) = (first_token(0), first_token(30));
    // It waits for the chunk in flight, of 128 rows, and for no more.
    let most = alone + (2_000 + 132 * 1_000) * MICRO;
    assert!(beside <= most, "{beside} ns beside background work, {alone} ns alone");
}

#[test]
fn a_foreground_request_starts_beside_background_work_as_on_an_idle_machine() {
    let setup = || {
        let mut setup = one_device();
        setup.config.sequences_max = 4;
        setup
    };
    let foreground = prompt(9, 3000);
    let start = 20_000 * MICRO;
    let first_token = |background: usize| {
        let mut world = World::new(&setup());
        world.sim.recorder().set_scope(Scope::All);
        world.urgency = Urgency::BACKGROUND;
        let texts: Vec<_> = (0..background).map(|seed| prompt(seed as u32 + 20, 1500)).collect();
        let streams: Vec<_> =
            texts.iter().map(|ids| world.submit(Nanos(0), ids, generate(ids, 30))).collect();
        world.urgency = Urgency::default();
        let _asked = world.submit(Nanos(start), &foreground, generate(&foreground, 1));
        world.sim.run();
        for (ids, mut stream) in texts.iter().zip(streams) {
            stream.drain();
            assert_eq!(stream.tokens, foretell(ids, 30).0);
        }
        arrivals(&world.sim.recorder().recording(), background as u64)[0] - start
    };
    let (alone, beside) = (first_token(0), first_token(8));
    assert!(beside as f64 <= 1.1 * alone as f64, "{beside} ns beside background work, {alone} ns");
}

#[test]
fn background_work_does_not_starve_beside_requests_that_never_end() {
    let mut setup = one_device();
    setup.config.sequences_max = 2;
    let mut world = World::new(&setup);
    world.sim.recorder().set_scope(Scope::All);
    world.urgency = Urgency::BACKGROUND;
    let ids = prompt(2, 700);
    let mut background = world.submit(Nanos(0), &ids, generate(&ids, 3));
    world.urgency = Urgency::default();
    // Prompts for 60 s, each of which arrives before the one before it has ended.
    let (long, mut others) = (prompt(4, 4000), Vec::new());
    for at in 0..1_500 {
        let at = Nanos(at * 40_000 * MICRO);
        while world.sim.now() < at && world.sim.step() {}
        others.push(world.submit(at, &long, generate(&long, 1)));
    }
    background.drain();
    assert_eq!(background.tokens, foretell(&ids, 3).0);
}
