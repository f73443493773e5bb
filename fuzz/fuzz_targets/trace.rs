//! Loads arbitrary bytes as a recording, unchanged and with length and checksum corrected. Builds the
//! timeline of every recording that loads, analyses it and replays it.
#![no_main]

use lapwing_traces::analysis::{Replay, WhatIf};
use lapwing_traces::{Analysis, Recording, Report, Timeline};
use libfuzzer_sys::{Corpus, fuzz_target};

/// Bytes before the body: magic, version, length.
const HEADER: usize = 20;
/// Bytes of the checksum.
const CHECK: usize = 4;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    touch(bytes);
    if bytes.len() >= HEADER + CHECK {
        touch(&sealed(bytes));
    }
    Corpus::Keep
});

fn touch(bytes: &[u8]) {
    match Recording::from_bytes(bytes) {
        Ok(recording) => {
            let written = recording.to_bytes();
            // A file of an earlier version is written in the present one.
            let same_version = written[..HEADER][8] == bytes[8];
            assert!(written == bytes || !same_version, "a recording has one form");
            let timeline = Timeline::new(&recording);
            let analysis = Analysis::new(&timeline);
            Report::new(&timeline, &analysis);
            assert!(Replay::new(&timeline, &WhatIf::default()).is_ok());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The bytes with a valid header and checksum, so that the body is parsed.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = Recording::default().to_bytes()[..HEADER].to_vec();
    sealed.extend(&bytes[HEADER..bytes.len() - CHECK]);
    sealed[12..HEADER].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    let check = crc32fast::hash(&sealed);
    sealed.extend(check.to_le_bytes());
    sealed
}
