//! A device fails, or its thread dies, at every stage of plans over three devices: the error names the
//! device, the affected streams end, and the others continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapwing_actors::RunError;
use lapwing_actors::message::{Shutdown, StreamEvent};
use lapwing_kernels::device::{DeviceError, DeviceKind};
use lapwing_traces::Nanos;

use crate::failure::{last, submit};
use crate::random_plans::RandomPlans;
use crate::support::{Fault, Setup, World, foretell, generate, live, prompt, recorder};

/// Three devices that follow the plans of a seed.
fn setup(seed: u64, fault: Fault) -> Setup {
    Setup {
        devices: 3,
        kinds: vec![DeviceKind::Cpu, DeviceKind::Npu, DeviceKind::Gpu],
        strategy: Some(Arc::new(RandomPlans(seed))),
        layers: 2,
        fault,
        ..Setup::default()
    }
}

/// Triggers an action at the n-th stage or part, counted over all devices.
fn at_stage(n: usize, does: fn() -> Option<DeviceError>) -> (Fault, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let fault: Fault = Arc::new(move |_| {
        let now = counted.fetch_add(1, Ordering::Relaxed) + 1;
        if now == n { does() } else { None }
    });
    (fault, count)
}

fn planted() -> Option<DeviceError> {
    Some(DeviceError::Failed { device: "x".to_owned(), reason: "planted".to_owned() })
}

#[test]
fn a_device_error_at_any_stage_leaves_a_stream_hanging_or_a_neighbour_wrong() {
    for seed in 0..6 {
        let (a, b) = (prompt(1, 20), prompt(2, 9));
        let mut stages = 1;
        for n in 0.. {
            if n > stages {
                break;
            }
            let (fault, count) = at_stage(n, planted);
            let mut world = World::new(&setup(seed, fault));
            let mut first = world.submit(Nanos(0), &a, generate(&a, 6));
            let mut second = world.submit(Nanos(300_000), &b, generate(&b, 6));
            let mut later = world.submit(Nanos(900_000_000), &b, generate(&b, 6));
            world.sim.run();
            world.assert_empty();
            let mut lost = 0;
            for (stream, ids) in [(&mut first, &a), (&mut second, &b), (&mut later, &b)] {
                stream.drain();
                let (tokens, reason) = foretell(ids, 6);
                match stream.end.take() {
                    Some(Ok(found)) => assert_eq!((&stream.tokens, found), (&tokens, reason)),
                    Some(Err(RunError::Device { device, reason })) => {
                        assert!(device.starts_with("oracle-") && reason.contains("planted"));
                        assert!(tokens.starts_with(&stream.tokens));
                        lost += 1;
                    }
                    other => panic!("seed {seed}, stage {n}: {other:?}"),
                }
            }
            match n {
                // A run without a fault counts the stages.
                0 => {
                    stages = count.load(Ordering::Relaxed);
                    assert_eq!(lost, 0);
                }
                _ => assert!((1..=2).contains(&lost), "seed {seed}, stage {n}: {lost} lost"),
            }
        }
        assert!(stages > 50, "{stages} stages are too few to have shown anything");
    }
}

#[test]
fn a_thread_that_dies_at_any_stage_leaves_a_stream_hanging() {
    for seed in 0..2 {
        for n in (1..120).step_by(7) {
            let (fault, _) = at_stage(n, || panic!("planted panic"));
            let engine = live(&setup(seed, fault), 4, &recorder()).0;
            let mut streams: Vec<_> =
                (0..3).map(|i| submit(&engine, &prompt(i, 12), 8).expect("alive so far")).collect();
            for events in &mut streams {
                match last(events) {
                    StreamEvent::Failed(RunError::ActorDied { actor, reason }) => {
                        assert!(actor.starts_with("oracle-"), "stage {n}: {actor}");
                        assert!(reason.contains("planted panic"), "stage {n}: {reason}");
                    }
                    // It had all of its tokens before the fault.
                    StreamEvent::Finished(_) => {}
                    other => panic!("stage {n}: {other:?}"),
                }
            }
            engine.shutdown(Shutdown::Now);
        }
    }
}
