//! PackedMatrix-weight caches that are damaged, stale, foreign, or written concurrently: whatever they
//! contain, a device computes the same as without a cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lapwing_kernels::cpu::{CacheReadError, CacheWriteError, PackCache, PackReport, PackedMemory};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::npu::Tiny;

const MODEL: &str = "gemma3.gguf";

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny").join(MODEL)
}

fn cache(folder: &Path) -> PackCache {
    cache_in(folder, PackedMemory::Read)
}

fn cache_in(folder: &Path, memory: PackedMemory) -> PackCache {
    PackCache { path: folder.join("kept/model.lwp"), bytes_max: 1 << 30, memory }
}

/// Both ways to use a file.
const WAYS: [PackedMemory; 2] = [PackedMemory::Read, PackedMemory::Mapped];

/// Values that a device with that cache computes, and the report on the cache.
fn start(model: &Path, cache: Option<&PackCache>) -> (Vec<u32>, Option<Arc<PackReport>>) {
    Tiny::of(model).start(cache)
}

/// Starts until the model file is old enough to be cached; returns the report of the start that cached
/// it.
fn keep(model: &Path, cache: &PackCache) -> Arc<PackReport> {
    for _ in 0..10_000 {
        let (_, report) = start(model, Some(cache));
        let report = report.expect("a report");
        match report.write_error {
            Some(CacheWriteError::JustChanged) => {}
            Some(ref error) => panic!("{error}"),
            None => return report,
        }
    }
    panic!("{} was written just now, for ever", model.display());
}

#[test]
fn packed_weights_are_cached_at_the_first_start_and_read_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache(folder.path());
    let (want, none) = start(&model(), None);
    assert!(none.is_none());
    for loaded in [false, true, true] {
        let (got, report) = start(&model(), Some(&cache));
        let report = report.expect("a report");
        assert_eq!(got, want);
        assert_eq!(report.loaded, loaded, "{report:?}");
        assert!(report.read_error.is_none() && report.write_error.is_none(), "{report:?}");
    }
    let files = fs::read_dir(folder.path().join("kept")).expect("a folder");
    assert_eq!(files.count(), 1, "nothing is left behind");
}

/// Damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    Flip { at: usize, bit: u8 },
    Truncate { to: usize },
    Extend { by: usize, with: u8 },
    Write { at: usize, number: u32 },
    Fill { at: usize, len: usize, with: u8 },
    Remove { at: usize, len: usize },
    Swap { a: usize, b: usize, len: usize },
}

impl Damage {
    fn apply(&self, file: &mut Vec<u8>) {
        let len = file.len().max(1);
        match *self {
            Damage::Flip { at, bit } => {
                file.get_mut(at % len).into_iter().for_each(|b| *b ^= 1 << bit)
            }
            Damage::Truncate { to } => file.truncate(to % len),
            Damage::Extend { by, with } => file.extend(vec![with; by]),
            Damage::Write { at, number } => {
                let bytes = file.iter_mut().skip(at % len).take(4);
                bytes.zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
            }
            Damage::Fill { at, len: n, with } => {
                file.iter_mut().skip(at % len).take(n).for_each(|b| *b = with);
            }
            Damage::Remove { at, len: n } => {
                let start = (at % len).min(file.len());
                file.drain(start..file.len().min(start + n));
            }
            Damage::Swap { a, b, len: n } => {
                (0..n).for_each(|i| {
                    if a % len + i < file.len() && b % len + i < file.len() {
                        file.swap(a % len + i, b % len + i);
                    }
                });
            }
        }
    }
}

/// A position in the file, often in its header.
fn place() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..32, 0usize..9000, any::<usize>()]
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (place(), 0u8..8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        1 => place().prop_map(|to| Damage::Truncate { to }),
        1 => (1usize..9000, any::<u8>()).prop_map(|(by, with)| Damage::Extend { by, with }),
        2 => (place(), prop_oneof![Just(0), Just(u32::MAX), Just(1 << 31), any::<u32>()])
            .prop_map(|(at, number)| Damage::Write { at, number }),
        1 => (place(), 1usize..9000, any::<u8>())
            .prop_map(|(at, len, with)| Damage::Fill { at, len, with }),
        1 => (place(), 1usize..9000).prop_map(|(at, len)| Damage::Remove { at, len }),
        1 => (place(), place(), 1usize..5000).prop_map(|(a, b, len)| Damage::Swap { a, b, len }),
    ]
}

#[test]
fn a_damaged_cache_is_rebuilt_and_changes_no_value() {
    WAYS.into_iter().for_each(a_damaged_cache_changes_no_value);
}

fn a_damaged_cache_changes_no_value(memory: PackedMemory) {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path(), memory);
    keep(&model(), &cache);
    let whole = fs::read(&cache.path).expect("a kept file");
    let (want, _) = start(&model(), None);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let all = prop::collection::vec(damage(), 1..4);
    let result = runner.run(&all, |all| {
        let mut file = whole.clone();
        all.iter().for_each(|damage| damage.apply(&mut file));
        fs::remove_file(&cache.path).expect("removed");
        fs::write(&cache.path, &file).expect("written");
        let (got, report) = start(&model(), Some(&cache));
        let report = report.ok_or_else(|| TestCaseError::fail("no report"))?;
        prop_assert!(got == want, "other values");
        prop_assert_eq!(report.loaded, file == whole, "{:?}", &report);
        prop_assert_eq!(report.read_error.is_none(), file == whole, "{:?}", &report);
        prop_assert!(fs::read(&cache.path).expect("a file") == whole, "it is rebuilt");
        Ok(())
    });
    result.expect("no damage has an effect");
}

#[test]
fn a_cache_of_another_version_or_format_is_rebuilt() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache(folder.path());
    keep(&model(), &cache);
    let whole = fs::read(&cache.path).expect("a kept file");
    let replaced = |at: usize, with: u8| {
        let mut file = whole.clone();
        file[at] = with;
        file
    };
    let fault = |file: &[u8]| {
        fs::remove_file(&cache.path).expect("removed");
        fs::write(&cache.path, file).expect("written");
        let (_, report) = start(&model(), Some(&cache));
        let report = report.expect("a report");
        assert!(!report.loaded && report.write_error.is_none(), "{report:?}");
        report.read_error.as_ref().expect("a fault").to_string()
    };
    assert!(fault(b"").contains("not a file of packed weights"));
    assert!(fault(&fs::read(model()).expect("a model")).contains("not a file of packed weights"));
    assert!(fault(&replaced(8, 0)).contains("version 0."));
    assert!(fault(&replaced(12, 99)).contains(".99"));
    assert!(fault(&whole[..20]).contains("ends early"));
    assert!(fault(&whole[..whole.len() - 1]).contains("its length"));
    assert!(fault(&replaced(whole.len() - 1, !whole[whole.len() - 1])).contains("values"));
}

#[test]
fn a_changed_model_invalidates_its_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache(folder.path());
    let copy = folder.path().join("model.gguf");
    fs::copy(model(), &copy).expect("a copy");
    let modified = fs::metadata(&copy).and_then(|data| data.modified()).expect("a time");
    assert!(!keep(&copy, &cache).loaded);
    assert!(keep(&copy, &cache).loaded);
    // Changed in place, with the same size, and with the modification time set back.
    let mut bytes = fs::read(&copy).expect("a model");
    let tensor = Tiny::of(&copy);
    let gate = tensor.file.tensors().find(|info| info.name.contains("ffn_gate")).expect("a gate");
    let range = gate.range();
    bytes[range].iter_mut().for_each(|byte| *byte ^= 4);
    fs::write(&copy, &bytes).expect("written");
    let file = fs::File::options().write(true).open(&copy).expect("a file");
    file.set_modified(modified).expect("a time");
    let (want, _) = start(&copy, None);
    let (got, report) = start(&copy, Some(&cache));
    let report = report.expect("a report");
    assert_eq!(got, want);
    assert!(matches!(report.read_error, Some(CacheReadError::Stale)), "{report:?}");
    assert_ne!(want, start(&model(), None).0, "the change changes nothing");
    keep(&copy, &cache);
    let (got, report) = start(&copy, Some(&cache));
    assert!(got == want && report.expect("a report").loaded);
}

#[test]
fn a_model_that_has_just_changed_is_not_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache(folder.path());
    let copy = folder.path().join("model.gguf");
    fs::copy(model(), &copy).expect("a copy");
    let file = fs::File::options().write(true).open(&copy).expect("a file");
    let future = fs::metadata(&copy).and_then(|data| data.modified()).expect("a time")
        + std::time::Duration::from_secs(3600);
    file.set_modified(future).expect("a time");
    let (_, report) = start(&copy, Some(&cache));
    let report = report.expect("a report");
    assert!(matches!(report.write_error, Some(CacheWriteError::JustChanged)), "{report:?}");
    assert!(!cache.path.exists());
}

#[test]
fn a_cache_that_cannot_be_written_does_not_stop_a_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let (want, _) = start(&model(), None);
    fs::write(folder.path().join("kept"), b"a file").expect("written");
    let (got, report) = start(&model(), Some(&cache(folder.path())));
    let report = report.expect("a report");
    assert!(got == want && !report.loaded);
    assert!(matches!(report.write_error, Some(CacheWriteError::Write { .. })), "{report:?}");
    let memory = PackedMemory::Mapped;
    let small = PackCache { path: folder.path().join("small"), bytes_max: 4096, memory };
    // A folder at the path of the cache file.
    let taken = PackCache { path: folder.path().to_owned(), bytes_max: u64::MAX, ..small.clone() };
    let (got, report) = start(&model(), Some(&taken));
    let report = report.expect("a report");
    assert!(
        got == want && report.read_error.is_some() && report.write_error.is_some(),
        "{report:?}"
    );
    let (got, report) = start(&model(), Some(&small));
    let report = report.expect("a report");
    assert!(matches!(report.write_error, Some(CacheWriteError::TooLarge { .. })), "{report:?}");
    assert!(got == want && !small.path.exists());
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "something is left");
}

#[test]
fn concurrent_writers_leave_a_valid_cache() {
    WAYS.into_iter().for_each(concurrent_writers);
}

fn concurrent_writers(memory: PackedMemory) {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path(), memory);
    let (want, _) = start(&model(), None);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (cache, want) = (&cache, &want);
            scope.spawn(move || {
                for round in 0..20 {
                    let (got, report) = start(&model(), Some(cache));
                    let report = report.expect("a report");
                    assert!(got == *want, "{thread} {round}: other values");
                    assert!(report.read_error.is_none(), "half a file was seen: {report:?}");
                    assert!(report.write_error.is_none(), "{report:?}");
                    if round % 3 == thread % 3 {
                        let _ = fs::remove_file(&cache.path);
                    }
                }
            });
        }
    });
    let files = fs::read_dir(folder.path().join("kept")).expect("a folder");
    let marker = usize::from(memory == PackedMemory::Mapped);
    assert!(files.count() <= 1 + marker, "something is left behind");
}
