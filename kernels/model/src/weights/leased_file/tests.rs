//! What others may do to a file with a lease, and when they get to do it.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;
use std::thread;

use super::*;
use crate::weights::ReadFault;

/// A file of 100 bytes where leases are granted; `None`, with a line on stderr, if there is no such place.
fn leased() -> Option<(tempfile::TempDir, PathBuf, LeasedFile)> {
    for place in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
        let Ok(folder) = tempfile::tempdir_in(place) else { continue };
        let path = folder.path().join("file");
        fs::write(&path, [7; 100]).expect("a file");
        match DataFile::open(&path).expect("a file").leased() {
            Ok(file) => return Some((folder, path, file)),
            Err(Unleased { reason, .. }) => eprintln!("no lease on {}: {reason}", path.display()),
        }
    }
    None
}

fn writer(path: &std::path::Path) -> io::Result<File> {
    fs::File::options().write(true).open(path)
}

#[test]
fn a_program_that_wants_to_change_the_file_waits_until_the_lease_ends() {
    let Some((_folder, path, file)) = leased() else { return };
    assert!(file.is_held() && file.bytes_total() == 100);
    thread::scope(|scope| {
        let changed = scope.spawn(|| writer(&path).and_then(|other| other.set_len(3)));
        while file.is_held() && !changed.is_finished() {
            thread::yield_now();
        }
        // It asks, and no signal has ended this process.
        let mut bytes = [0; 100];
        file.read(0, &mut bytes).expect("all bytes");
        assert!(bytes == [7; 100] && !changed.is_finished());
        file.release();
        changed.join().expect("a thread").expect("changed");
    });
    assert!(!file.is_held());
    let error = file.read(0, &mut [0; 100]).expect_err("a short file");
    assert!(matches!(error, ReadFault::Truncated { now: 3, then: 100 }), "{error}");
}

#[test]
fn a_file_may_be_renamed_replaced_and_removed_as_ever() {
    let Some((folder, path, file)) = leased() else { return };
    let other = folder.path().join("other");
    fs::rename(&path, &other).expect("renamed");
    fs::write(&path, [8; 50]).expect("another file of that name");
    fs::rename(&path, &other).expect("replaced");
    fs::remove_file(&other).expect("removed");
    assert!(file.is_held());
    let mut bytes = [0; 100];
    file.read(0, &mut bytes).expect("all bytes");
    assert_eq!(bytes, [7; 100]);
}

#[test]
fn two_may_hold_a_file_and_none_that_somebody_writes_to() {
    let Some((_folder, path, file)) = leased() else { return };
    let second = DataFile::open(&path).expect("a file").leased().expect("a second lease");
    assert!(file.is_held() && second.is_held());
    let plain = second.into_file();
    assert!(file.is_held());
    drop((plain, file));
    let open = writer(&path).expect("a writer");
    let refused = DataFile::open(&path).expect("a file").leased().expect_err("a writer is there");
    assert!(matches!(refused.reason, NoLease::Writer), "{}", refused.reason);
    drop(open);
    DataFile::open(&path).expect("a file").leased().expect("nobody writes");
}

#[test]
fn a_file_of_another_file_system_has_no_lease_and_says_which() {
    let kind = DataFile::open("/proc/self/status".as_ref()).expect("a file").leased();
    let Unleased { file, reason } = kind.expect_err("a file of the system");
    assert!(matches!(reason, NoLease::FileSystem { kind: 0x9fa0 }), "{reason}");
    let mut bytes = [0; 4];
    file.read(0, &mut bytes).expect("it can still be read");
    assert_eq!(&bytes, b"Name");
}
