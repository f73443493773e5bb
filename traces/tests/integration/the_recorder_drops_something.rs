//! Every event is recorded or counted as dropped, whichever thread writes or collects.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use lapwing_traces::event::{Event, EventKind, LaneKind};
use lapwing_traces::{Clock, Nanos, Recorder, RecorderConfig, Scope, Writer};

/// A clock that counts how often it is read.
#[derive(Default)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

fn recorder(config: RecorderConfig) -> Recorder {
    Recorder::new(Arc::new(Ticks::default()), config)
}

fn small(ring_events: usize) -> RecorderConfig {
    RecorderConfig { ring_events, ..RecorderConfig::default() }
}

/// Records the counter values from 0 to `values`.
fn count(writer: &mut Writer, lane: &str, values: i64) {
    let (lane, name) =
        (writer.recorder().lane(lane, LaneKind::Thread), writer.recorder().name("n"));
    for value in 0..values {
        writer.record(writer.now(), lane, EventKind::Counter(name, value));
    }
}

fn values(events: &[Event], lane: usize) -> Vec<i64> {
    let of_lane = events.iter().filter(|event| event.lane.0 as usize == lane);
    of_lane
        .map(|event| match event.kind {
            EventKind::Counter(_, value) => value,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn two_writers_and_a_collector_lose_nothing_uncounted() {
    const EACH: i64 = 50_000;
    let recorder = recorder(small(1 << 10));
    let recording = thread::scope(|scope| {
        for lane in ["a", "b"] {
            let mut writer = recorder.writer();
            scope.spawn(move || count(&mut writer, lane, EACH));
        }
        let mut taken = Vec::new();
        while taken.len() < 2 * EACH as usize {
            let part = recorder.take();
            taken.extend(part.events);
            // A writer whose full ring is just being drained drops events and counts them.
            if taken.len() as u64 + part.dropped == 2 * EACH as u64 {
                break;
            }
        }
        (taken, recorder.dropped())
    });
    let (events, dropped) = recording;
    assert_eq!(events.len() as u64 + dropped, 2 * EACH as u64);
    for lane in 0..2 {
        assert!(
            values(&events, lane).is_sorted_by(|a, b| a < b),
            "in order and without duplicates"
        );
    }
}

#[test]
fn writers_drain_their_own_rings_in_time() {
    for ring_events in [1, 2, 8, 64, 1000] {
        let recorder = recorder(small(ring_events));
        let mut writer = recorder.writer();
        count(&mut writer, "a", 5_000);
        let recording = recorder.recording();
        assert_eq!(recording.dropped, 0, "ring of {ring_events}");
        assert_eq!(values(&recording.events, 0), (0..5_000).collect::<Vec<_>>());
    }
}

#[test]
fn events_beyond_the_limit_are_dropped_and_counted() {
    for (keep_latest, events_max, kept) in [
        (false, 1_000, 0..1_000),
        (true, 1_000, 9_000..10_000),
        (false, 9_000, 0..9_000),
        (true, 9_000, 1_000..10_000),
        (true, 1, 9_999..10_000),
        (true, 10, 9_990..10_000),
        (true, 4_095, 5_905..10_000),
        (true, 4_096, 5_904..10_000),
        (true, 4_097, 5_903..10_000),
        (true, 0, 0..0),
        (false, 0, 0..0),
    ] {
        let recorder = recorder(RecorderConfig { events_max, keep_latest, ..small(256) });
        count(&mut recorder.writer(), "a", 10_000);
        let recording = recorder.recording();
        let expected: Vec<i64> = kept.collect();
        assert_eq!(values(&recording.events, 0), expected, "latest {keep_latest}");
        assert_eq!(recording.dropped, 10_000 - expected.len() as u64);
        assert_eq!(recorder.dropped(), recording.dropped);
        assert_eq!(recorder.recording(), recording, "a recording removes nothing");
    }
}

#[test]
fn the_latest_events_are_kept() {
    for events_max in [1, 7, 100, 4_096, 5_000] {
        let config = RecorderConfig { events_max, keep_latest: true, ..small(16) };
        let recorder = recorder(config);
        let mut writer = recorder.writer();
        let (lane, name) = (recorder.lane("a", LaneKind::Thread), recorder.name("n"));
        let (mut written, mut taken) = (0, 0);
        // Steps that cross the ends of blocks.
        for step in [1, 99, 4_000, 95, 1, 3, 8_192, 900] {
            for _ in 0..step {
                writer.record(writer.now(), lane, EventKind::Counter(name, written));
                written += 1;
            }
            let kept = (written - events_max as i64).max(taken)..written;
            let expected: Vec<i64> = kept.collect();
            assert_eq!(values(&recorder.recording().events, 0), expected, "{events_max}");
            if step == 3 {
                assert_eq!(values(&recorder.take().events, 0), expected);
                taken = written;
            }
        }
    }
}

#[test]
fn taken_events_are_not_returned_again() {
    let recorder = recorder(RecorderConfig::default());
    let mut writer = recorder.writer();
    count(&mut writer, "a", 5_000);
    let first = recorder.take();
    count(&mut writer, "b", 3);
    let second = recorder.take();
    assert_eq!((first.events.len(), second.events.len()), (5_000, 3));
    assert_eq!(second.lanes.len(), 2, "every part has all lanes");
    assert!(recorder.take().events.is_empty());
}

#[test]
fn events_of_a_dropped_writer_are_collected() {
    let recorder = recorder(RecorderConfig::default());
    for _ in 0..3 {
        thread::scope(|scope| {
            scope.spawn(|| count(&mut recorder.writer(), "a", 10));
        });
    }
    assert_eq!(recorder.recording().events.len(), 30);
}

#[test]
fn the_scope_can_change_at_any_time() {
    let recorder = recorder(RecorderConfig::default());
    let writer = recorder.writer();
    let wants = || (writer.wants(false), writer.wants(true));
    assert_eq!(recorder.scope(), Scope::Off, "off at first");
    assert_eq!(wants(), (false, false));
    for (scope, expected) in
        [(Scope::Marked, (false, true)), (Scope::All, (true, true)), (Scope::Off, (false, false))]
    {
        recorder.clone().set_scope(scope);
        assert_eq!((recorder.scope(), wants()), (scope, expected));
    }
}

#[test]
fn names_and_lanes_beyond_the_limit_share_a_placeholder() {
    let recorder =
        recorder(RecorderConfig { names_max: 3, lanes_max: 3, ..RecorderConfig::default() });
    let numbers: Vec<u32> = (0..6).map(|n| recorder.name(&format!("name {n}")).0).collect();
    assert_eq!(numbers, [0, 1, 2, 2, 2, 2]);
    assert_eq!(recorder.name("name 1").0, 1);
    let kind = |n| if n % 2 == 0 { LaneKind::Device } else { LaneKind::Link };
    let lanes: Vec<u32> = (0..6).map(|n| recorder.lane(&format!("lane {n}"), kind(n)).0).collect();
    assert_eq!(lanes, [0, 1, 2, 2, 2, 2]);
    assert_ne!(recorder.lane("lane 0", LaneKind::Link).0, 0, "another kind is another lane");
    let recording = recorder.recording();
    assert_eq!(recording.names, ["name 0", "name 1", "(too many names)"]);
    assert_eq!(recording.lanes[2].name, "(too many lanes)");
    assert_eq!(recording.lanes.len(), 3);
}

#[test]
fn ids_are_unique_across_writers() {
    let recorder = recorder(small(2));
    let seen: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut writer = recorder.writer();
                scope.spawn(move || {
                    let ids = (0..100_000).map(|n| match n % 2 {
                        0 => writer.span().0.get(),
                        _ => writer.message().0.get(),
                    });
                    ids.collect::<Vec<u64>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 400_000);
}

#[test]
fn only_events_of_the_time_that_is_asked_for_are_missing() {
    let config = RecorderConfig { events_max: 100, keep_latest: true, ..small(8) };
    let recorder = recorder(config);
    let mut writer = recorder.writer();
    for _ in 0..50 {
        count(&mut writer, "a", 8);
        recorder.collect();
    }
    // 400 events at the times from 0 to 399, of which the latest 100 are kept.
    let missing = |since| recorder.recording_since(Nanos(since)).dropped;
    assert_eq!((missing(300), missing(0), recorder.dropped()), (0, 300, 300));
    assert!(missing(299) > 0);
    assert_eq!(recorder.recording().dropped, 300, "the whole recording misses all of them");
}
