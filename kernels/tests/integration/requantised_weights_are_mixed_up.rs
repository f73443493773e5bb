//! Requantised and stored weights of one file are never confused: on devices that share weights, in
//! packed-weight caches, and in the check of NPU graphs against the reference.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lapwing_kernels::cpu::{
    BindError, CacheReadError, Cpu, Isa, PackCache, PackReport, PackedMemory, Weights, keep_packed,
};
use lapwing_kernels::device::BlockingDevice;
use lapwing_kernels::part::Part;
use lapwing_kernels::requant::Requant;

use crate::npu::{Report, Task, Tiny};

fn model(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
    folder.join(name).with_extension("gguf")
}

fn tiny(path: &Path, format: Option<Requant>) -> Tiny {
    format.map_or_else(|| Tiny::of(path), |format| Tiny::requantized(path, format))
}

/// Forms to compute with for a file in F16: each stored format, and groups that share one.
fn ways() -> [Option<Requant>; 6] {
    let form = |name: &str| Some(name.parse().expect("a form"));
    [None, form("q8_0"), form("q4_1"), form("q4_0"), form("int4:64"), form("int4:row")]
}

/// Values of a gated block with that cache, and the report on the cache.
fn start(
    path: &Path,
    format: Option<Requant>,
    cache: Option<&PackCache>,
) -> (Vec<u32>, Option<Arc<PackReport>>) {
    tiny(path, format).start(cache)
}

#[test]
fn a_cache_is_only_used_for_the_format_it_was_made_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = PackCache {
        path: folder.path().join("model.lwp"),
        bytes_max: 1 << 30,
        memory: PackedMemory::default(),
    };
    let path = model("format-f16");
    let want = ways().map(|way| start(&path, way, None).0);
    for (i, way) in ways().into_iter().enumerate() {
        assert!(want[..i].iter().all(|other| *other != want[i]), "{way:?} changes nothing");
    }
    for (before, after) in ways().iter().flat_map(|a| ways().map(|b| (*a, b))) {
        let _ = fs::remove_file(&cache.path);
        let (_, kept) = start(&path, before, Some(&cache));
        let kept = kept.expect("a report");
        assert!(!kept.loaded && kept.write_error.is_none(), "{before:?}: {kept:?}");
        let (got, report) = start(&path, after, Some(&cache));
        let at = ways().iter().position(|way| *way == after).expect("a way");
        assert!(got == want[at], "{before:?}, then {after:?}");
        let report = report.expect("a report");
        assert_eq!(report.loaded, before == after, "{before:?}, then {after:?}: {report:?}");
        let other = matches!(report.read_error, Some(CacheReadError::Other));
        assert_eq!(other, before != after, "{report:?}");
        let (again, mapped) = start(&path, after, Some(&cache));
        assert!(again == want[at] && mapped.expect("a report").loaded, "{after:?}");
    }
}

#[test]
fn devices_share_packed_weights_of_the_same_format_only() {
    let stored = Tiny::open("format-f16");
    let weights = |format: Option<Requant>| {
        let mut graph = (*stored.graph).clone();
        format.into_iter().for_each(|format| drop(graph.requantize(format)));
        Weights::of(&Cpu::new(1, Isa::best()), &graph, &stored.file).expect("bound weights")
    };
    let ways = ways();
    let all = ways.map(weights);
    for (i, j) in (0..6).flat_map(|i| (0..6).map(move |j| (i, j))) {
        assert_eq!(Arc::ptr_eq(&all[i], &weights(ways[j])), i == j, "{:?} {:?}", ways[i], ways[j]);
    }
    let bytes: Vec<usize> = all.iter().map(|weights| weights.packed_bytes()).collect();
    assert!(bytes[..4].is_sorted_by(|a, b| a > b) && bytes[4..] == [bytes[3]; 2], "{bytes:?}");
}

#[test]
fn an_npu_computes_with_requantised_weights_like_the_cpu() {
    for (name, format) in [
        ("llama", "q8_0"),
        ("gemma3", "q4_0"),
        ("format-f16", "q4_1"),
        ("format-f16", "int8:row"),
        ("format-bf16", "q8_0"),
        ("format-q6_k", "int4:64:min"),
    ] {
        let format: Requant = format.parse().expect("a form");
        let tiny = Tiny::requantized(&model(name), format);
        let (mut cpu, mut npu) = (tiny.cpu(), tiny.npu(1 << 30));
        let mut preparer = npu.preparer().expect("a preparer");
        for nodes in tiny.runs(&npu) {
            let what = format!("{name} to {format}, nodes {nodes:?}");
            let task = Task::new(nodes, 44, &[64]);
            preparer.prepare(&task.keys(), &[], &mut ()).expect(&what);
            let got = tiny.run(&mut npu, &task, &mut Report::default()).expect(&what);
            let whole = Task { part: Part::WHOLE, ..task.clone() };
            let want = tiny.run(&mut cpu, &whole, &mut ()).expect(&what);
            tiny.assert_same(&task, &got, &want, &what);
        }
    }
}

#[test]
fn weights_that_are_not_finite_are_not_requantised() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    let mut bytes = fs::read(model("format-f16")).expect("a model");
    let tiny = Tiny::open("format-f16");
    let name = "blk.0.ffn_down.weight";
    let tensor = tiny.file.tensor(name).expect("a matrix");
    let (range, row) = (tensor.info().range(), 2 * tensor.shape().cols());
    bytes[range.start + 5 * row + 6..][..2].copy_from_slice(&0x7e00u16.to_le_bytes());
    fs::write(&path, bytes).expect("written");
    let cache = PackCache {
        path: folder.path().join("model.lwp"),
        bytes_max: 1 << 30,
        memory: PackedMemory::default(),
    };
    for format in Requant::ALL {
        let tiny = Tiny::requantized(&path, format);
        keep_packed(&tiny.file, cache.clone());
        let weights = Weights::of(&Cpu::new(2, Isa::best()), &tiny.graph, &tiny.file);
        let error = weights.expect_err("no weights");
        let BindError::Requant { name: tensor, row: 5, format: to } = &error else {
            panic!("{error}")
        };
        assert_eq!((&**tensor, *to), (name, format));
        assert!(error.to_string().contains("without requantising"), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "something is kept");
    let stored = Tiny::of(&path);
    Weights::of(&Cpu::new(2, Isa::best()), &stored.graph, &stored.file).expect("as stored it runs");
}
