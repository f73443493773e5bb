//! Weight files, and packed weights that were read, which another program truncates, overwrites or replaces while they are
//! in use: an error, never a signal that ends the process. `a_mapped_file_changes` has mapped ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lapwing_kernels::cpu::{
    BindError, Cpu, CpuDevice, CpuDeviceParts, EmbedError, FileMatrix, Isa, PackCache,
    PackedMemory, Table, embed_rows, keep_packed, pack_report,
};
use lapwing_kernels::device::SlotPool;
use lapwing_kernels::kv::KvStore;
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::{ReadFault, WeightFile};

use crate::npu::Tiny;

/// A copy of a tiny model whose embedding table is not its output matrix.
fn copy(folder: &Path) -> PathBuf {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let path = folder.join("model.gguf");
    fs::copy(tiny, &path).expect("a copy");
    path
}

fn truncate(path: &Path, bytes: u64) {
    let file = fs::File::options().write(true).open(path).expect("a file");
    file.set_len(bytes).expect("truncated");
}

fn bind(tiny: &Tiny) -> Result<CpuDevice, BindError> {
    let parts = CpuDeviceParts {
        name: "cpu".to_owned(),
        cpu: Cpu::new(2, Isa::best()),
        graph: Arc::clone(&tiny.graph),
        kv: Arc::new(KvStore::none()),
        slots: SlotPool::default(),
    };
    CpuDevice::new(parts, &tiny.file)
}

#[test]
fn a_file_truncated_before_it_is_packed_is_an_error_that_names_file_and_tensor() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy(folder.path());
    let bytes = fs::metadata(&path).expect("a file").len();
    for keep in [0, 4096, bytes / 2, bytes - 1] {
        let path = copy(folder.path());
        let tiny = Tiny::of(&path);
        truncate(&path, keep);
        let error = bind(&tiny).expect_err("a truncated file");
        let BindError::Read(read) = &error else { panic!("{error:?}") };
        assert!(tiny.file.tensor(&read.tensor).is_some() && read.path == path, "{error}");
        assert!(matches!(&*read.fault, ReadFault::Truncated { now, then }
            if *now == keep && *then == bytes));
        let text = error.to_string();
        assert!(text.contains(&read.tensor) && text.contains("model.gguf"), "{text}");
    }
}

#[test]
fn a_file_overwritten_in_place_is_an_error_and_one_renamed_over_it_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy(folder.path());
    let other = folder.path().join("other.gguf");
    fs::copy(&path, &other).expect("a copy");
    let tiny = Tiny::of(&path);
    truncate(&other, 100);
    fs::rename(&other, &path).expect("replaced");
    bind(&tiny).expect("the file that was opened");

    let path = copy(folder.path());
    let tiny = Tiny::of(&path);
    let bytes = fs::read(&path).expect("a file");
    fs::write(&path, &bytes).expect("written");
    let file = fs::File::options().write(true).open(&path).expect("a file");
    let later = file.metadata().and_then(|meta| meta.modified()).expect("a time")
        + std::time::Duration::from_secs(5);
    file.set_modified(later).expect("a time");
    let error = bind(&tiny).expect_err("a changed file");
    let BindError::Changed(changed) = &error else { panic!("{error:?}") };
    assert!(changed.path == path && matches!(changed.fault, ReadFault::Changed), "{error}");
}

#[test]
fn a_table_row_of_a_truncated_file_is_an_error_that_names_file_and_tensor() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy(folder.path());
    let tiny = Tiny::of(&path);
    let _bound = bind(&tiny).expect("a device");
    let tensor = tiny.file.tensor("token_embd.weight").expect("a table");
    let (rows, cols) = (tensor.shape().rows(), tensor.shape().cols());
    let table = Table::File(FileMatrix::new(&tensor, rows, cols).expect("a matrix"));
    let cpu = Cpu::new(2, Isa::best());
    let ids = [0, rows as u32 - 1, 3];
    let mut values = vec![0.0; ids.len() * cols];
    embed_rows(&cpu, table, &ids, 1.0, &mut values).expect("rows");
    for keep in [tensor.info().range().end as u64 - 1, 0] {
        truncate(&path, keep);
        let error = embed_rows(&cpu, table, &ids, 1.0, &mut values).expect_err("a short file");
        let EmbedError::Read(read) = &error else { panic!("{error:?}") };
        assert_eq!((&*read.tensor, &read.path), ("token_embd.weight", &path), "{error}");
    }
}

#[test]
fn a_file_that_keeps_changing_while_models_start_ends_no_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy(folder.path());
    let bytes = fs::read(&path).expect("a model");
    let stop = AtomicBool::new(false);
    let (mut good, mut bad) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut keep = 0;
            while !stop.load(Ordering::Relaxed) {
                keep = (keep + 7919) % bytes.len();
                truncate(&path, keep as u64);
                fs::write(&path, &bytes).expect("written");
            }
        });
        for _ in 0..300 {
            let started = WeightFile::open(&path).is_ok_and(|file| {
                Model::from_weights(&file)
                    .is_ok_and(|model| bind(&Tiny { file, graph: Arc::new(model.graph) }).is_ok())
            });
            *(if started { &mut good } else { &mut bad }) += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(bad > 0, "{good} starts, none of which met a change");
}

#[test]
fn packed_weights_that_were_read_may_be_truncated() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy(folder.path());
    let file = fs::File::options().write(true).open(&path).expect("a file");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    file.set_modified(old).expect("a time");
    let memory = PackedMemory::Read;
    let cache = PackCache { path: folder.path().join("model.lwp"), bytes_max: 1 << 30, memory };
    let (want, _) = Tiny::of(&path).start(None);
    let kept = (0..10_000).any(|_| {
        let (_, report) = Tiny::of(&path).start(Some(&cache));
        report.is_some_and(|report| report.write_error.is_none())
    });
    assert!(kept && cache.path.exists());
    let tiny = Tiny::of(&path);
    keep_packed(&tiny.file, cache.clone());
    let _device = bind(&tiny).expect("a device");
    assert!(pack_report(&tiny.file).expect("a report").loaded);
    truncate(&cache.path, 0);
    // A second device shares the weights of the first.
    assert_eq!(tiny.start(None).0, want);
}
