//! Threads that choose how they wait.

use super::*;

/// A wait of a thread that chooses: its prediction in ns, and the time in µs after which the message comes.
#[derive(Clone, Copy)]
struct ChosenWait {
    predicted: u64,
    us: u64,
}

/// Waits that a thread which chooses spends polling, of 20 on `cores` cores of which `busy` compute. Its sleeps are 50 µs
/// too long.
fn polled_by_choice(cores: usize, busy: usize, wait: ChosenWait) -> usize {
    let mut waiter = Waiter::new(LinkMode::Chosen, Arc::new(OsClock::start()), Cores::new(cores));
    let computing = waiter.cores.clone();
    let _computing = computing.busy(busy);
    let waits = (0..20).filter(|_| {
        waiter.overshoot = Some(Overshoot::of([50_000; 32]));
        // What real waits on a busy machine have taught must not count.
        waiter.predictor = Predictor::default();
        (0..8).for_each(|_| waiter.predictor.learn(WaitKey::default(), wait.predicted));
        let record = wait_once(&mut waiter, wait.us);
        assert!(record.spun == 0 || record.margin > 0, "it polls only as planned: {record:?}");
        record.spun > 0
    });
    waits.count()
}

#[test]
fn a_thread_that_chooses_polls_only_where_that_pays() {
    let short = ChosenWait { predicted: 100_000, us: 300 };
    assert!(polled_by_choice(64, 1, short) > 0, "a core stays free, and a wake costs half");
    assert_eq!(polled_by_choice(2, 1, short), 0, "no core would stay free");
    // The message comes after the predicted end, when a thread that polls does so.
    let long = ChosenWait { predicted: 20_000_000, us: 25_000 };
    assert_eq!(polled_by_choice(64, 1, long), 0, "a wake is nothing beside the wait");
}

#[test]
fn workers_choose_where_several_devices_or_a_driver_that_has_probe_are_waited_for() {
    let park = LinkMode::Fixed(WaitMode::Callback);
    assert_eq!(
        [false, true].map(|asked| LinkMode::Single.of_driver(asked)),
        [park, LinkMode::Chosen]
    );
    assert_eq!([false, true].map(|asked| LinkMode::Chosen.of_driver(asked)), [LinkMode::Chosen; 2]);
    assert_eq!([false, true].map(|asked| park.of_driver(asked)), [park; 2]);
    for (devices, link) in [(1, LinkMode::Single), (2, LinkMode::Chosen), (3, LinkMode::Chosen)] {
        let waits = Waits::for_devices(devices);
        assert_eq!((waits.device_links, waits.scheduler_link), (link, park), "{devices} devices");
        assert_eq!(waits.of_device(devices - 1), link);
    }
}

#[test]
fn a_thread_that_parks_by_choice_does_not_sleep_first() {
    let mut waiter = Waiter::new(LinkMode::Chosen, Arc::new(OsClock::start()), Cores::new(1));
    (0..8).for_each(|_| waiter.predictor.learn(WaitKey::default(), 1_000_000));
    let record = wait_once(&mut waiter, 300);
    assert_eq!((record.mode, record.margin, record.spun), (WaitMode::Callback, 0, 0));
    assert_eq!(record.predicted, Some(1_000_000), "the timeline shows predictions of parks, too");
}
