//! A saved recording loads completely; saving never leaves a half-written file.

use lapwing_traces::event::{EventKind, Milestone, Tags};
use lapwing_traces::recording::{Recording, RecordingError};
use lapwing_traces::{Nanos, Timeline};
use proptest::prelude::*;

use crate::any_recording::{event, recording};
use crate::runs::{Script, span_id};

proptest! {
    #[test]
    fn a_recording_survives_encoding(recording in recording()) {
        let bytes = recording.to_bytes();
        let again = Recording::from_bytes(&bytes).unwrap();
        prop_assert_eq!(&again, &recording);
        prop_assert_eq!(again.to_bytes(), bytes);
    }

    #[test]
    fn an_event_survives_packing_into_words(event in event()) {
        let words = event.to_words();
        prop_assert_eq!(lapwing_traces::event::Event::from_words(&words), Some(event));
    }
}

fn named(name: &str) -> Recording {
    Recording { names: vec![name.into()], dropped: 7, ..Recording::default() }
}

#[test]
fn a_recording_survives_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.lwt");
    named("first").save(&path).unwrap();
    named("second").save(&path).unwrap();
    assert_eq!(Recording::load(&path).unwrap(), named("second"));
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "the temporary file is gone");
}

#[test]
fn a_file_that_cannot_be_replaced_stays_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.lwt");
    std::fs::create_dir(&path).unwrap();
    let error = named("x").save(&path).unwrap_err();
    assert!(matches!(error, RecordingError::Write { .. }), "{error:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    let nowhere = folder.path().join("no folder/run.lwt");
    let error = named("x").save(&nowhere).unwrap_err();
    assert!(error.to_string().contains("no folder"), "{error}");
    assert!(matches!(named("x").save("/").unwrap_err(), RecordingError::Write { .. }));
}

#[test]
fn errors_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.lwt");
    let missing = Recording::load(&path).unwrap_err();
    assert!(matches!(missing, RecordingError::Read { .. }), "{missing:?}");
    std::fs::write(&path, "not a recording").unwrap();
    let foreign = Recording::load(&path).unwrap_err();
    assert!(foreign.to_string().contains("run.lwt"), "{foreign}");
    assert!(foreign.to_string().contains("--trace"), "{foreign}");
}

/// Events of a recorder on which two runs follow each other, the second from 100 on. The first ends with
/// a span from 80 to 120, which sends a message at 110.
fn two_runs() -> (Recording, Recording) {
    let mut script = Script::default();
    script.ran(1, "cpu", (10, 60)).sent((1, 2), ("cpu", "host"), (60, 80));
    let cut = script.recording.events.len();
    script.ran(2, "host", (80, 120));
    script.event(100, "host", EventKind::Request(2, Milestone::Submitted, 1));
    script.ran(3, "cpu", (130, 150)).sent((2, 3), ("host", "cpu"), (110, 130));
    let name = script.name("stage");
    let tags = Tags::default();
    let activity = lapwing_traces::event::Activity::Compute;
    let info = lapwing_traces::event::SpanInfo { name, activity, parent: None, tags };
    script.event(150, "cpu", EventKind::Queued(span_id(4)));
    script.event(160, "cpu", EventKind::Started(span_id(4), info));
    script.event(170, "cpu", EventKind::Finished(span_id(4)));
    script.event(125, "cpu", EventKind::Finished(span_id(9)));
    let mut early = script.recording.clone();
    let late = Recording { events: early.events.split_off(cut), ..script.recording };
    (early, late)
}

#[test]
fn what_a_thread_recorded_late_belongs_to_the_run_in_which_it_began() {
    let (mut first, mut second) = two_runs();
    let late = second.split_before(Nanos(100));
    let spans = |recording: &Recording| {
        let timeline = Timeline::new(recording);
        timeline.spans.iter().map(|span| span.id.0.get()).collect::<Vec<_>>()
    };
    assert_eq!((spans(&late), spans(&second)), (vec![2], vec![3, 4]));
    assert_eq!(Timeline::new(&second).milestones.len(), 1);
    assert_eq!(Timeline::new(&second).makespan(), 40);
    let events = |recording: &Recording| recording.events.len();
    let before = (events(&first), events(&late));
    first.append(late);
    assert_eq!(events(&first), before.0 + before.1, "nothing is lost");
    assert_eq!(spans(&first), [1, 2]);
    let timeline = Timeline::new(&first);
    assert_eq!(timeline.messages.iter().filter(|m| m.from == Some(1)).count(), 1);
}
