//! Packed weights that are mapped, whose file or marker another program truncates, overwrites, replaces or invents: the values are
//! those of weights that were read, or there is an error, and never a signal that ends the process.

mod markers;
mod sharing;

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lapwing_kernels::cpu::{
    CacheWriteError, CpuDevice, PackCache, PackReport, PackedMemory, PackedUse, keep_packed,
    lock_packed, pack_report, packed_users,
};
use lapwing_kernels::device::{DeviceError, TensorSet};

use crate::npu::{Task, Tiny};

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/gemma3.gguf")
}

/// A folder with a cache whose file is checked and mapped.
struct Kept {
    folder: tempfile::TempDir,
    cache: PackCache,
    /// Bits of a device without a cache.
    want: Vec<u32>,
}

/// `None`, with a line on stderr, where this machine has no file system whose files are mapped.
fn kept() -> Option<Kept> {
    for place in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
        let Ok(folder) = tempfile::tempdir_in(place) else { continue };
        let path = folder.path().join("model.lwp");
        let cache = PackCache { path, bytes_max: 1 << 30, memory: PackedMemory::Mapped };
        let report = keep(&cache);
        match &report.not_mapped {
            None => return Some(Kept { folder, cache, want: Tiny::of(&model()).start(None).0 }),
            Some(reason) => eprintln!("not mapped in {}: {reason}", cache.path.display()),
        }
    }
    None
}

/// Starts until the cache's file is mapped without a check, if it can be mapped.
fn keep(cache: &PackCache) -> Arc<PackReport> {
    for _ in 0..100_000 {
        let (_, report) = Tiny::of(&model()).start(Some(cache));
        let report = report.expect("a report");
        match &report.write_error {
            Some(CacheWriteError::JustChanged) => continue,
            Some(error) => panic!("{error}"),
            None => {}
        }
        let is_marked = report.mapped && report.loaded && !report.checked;
        if is_marked || report.not_mapped.is_some() {
            return report;
        }
    }
    panic!("{} is checked at every start", cache.path.display());
}

/// A device with mapped weights.
struct Bound {
    tiny: Tiny,
    device: CpuDevice,
    task: Task,
}

impl Bound {
    fn new(cache: &PackCache) -> Bound {
        let tiny = Tiny::of(&model());
        keep_packed(&tiny.file, cache.clone());
        let device = tiny.cpu();
        let report = pack_report(&tiny.file).expect("a report");
        assert!(report.mapped, "{report:?}");
        let task = Task::new(tiny.gated(), 5, &[]);
        Bound { tiny, device, task }
    }

    fn bits(&mut self) -> Result<Vec<u32>, DeviceError> {
        let values: TensorSet = self.tiny.run(&mut self.device, &self.task, &mut ())?;
        let written = self.tiny.graph.writes(self.task.nodes.clone());
        let values = written
            .iter()
            .flat_map(|id| values.get(*id).expect("a value").host().expect("on the host").to_vec());
        Ok(values.map(f32::to_bits).collect())
    }

    fn used(&self) -> PackedUse {
        packed_users(&[&self.tiny.file]).bytes()
    }
}

fn writer(path: &Path) -> std::io::Result<fs::File> {
    fs::File::options().write(true).open(path)
}

#[test]
fn weights_that_are_mapped_give_the_bits_of_those_that_are_read() {
    let Some(Kept { cache, want, folder: _folder }) = kept() else { return };
    let mut mapped = Bound::new(&cache);
    let bytes = mapped.device.weights().packed_bytes();
    let used = mapped.used();
    assert!(used.own_bytes == 0 && used.mapped_bytes >= bytes, "{used:?} of {bytes}");
    let read = PackCache { memory: PackedMemory::Read, ..cache };
    let (got, report) = Tiny::of(&model()).start(Some(&read));
    let report = report.expect("a report");
    assert!(report.loaded && !report.mapped && report.checked, "{report:?}");
    assert!(got == want && mapped.bits().expect("values") == want);
}

/// The other program changes the file at moments that differ from round to round, while a model computes without a pause.
#[test]
fn a_file_truncated_while_a_model_computes_ends_no_process_and_changes_no_value() {
    let Some(Kept { cache, want, folder: _folder }) = kept() else { return };
    let whole = fs::read(&cache.path).expect("a file");
    let mut copied = 0;
    for round in 0..100_usize {
        let mut bound = Bound::new(&cache);
        let keep_bytes = (round * 7919) % whole.len();
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                (0..(round * 37) % 500).for_each(|_| std::hint::spin_loop());
                (0..round % 7).for_each(|_| thread::yield_now());
                let file = writer(&cache.path).expect("opened");
                match round % 3 {
                    0 => file.set_len(keep_bytes as u64).expect("truncated"),
                    1 => fs::write(&cache.path, vec![0xa5; whole.len()]).expect("overwritten"),
                    _ => fs::write(&cache.path, b"").expect("emptied"),
                }
            });
            while !other.is_finished() {
                assert!(bound.bits().expect("values") == want, "round {round}");
            }
        });
        assert!(bound.bits().expect("values") == want, "round {round}: afterwards");
        let used = bound.used();
        assert!(used.mapped_bytes == 0 && used.own_bytes > 0, "round {round}: {used:?}");
        copied += 1;
        // The next start packs again, and replaces the file.
        let (got, report) = Tiny::of(&model()).start(Some(&cache));
        let report = report.expect("a report");
        assert!(got == want && !report.loaded && report.read_error.is_some(), "{report:?}");
    }
    assert_eq!(copied, 100);
}

#[test]
fn a_program_that_does_not_wait_is_refused_until_the_weights_were_copied() {
    let Some(Kept { cache, want, folder: _folder }) = kept() else { return };
    let mut bound = Bound::new(&cache);
    let at_once = || {
        let mut options = fs::File::options();
        options.write(true).custom_flags(NONBLOCK).open(&cache.path)
    };
    let refused = at_once().expect_err("a lease");
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
    assert!(bound.used().mapped_bytes > 0);
    assert!(bound.bits().expect("values") == want);
    assert_eq!(bound.used().mapped_bytes, 0);
    at_once().expect("opened").set_len(0).expect("truncated");
    assert!(bound.bits().expect("values") == want);
}

/// `O_NONBLOCK` of Linux, except on a few old processors.
const NONBLOCK: i32 = 0o4000;

#[test]
fn a_file_that_was_replaced_or_removed_stays_mapped() {
    let Some(Kept { folder, cache, want }) = kept() else { return };
    let mut bound = Bound::new(&cache);
    let other = folder.path().join("other");
    fs::write(&other, b"another file").expect("written");
    fs::rename(&other, &cache.path).expect("replaced");
    assert!(bound.bits().expect("values") == want);
    fs::remove_file(&cache.path).expect("removed");
    assert!(bound.bits().expect("values") == want);
    assert!(bound.used().mapped_bytes > 0);
}

#[test]
fn several_devices_go_on_with_one_copy() {
    let Some(Kept { cache, want, folder: _folder }) = kept() else { return };
    let first = Bound::new(&cache);
    let devices: Vec<CpuDevice> = (0..3).map(|_| first.tiny.cpu()).collect();
    let (tiny, task, want, is_changed) = (&first.tiny, &first.task, &want, AtomicBool::new(false));
    let is_changed = &is_changed;
    thread::scope(|scope| {
        for mut device in devices {
            scope.spawn(move || {
                while !is_changed.load(Ordering::Relaxed) {
                    let values = tiny.run(&mut device, task, &mut ()).expect("values");
                    let written = tiny.graph.writes(task.nodes.clone());
                    let host =
                        |id| values.get(id).expect("a value").host().expect("values").to_vec();
                    let bits = written.iter().flat_map(|id| host(*id)).map(f32::to_bits);
                    assert!(bits.collect::<Vec<_>>() == *want);
                }
            });
        }
        writer(&cache.path).expect("opened").set_len(100).expect("truncated");
        is_changed.store(true, Ordering::Relaxed);
    });
    let PackedUse { own_bytes, mapped_bytes } = first.used();
    assert!(own_bytes > 0 && mapped_bytes == 0);
    assert!(own_bytes < 2 * first.device.weights().packed_bytes(), "one copy");
}

/// Bytes that this process has locked in memory.
fn locked() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("locked memory");
    line.trim_end_matches("kB").trim().parse::<usize>().expect("a number") * 1024
}

#[test]
fn locked_weights_stay_locked_when_they_are_copied() {
    let Some(Kept { cache, want, folder: _folder }) = kept() else { return };
    let mut bound = Bound::new(&cache);
    let bytes = match lock_packed(&bound.tiny.file) {
        Ok(bytes) => bytes,
        Err(error) => {
            assert!(error.to_string().contains("ulimit -l"), "{error}");
            return;
        }
    };
    assert!(bytes >= bound.device.weights().packed_bytes() && locked() >= bytes);
    thread::scope(|scope| {
        let other = scope.spawn(|| writer(&cache.path).expect("opened").set_len(0));
        while !other.is_finished() {
            assert!(bound.bits().expect("values") == want);
        }
    });
    assert!(bound.used().own_bytes >= bytes && locked() >= bytes, "{} locked", locked());
}
