//! Markers that are old, wrong, of another file, or made to mislead.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// The report of a start, which must have the right values.
fn start(kept: &Kept) -> Arc<PackReport> {
    let (got, report) = Tiny::of(&model()).start(Some(&kept.cache));
    assert!(got == kept.want, "other values");
    report.expect("a report")
}

fn marker(kept: &Kept) -> PathBuf {
    PackCache::marker_of(&kept.cache.path)
}

#[test]
fn a_start_with_a_marker_reads_no_weights() {
    let Some(kept) = kept() else { return };
    let bound = Bound::new(&kept.cache);
    let report = pack_report(&bound.tiny.file).expect("a report");
    assert!(report.loaded && report.mapped && !report.checked, "{report:?}");
    assert_eq!(sharing::of_map(&kept.cache.path, "Rss:"), [0], "a page was touched");
}

#[test]
fn a_damaged_marker_costs_a_check_and_is_replaced() {
    let Some(kept) = kept() else { return };
    let whole = fs::read(marker(&kept)).expect("a marker");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let damage = (0..whole.len(), 1u8..=255, 0..=whole.len(), any::<bool>());
    let result = runner.run(&damage, |damage| {
        let (at, flip, len, is_short) = damage;
        let mut bytes = whole.clone();
        bytes[at] ^= flip;
        if is_short {
            bytes.truncate(len);
        }
        fs::write(marker(&kept), &bytes).expect("written");
        let report = start(&kept);
        prop_assert!(report.loaded && report.mapped, "{report:?}");
        prop_assert!(report.checked, "a damaged marker counts");
        prop_assert!(fs::read(marker(&kept)).expect("a marker") == whole, "it is replaced");
        prop_assert!(!start(&kept).checked);
        Ok(())
    });
    result.expect("no damage has an effect");
}

#[test]
fn a_marker_that_is_no_file_or_far_too_large_costs_a_check() {
    let Some(kept) = kept() else { return };
    let whole = fs::read(marker(&kept)).expect("a marker");
    fs::write(marker(&kept), [&whole[..], &[0; 1 << 20]].concat()).expect("written");
    assert!(start(&kept).checked);
    assert!(!start(&kept).checked, "it is replaced");
    fs::remove_file(marker(&kept)).expect("removed");
    fs::create_dir(marker(&kept)).expect("a folder in its place");
    for _ in 0..2 {
        let report = start(&kept);
        assert!(report.loaded && report.mapped && report.checked, "{report:?}");
    }
}

#[test]
fn a_marker_belongs_to_one_version_of_one_file() {
    let Some(kept) = kept() else { return };
    let whole = fs::read(&kept.cache.path).expect("a file");
    // The same bytes in another file.
    let other = kept.folder.path().join("other");
    fs::write(&other, &whole).expect("written");
    fs::rename(&other, &kept.cache.path).expect("replaced");
    let report = start(&kept);
    assert!(report.loaded && report.checked, "{report:?}");
    assert!(!keep(&kept.cache).checked);
    // Another time.
    let file = fs::File::open(&kept.cache.path).expect("a file");
    let modified = file.metadata().and_then(|meta| meta.modified()).expect("a time");
    file.set_modified(modified + Duration::from_nanos(1_000_000)).expect("a time");
    let report = start(&kept);
    assert!(report.loaded && report.checked, "{report:?}");
}

#[test]
fn a_file_that_was_changed_after_its_check_is_packed_again() {
    let Some(kept) = kept() else { return };
    let mut bytes = fs::read(&kept.cache.path).expect("a file");
    let modified = fs::metadata(&kept.cache.path).and_then(|meta| meta.modified()).expect("a time");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    // In place, with the same size, and with the time set back.
    fs::write(&kept.cache.path, &bytes).expect("written");
    let file = fs::File::open(&kept.cache.path).expect("a file");
    file.set_modified(modified).expect("a time");
    let report = start(&kept);
    let fault = report.read_error.as_ref().expect("a fault").to_string();
    assert!(!report.loaded && fault.contains("the packed values"), "{report:?}");
    assert!(keep(&kept.cache).loaded);
}
