//! Weights that are larger than memory are used from a mapped file, or there is an error that says why not. What is read from the disk is
//! reported, and nothing else.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use lapwing_kernels::cpu::{
    BeyondMemory, BindError, CacheWriteError, Cpu, CpuDevice, Isa, MustMap, PackCache, PackError,
    PackedMemory, Weights, keep_packed, limit_packed, lock_packed, pack_report,
};
use lapwing_kernels::device::Observer;
use lapwing_kernels::op::Op;

use crate::npu::{Task, Tiny};

/// Bytes that are free, which are fewer than any model has.
const FREE: u64 = 1000;

fn tiny(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny").join(name)
}

fn cache(folder: &Path, memory: PackedMemory) -> PackCache {
    PackCache { path: folder.join("model.lwp"), bytes_max: 1 << 30, memory }
}

/// A model with this cache, for which less memory is free than its weights have.
fn beyond(model: &Path, cache: Option<&PackCache>) -> Tiny {
    let tiny = Tiny::of(model);
    cache.into_iter().for_each(|cache| keep_packed(&tiny.file, cache.clone()));
    limit_packed(&tiny.file, || Some(FREE));
    tiny
}

/// A folder whose files are mapped, with the packed weights of a model; `None`, with a line on stderr, if there is none.
fn kept(model: &Path) -> Option<(tempfile::TempDir, PackCache)> {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache(folder.path(), PackedMemory::Mapped);
    loop {
        let tiny = beyond(model, Some(&cache));
        match refused(&tiny) {
            None => return Some((folder, cache)),
            Some((_, MustMap::NotWritten(CacheWriteError::JustChanged))) => {}
            Some((_, reason @ MustMap::NotMapped(_))) => {
                eprintln!("not mapped in {}: {reason}", cache.path.display());
                return None;
            }
            Some((_, error)) => panic!("{error}"),
        }
    }
}

/// Why the weights cannot be used; `None` if they can.
fn refused(tiny: &Tiny) -> Option<(BeyondMemory, MustMap)> {
    let cpu = Cpu::new(2, Isa::best());
    match Weights::of(&cpu, &tiny.graph, &tiny.file) {
        Ok(_) => None,
        Err(BindError::Pack(PackError::Beyond { beyond, why })) => {
            assert_eq!(beyond.free, FREE);
            Some((beyond, why))
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn weights_packed_in_pieces_have_the_file_and_the_values_of_those_packed_in_memory() {
    let model = tiny("gemma3.gguf");
    let Some((_folder, mapped)) = kept(&model) else { return };
    let other = tempfile::tempdir().expect("a folder");
    let read = cache(other.path(), PackedMemory::Read);
    let (want, _) = Tiny::of(&model).start(Some(&read));
    assert!(fs::read(&mapped.path).expect("a file") == fs::read(&read.path).expect("a file"));
    let tiny = beyond(&model, Some(&mapped));
    let (got, report) = tiny.start(Some(&mapped));
    let report = report.expect("a report");
    assert!(got == want && report.loaded && report.mapped, "{report:?}");
    let beyond = report.beyond.expect("larger than memory");
    assert!(beyond.free == FREE && beyond.times() > 2.0, "{beyond}");
}

#[test]
fn weights_that_cannot_be_mapped_are_refused_with_the_reason_before_they_are_packed() {
    let model = tiny("gemma3.gguf");
    let Some((folder, mapped)) = kept(&model) else { return };
    let text = |tiny: &Tiny| {
        let error = Weights::of(&Cpu::new(1, Isa::best()), &tiny.graph, &tiny.file);
        error.expect_err("too large").to_string()
    };
    let none = beyond(&model, None);
    assert!(matches!(refused(&none), Some((_, MustMap::NotKept))), "{}", text(&none));
    assert!(text(&none).contains("1000 bytes of memory that are free"), "{}", text(&none));
    assert!(text(&none).contains("--no-packed-cache"), "{}", text(&none));
    // Whether there is a file or not.
    for path in [mapped.path.clone(), folder.path().join("other")] {
        let read = PackCache { path, memory: PackedMemory::Read, ..mapped.clone() };
        let read = beyond(&model, Some(&read));
        assert!(matches!(refused(&read), Some((_, MustMap::Read))), "{}", text(&read));
    }
    let small = PackCache { path: folder.path().join("small"), bytes_max: 5000, ..mapped.clone() };
    let small = beyond(&model, Some(&small));
    let Some((_, MustMap::NotWritten(CacheWriteError::TooLarge { bytes_max, .. }))) =
        refused(&small)
    else {
        panic!("{}", text(&small))
    };
    assert_eq!(bytes_max, 5000);
    let path = folder.path().join("model.lwp/below/a/file");
    let taken = beyond(&model, Some(&PackCache { path, ..mapped.clone() }));
    assert!(
        text(&taken).contains("free space, or keep them in another folder"),
        "{}",
        text(&taken)
    );
    let names: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert!(names.len() <= 2, "something is left: {names:?}");
}

#[test]
fn weights_larger_than_memory_are_neither_locked_nor_copied() {
    let model = tiny("gemma3.gguf");
    let Some((_folder, cache)) = kept(&model) else { return };
    let tiny = beyond(&model, Some(&cache));
    let (mut device, task) = (tiny.cpu(), Task::new(tiny.gated(), 5, &[]));
    let error = lock_packed(&tiny.file).expect_err("too large");
    assert!(error.to_string().contains("1000 bytes of memory that are free"), "{error}");
    tiny.run(&mut device, &task, &mut ()).expect("values");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let file = fs::File::options().write(true).open(&cache.path).expect("opened");
            file.set_len(10).expect("truncated");
        });
        let error = loop {
            match tiny.run(&mut device, &task, &mut ()) {
                Ok(_) => std::thread::yield_now(),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("not copied; start again"), "{error}");
        other.join().expect("a thread");
    });
}

/// What a device has reported.
#[derive(Debug, Default)]
struct Reads {
    bytes: u64,
    reports: usize,
    nodes: usize,
}

impl Observer for Reads {
    fn nodes_done(&mut self, nodes: Range<usize>) {
        self.nodes += nodes.len();
    }

    fn weights_read(&mut self, bytes: u64) {
        assert_eq!(self.nodes, 0, "all of the stage is requested before its first node");
        self.bytes += bytes;
        self.reports += 1;
    }
}

/// Drops the pages of a file that no process has touched in a map.
fn drop_pages(path: &Path) {
    let file = fs::File::open(path).expect("a file");
    file.sync_all().expect("written");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
}

/// Runs some nodes three times, the first time with dropped pages.
fn reads(tiny: &Tiny, cache: &PackCache, task: &Task) -> [Reads; 3] {
    keep_packed(&tiny.file, cache.clone());
    let mut device: CpuDevice = tiny.cpu();
    assert!(pack_report(&tiny.file).expect("a report").mapped);
    let want = bits(&Tiny::of(&tiny.file.paths()[0]), task);
    drop_pages(&cache.path);
    std::array::from_fn(|_| {
        let mut reads = Reads::default();
        let values = tiny.run(&mut device, task, &mut reads).expect("values");
        assert!(bits_of(tiny, task, &values) == want);
        reads
    })
}

fn bits(tiny: &Tiny, task: &Task) -> Vec<u32> {
    let values = tiny.run(&mut tiny.cpu(), task, &mut ()).expect("values");
    bits_of(tiny, task, &values)
}

fn bits_of(tiny: &Tiny, task: &Task, values: &lapwing_kernels::device::TensorSet) -> Vec<u32> {
    let written = tiny.graph.writes(task.nodes.clone());
    let host = |id| values.get(id).expect("a value").host().expect("on the host").to_vec();
    written.iter().flat_map(|id| host(*id)).map(f32::to_bits).collect()
}

/// Checks reports against the bytes of the weights: pages at the borders of matrices may have come with their neighbours.
fn check([first, rest @ ..]: [Reads; 3], bytes: u64, matrices: u64) {
    if first.reports == 0 {
        eprintln!("pages of files cannot be dropped here");
        return;
    }
    let (least, page) = (bytes.saturating_sub(2 * matrices * 4096), rustix::param::page_size());
    assert!(page > 4096 || (least..=bytes).contains(&first.bytes), "{first:?} of {bytes}");
    assert!(rest.iter().all(|reads| reads.reports == 0), "all is in memory: {rest:?}");
}

#[test]
fn dropped_pages_of_matrices_are_reported_once_with_their_bytes() {
    let model = tiny("gemma3.gguf");
    let Some((_folder, cache)) = kept(&model) else { return };
    for is_beyond in [false, true] {
        let tiny = if is_beyond { beyond(&model, Some(&cache)) } else { Tiny::of(&model) };
        let task = Task::new(tiny.gated(), 5, &[]);
        let weights =
            Weights::of(&Cpu::new(1, Isa::best()), &tiny.graph, &tiny.file).expect("some");
        let nodes = &tiny.graph.nodes()[task.nodes.clone()];
        let matrices = nodes.iter().flat_map(|node| node.op.matrices());
        let bytes: Vec<u64> = matrices.map(|id| weights.packed(id).bytes() as u64).collect();
        drop(weights);
        check(reads(&tiny, &cache, &task), bytes.iter().sum(), bytes.len() as u64);
    }
}

#[test]
fn dropped_pages_of_chosen_experts_are_reported_and_those_of_others_are_not_read() {
    let model = tiny("qwen3moe.gguf");
    let Some((_folder, cache)) = kept(&model) else { return };
    let tiny = beyond(&model, Some(&cache));
    let at = tiny.graph.nodes().iter().position(|node| matches!(node.op, Op::Experts(_)));
    let at = at.expect("experts");
    let node = &tiny.graph.nodes()[at];
    let Op::Experts(op) = &node.op else { unreachable!("found above") };
    let task = Task::new(at..at + 1, 1, &[]);
    let inputs = tiny.inputs(&task);
    let route = inputs.get(node.inputs[1]).expect("a route").host().expect("on the host");
    let mut chosen: Vec<usize> =
        route[..op.used].iter().map(|number| (*number as usize).min(op.count - 1)).collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert!(chosen.len() < op.count);
    let weights = Weights::of(&Cpu::new(1, Isa::best()), &tiny.graph, &tiny.file).expect("some");
    // Tiles of 16 rows are read as a whole.
    let of_expert = |expert: usize| {
        op.matrices().map(move |matrix| (expert * matrix.stride + matrix.first, matrix))
    };
    let of_matrices = chosen.iter().flat_map(|expert| of_expert(*expert)).map(|(start, matrix)| {
        let packed = weights.packed(matrix.weight);
        let tile = packed.bytes() / packed.rows().div_ceil(16);
        tile * ((start + matrix.rows).div_ceil(16) - start / 16)
    });
    let bytes = of_matrices.sum::<usize>() as u64;
    drop(weights);
    check(reads(&tiny, &cache, &task), bytes, 3 * chosen.len() as u64);
}
