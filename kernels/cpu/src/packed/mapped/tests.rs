//! A mapped file that another program wants to change, or has changed after the system had waited long enough.
#![cfg(all(target_os = "linux", not(loom)))]

use super::*;
use crate::packed::file_data::CHUNK;
use lapwing_model::weights::{DataFile, ReadFault};
use std::fs;
use std::thread;

/// Bytes before those of the weights.
const START: usize = 4096;

fn values() -> Vec<u8> {
    (0..CHUNK + 5000).map(|i| (i * 31 % 251) as u8).collect()
}

/// A mapped file in a folder; `None`, with a line on stderr, where no file is mapped.
fn mapped() -> Option<(tempfile::TempDir, Mapped)> {
    for place in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
        let Ok(folder) = tempfile::tempdir_in(place) else { continue };
        let path = folder.path().join("file");
        fs::write(&path, [vec![0; START], values()].concat()).expect("a file");
        let file = match DataFile::open(&path).expect("a file").leased() {
            Ok(file) => file,
            Err(unleased) => {
                eprintln!("not mapped: {}", unleased.reason);
                continue;
            }
        };
        let values = values();
        let checksums = values.chunks(CHUNK).map(|chunk| crc32fast::hash(chunk).to_le_bytes());
        let range = START..START + values.len();
        let data = FileData { range, checksums: checksums.collect() };
        return Some((folder, Mapped::new(&path, file, data, None).expect("a map")));
    }
    None
}

/// Reads all chunks.
fn read(mapped: &Mapped) -> Result<Own, PackedFault> {
    let mut result = Ok(());
    let copy = Own::filled(mapped.len(), |to| {
        let mut chunks = to.chunks_mut(CHUNK).enumerate();
        result = chunks.try_for_each(|(i, to)| mapped.data().read(mapped.file(), i, to));
    })?;
    result.map(|()| copy)
}

fn change(mapped: &Mapped, with: impl FnOnce(fs::File)) {
    with(fs::File::options().write(true).open(&mapped.path).expect("a writer"));
}

#[test]
fn weights_whose_lease_has_ended_are_copied_if_they_are_unchanged() {
    let Some((_folder, mapped)) = mapped() else { return };
    let held = mapped.hold(read).expect("held");
    assert!(mapped.bytes() == values() && !mapped.is_copied());
    drop(held);
    mapped.file.release();
    change(&mapped, |file| file.sync_all().expect("nothing to write"));
    let _held = mapped.hold(read).expect("held");
    assert!(mapped.is_copied() && mapped.bytes() == values());
}

#[test]
fn weights_that_were_changed_after_their_lease_are_an_error_of_their_kind() {
    let Some((_folder, mapped_file)) = mapped() else { return };
    mapped_file.file.release();
    change(&mapped_file, |file| file.set_len(START as u64 + 100).expect("truncated"));
    for _ in 0..2 {
        let lost = mapped_file.hold(read).expect_err("a short file");
        let PackedFault::Read(ReadFault::Truncated { now, .. }) = &*lost.fault else {
            panic!("{lost}");
        };
        assert!(*now == START as u64 + 100 && lost.path == mapped_file.path, "{lost}");
    }
    assert!(!mapped_file.is_copied());

    let Some((_folder, mapped_file)) = mapped() else { return };
    mapped_file.file.release();
    change(&mapped_file, |file| {
        let at = (START + CHUNK + 7) as u64;
        std::os::unix::fs::FileExt::write_all_at(&file, b"other", at).expect("written");
    });
    let lost = mapped_file.hold(read).expect_err("other values");
    assert!(matches!(*lost.fault, PackedFault::Damaged), "{lost}");
    assert!(lost.to_string().contains("start again"), "{lost}");
}

#[test]
fn a_file_is_let_go_when_nobody_reads_its_map_any_more() {
    let Some((_folder, mapped)) = mapped() else { return };
    thread::scope(|scope| {
        let held = mapped.hold(read).expect("held");
        let other = scope.spawn(|| change(&mapped, |file| file.set_len(0).expect("truncated")));
        while mapped.file.is_held() {
            thread::yield_now();
        }
        let second = scope.spawn(|| {
            let _held = mapped.hold(read).expect("held");
            assert!(mapped.bytes() == values());
        });
        while !mapped.is_copied() {
            thread::yield_now();
        }
        // The copy is there, and this thread may still read the map.
        assert!(mapped.map[START..] == values() && !other.is_finished() && !second.is_finished());
        drop(held);
        second.join().expect("a thread");
        other.join().expect("a thread");
    });
    assert_eq!(fs::metadata(&mapped.path).expect("a file").len(), 0);
}

/// Bytes that are requested of a range.
fn requested(mapped: &Mapped, range: &std::ops::Range<usize>) -> Vec<std::ops::Range<usize>> {
    let mut all = Vec::new();
    mapped.request(range, |range| all.push(range));
    all
}

#[test]
fn bytes_that_are_not_in_memory_are_requested_and_no_others() {
    let Some((_folder, mapped)) = mapped() else { return };
    let file = fs::File::open(&mapped.path).expect("a file");
    file.sync_all().expect("written");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
    let (all, page) = (0..mapped.len(), rustix::param::page_size());
    let some = page + 10..3 * page + 7;
    let absent = requested(&mapped, &some);
    if absent.is_empty() {
        eprintln!("pages of {} cannot be dropped", mapped.path.display());
        return;
    }
    assert_eq!(absent, std::slice::from_ref(&some), "parts of pages at both ends");
    let held = mapped.hold(read).expect("held");
    // Whole pages are there by now, at both ends.
    assert!(mapped.bytes()[page..4 * page] == values()[page..4 * page]);
    if std::env::var_os("LAPWING_EMULATED").is_some() {
        // The emulator leaves advice out, and the system reads ahead.
        return;
    }
    let rest = requested(&mapped, &all);
    let bytes: usize = rest.iter().map(ExactSizeIterator::len).sum();
    assert_eq!((rest.first().map(|range| range.end), bytes), (Some(page), mapped.len() - 3 * page));
    assert!(mapped.bytes() == values());
    assert!(requested(&mapped, &all).is_empty(), "all are in memory");
    drop(held);
}
