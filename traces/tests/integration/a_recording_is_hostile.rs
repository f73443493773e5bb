//! A file that is truncated, damaged, foreign, newer or malicious is refused with the reason.

use lapwing_traces::recording::{Recording, RecordingError};
use lapwing_traces::timeline::Timeline;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::any_recording::recording;

fn sample() -> Vec<u8> {
    let mut runner = TestRunner::deterministic();
    let of_each = || recording().new_tree(&mut runner).expect("a recording").current();
    let mut all = std::iter::repeat_with(of_each);
    all.find(|r| r.events.len() > 20 && r.lanes.len() > 1 && r.meta.len() > 1)
        .expect("a rich recording")
        .to_bytes()
}

/// Updates length and checksum, so that the content is decoded.
fn seal(bytes: &mut [u8]) {
    let body = bytes.len() - 4;
    let length = bytes.len() as u64;
    bytes[12..20].copy_from_slice(&length.to_le_bytes());
    let check = crc32fast::hash(&bytes[..body]);
    bytes[body..].copy_from_slice(&check.to_le_bytes());
}

/// A file with this content and a correct header and checksum.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut bytes = Recording::default().to_bytes()[..20].to_vec();
    bytes.extend(body);
    bytes.extend([0; 4]);
    seal(&mut bytes);
    bytes
}

#[test]
fn a_file_truncated_at_any_byte_is_refused() {
    let bytes = sample();
    for at in 0..bytes.len() {
        match Recording::from_bytes(&bytes[..at]) {
            Err(RecordingError::Truncated { at: said, length }) => {
                assert_eq!(said, at as u64);
                assert!(at < 20 || length == bytes.len() as u64, "{length}");
            }
            other => panic!("{at}: {other:?}"),
        }
    }
    let mut longer = bytes.clone();
    longer.extend(b"more");
    let error = Recording::from_bytes(&longer).unwrap_err();
    assert!(matches!(error, RecordingError::TooLong { extra: 4 }), "{error:?}");
}

#[test]
fn any_flipped_bit_is_detected() {
    let mut bytes = sample();
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = Recording::from_bytes(&bytes).expect_err("a flipped bit");
        assert!(!error.to_string().is_empty());
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    Recording::from_bytes(&bytes).unwrap();
}

#[test]
fn any_flipped_bit_with_a_matching_checksum_is_refused_or_kept() {
    let good = sample();
    for bit in 20 * 8..(good.len() - 4) * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        seal(&mut bytes);
        match Recording::from_bytes(&bytes) {
            Ok(recording) => {
                assert_eq!(recording.to_bytes(), bytes, "bit {bit} is read but not kept");
                Timeline::new(&recording);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn a_foreign_file_is_refused() {
    for bytes in
        [&b"{\"traceEvents\": []}"[..], b"\x1f\x8b\x08", b"\x89PNG\r\n\x1a\n", b"\x89LWT\n"]
    {
        let error = Recording::from_bytes(bytes).unwrap_err();
        assert!(matches!(error, RecordingError::NotARecording), "{error:?}");
    }
}

#[test]
fn a_newer_version_is_refused() {
    let mut bytes = sample();
    bytes[8] = 5;
    let error = Recording::from_bytes(&bytes).unwrap_err();
    assert!(matches!(error, RecordingError::Newer { version: 5, known: 4 }), "{error:?}");
    assert!(error.to_string().contains("newer lapwing"), "{error}");
}

#[test]
fn a_huge_count_allocates_nothing() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    for (tables, what) in [
        (&[][..], "facts"),
        (&[0], "lanes"),
        (&[0, 0], "names"),
        (&[0, 0, 0, 0], "events"),
        (&[0, 0, 1], "bytes of text"),
        (&[0, 0, 0, 0, 0], "bytes of a column"),
    ] {
        let mut body = tables.to_vec();
        body.extend(huge);
        match Recording::from_bytes(&sealed(&body)) {
            Err(RecordingError::ImpossibleCount { what: said, count: u64::MAX, at, .. }) => {
                assert_eq!((said, at), (what, 20 + tables.len() as u64));
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn an_unknown_event_is_refused() {
    let mut body = vec![0, 0, 0, 0, 1];
    body.extend([1; 11]);
    // An event of kind 63, otherwise empty.
    body.extend([0, 126, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let error = Recording::from_bytes(&sealed(&body)).unwrap_err();
    assert!(matches!(error, RecordingError::BrokenEvent { number: 0, count: 1 }), "{error:?}");
}

#[test]
fn only_the_canonical_encoding_is_accepted() {
    let broken = |body: &[u8], part: &str| {
        let error = Recording::from_bytes(&sealed(body)).unwrap_err();
        assert!(matches!(error, RecordingError::Broken { .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    };
    let nothing = [0; 16];
    Recording::from_bytes(&sealed(&nothing)).unwrap();
    broken(&[0x80, 0], "not in its shortest form");
    broken(
        &[0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
        "more than 64 bits",
    );
    broken(&[2, 1, b'b', 0, 1, b'a', 0], "the facts are not sorted");
    broken(&[2, 1, b'a', 0, 1, b'a', 0], "the facts are not sorted");
    broken(&[0, 1, 9, 0], "the kind of a lane is unknown");
    broken(&[0, 0, 1, 1, 0xff], "a text is not UTF-8");
    broken(&[&nothing[..], &[0]].concat(), "extra bytes after the last column");
    let mut column = nothing.to_vec();
    column[5] = 1;
    broken(&[&column[..], &[0]].concat(), "a column has more values");
    broken(&column, "");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_load_canonically(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = sealed(&body);
        if let Ok(recording) = Recording::from_bytes(&bytes) {
            prop_assert_eq!(recording.to_bytes(), bytes);
        }
        let _ = Recording::from_bytes(&body);
    }
}
