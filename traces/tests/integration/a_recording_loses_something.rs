//! A saved recording loads completely; saving never leaves a half-written file.

use lapwing_traces::recording::{Recording, RecordingError};
use proptest::prelude::*;

use crate::any_recording::{event, recording};

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
