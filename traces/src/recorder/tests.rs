use super::*;
use crate::clock::{Nanos, OsClock};
use crate::event::EventKind;

fn ring_count(recorder: &Recorder) -> usize {
    lock(&recorder.inner.store).rings()
}

fn times(recording: &Recording) -> Vec<u64> {
    recording.events.iter().map(|event| event.at.0).collect()
}

#[test]
fn the_rings_of_dropped_writers_are_freed() {
    let config = RecorderConfig { ring_events: 8, ..RecorderConfig::default() };
    let recorder = Recorder::new(Arc::new(OsClock::start()), config);
    let mut lasting = recorder.writer();
    lasting.record(Nanos(0), LaneId(0), EventKind::Woke(Nanos(0)));
    for n in 1..=1000 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = recorder.writer();
                writer.record(Nanos(n), LaneId(0), EventKind::Woke(Nanos(0)));
            });
        });
        assert_eq!(ring_count(&recorder), 1, "only the ring of the writer that still exists");
    }
    lasting.record(Nanos(1001), LaneId(0), EventKind::Woke(Nanos(0)));
    let mut recording = recorder.recording();
    recording.events.sort_by_key(|event| event.at);
    assert_eq!((times(&recording), recording.dropped), ((0..=1001).collect(), 0));
}

#[test]
fn the_ring_of_a_writer_dropped_while_the_store_is_locked_is_freed_later() {
    let config = RecorderConfig { ring_events: 2, ..RecorderConfig::default() };
    let recorder = Recorder::new(Arc::new(OsClock::start()), config);
    let writers: Vec<Writer> = (0..10).map(|_| recorder.writer()).collect();
    let busy = lock(&recorder.inner.store);
    for (n, mut writer) in (0..).zip(writers) {
        for time in [n, n, n] {
            writer.record(Nanos(time), LaneId(0), EventKind::Woke(Nanos(0)));
        }
    }
    assert_eq!(busy.rings(), 10, "dropping a writer does not wait");
    drop(busy);
    let writer = recorder.writer();
    assert_eq!(
        (ring_count(&recorder), recorder.dropped()),
        (1, 10),
        "the rings are freed, their drop counts kept"
    );
    drop(writer);
    let recording = recorder.recording();
    let expected: Vec<u64> = (0..10).flat_map(|n| [n, n]).collect();
    assert_eq!((times(&recording), recording.dropped), (expected, 10));
}

#[test]
fn a_full_ring_drops_and_counts_events_while_the_store_is_locked() {
    let config = RecorderConfig { ring_events: 8, ..RecorderConfig::default() };
    let recorder = Recorder::new(Arc::new(OsClock::start()), config);
    let mut writer = recorder.writer();
    let busy = lock(&recorder.inner.store);
    for n in 0..20 {
        writer.record(Nanos(n), LaneId(0), EventKind::Woke(Nanos(0)));
    }
    drop(busy);
    let recording = recorder.recording();
    assert_eq!((times(&recording), recording.dropped), ((0..8).collect(), 12));
    drop(writer);
    assert_eq!((recorder.recording().dropped, recorder.dropped()), (12, 12));
    assert_eq!(ring_count(&recorder), 0, "the ring is freed, its drop count kept");
}
