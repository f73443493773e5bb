//! A replay of a recorded run predicts the times of the runtime with the changed devices.

use std::time::Duration;

use lapwing_plan::time::FixedRate;
use lapwing_traces::analysis::Replay;
use lapwing_traces::{Nanos, Scope, Timeline};

use crate::support::{Setup, World, generate, prompt};

/// A prompt of 96 tokens in chunks of 16 over devices of these rates (ns per stage and per row).
fn run(rates: &[(u64, u64)], tokens: usize) -> Timeline {
    let rate = |(per_stage, per_row): &(u64, u64)| FixedRate {
        per_stage: Duration::from_nanos(*per_stage),
        per_row: Duration::from_nanos(*per_row),
    };
    let setup = Setup {
        chunk_rows: 16,
        devices: rates.len(),
        rates: rates.iter().map(rate).collect(),
        ..Setup::default()
    };
    let mut world = World::new(&setup);
    world.sim.recorder().set_scope(Scope::All);
    let ids = prompt(3, 96);
    let _stream = world.submit(Nanos(0), &ids, generate(&ids, tokens));
    world.sim.run();
    Timeline::new(&world.sim.recorder().recording())
}

#[test]
fn a_replay_with_other_devices_misses_the_run_with_those_devices() {
    for tokens in [1, 5] {
        let recorded = run(&[(1000, 100), (1000, 120)], tokens);
        for (what_if, rates) in [
            ("on:oracle-0*2", [(2000, 200), (1000, 120)]),
            ("on:oracle-1*3", [(1000, 100), (3000, 360)]),
            ("on:oracle-1*0.5", [(1000, 100), (500, 60)]),
            ("on:oracle-0*0.5,on:oracle-1*0.5", [(500, 50), (500, 60)]),
            ("activity:compute*4", [(4000, 400), (4000, 480)]),
        ] {
            let replay = Replay::new(&recorded, &what_if.parse().unwrap()).unwrap();
            assert_eq!(
                replay.makespan,
                run(&rates, tokens).makespan(),
                "{what_if}, {tokens} tokens"
            );
        }
    }
}
