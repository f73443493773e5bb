//! Test support: what the tests of all NPU libraries compare.

use lapwing_kernels::cpu::CpuDevice;
use lapwing_kernels::device::BlockingDevice;
use lapwing_kernels::npu::{NpuBackend, NpuDevice};
use lapwing_kernels::part::Part;

use crate::npu::{Report, SHARES, Task, Tiny};

/// Tiny models of all architectures and weight formats.
const MODELS: [&str; 17] = [
    "llama",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3",
    "granite",
    "olmo2",
    "format-f16",
    "format-bf16",
    "format-q4_0",
    "format-q4_1",
    "format-q5_0",
    "format-q5_1",
    "format-q8_0",
    "format-q4_k",
    "format-q5_k",
    "format-q6_k",
];

/// An NPU, and a CPU with activations in f32 that computes the same.
pub(crate) struct NpuAndCpu<'a> {
    tiny: &'a Tiny,
    npu: NpuDevice,
    cpu: CpuDevice,
}

impl NpuAndCpu<'_> {
    pub(crate) fn new(tiny: &Tiny, npu: NpuDevice) -> NpuAndCpu<'_> {
        NpuAndCpu { tiny, npu, cpu: tiny.exact() }
    }

    /// Runs a task on both devices and compares. A value may differ by the tolerance times the largest
    /// value of its row.
    pub(crate) fn check_near(&mut self, task: &Task, tolerance: f32, what: &str) {
        self.npu.preparer().expect("a preparer").prepare(&task.keys(), &[], &mut ()).expect(what);
        let mut report = Report::default();
        let got = self.tiny.run(&mut self.npu, task, &mut report).expect(what);
        let part = Part { graphs: Vec::new(), ..task.part.clone() };
        let want =
            self.tiny.run(&mut self.cpu, &Task { part, ..task.clone() }, &mut ()).expect(what);
        assert_eq!(report.nodes, task.nodes.clone().collect::<Vec<_>>(), "{what}");
        let writes = self.tiny.graph.writes(task.nodes.clone());
        assert_eq!((got.len(), want.len()), (writes.len(), writes.len()), "{what}");
        for id in writes {
            let (got, want) = (got.get(id).expect("a value"), want.get(id).expect("a value"));
            assert_eq!(got.width, want.width, "{what}: width of {id:?}");
            // The last share of a narrow product has no columns.
            let width = got.width.max(1);
            let (got, want) = (got.host().expect("values"), want.host().expect("values"));
            assert_eq!(got.len(), want.len(), "{what}: rows of {id:?}");
            let rows = got.chunks_exact(width).zip(want.chunks_exact(width));
            for (row, (got, want)) in rows.enumerate() {
                let size = want.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                for (got, want) in got.iter().zip(want) {
                    let error = (got - want).abs();
                    assert!(
                        error <= tolerance * size,
                        "{what}: {id:?} row {row}: {got} for {want}"
                    );
                }
            }
        }
    }
}

/// Compares all stages of all models with the CPU. The first stage has each of the numbers of rows in graphs of these sizes.
pub(crate) fn check_models(
    npu: impl Fn(&Tiny) -> NpuDevice,
    first: &[(usize, &[usize])],
    tolerance: f32,
) {
    for name in MODELS {
        let tiny = Tiny::open(name);
        let mut devices = NpuAndCpu::new(&tiny, npu(&tiny));
        for (at, nodes) in tiny.runs(&devices.npu).into_iter().enumerate() {
            let cases: &[(usize, &[usize])] = if at == 0 { first } else { &[(33, &[64])] };
            for (rows, graphs) in cases {
                let task = Task::new(nodes.clone(), *rows, graphs);
                let what = format!("{name}, nodes {nodes:?}, {rows} rows in {graphs:?}");
                devices.check_near(&task, tolerance, &what);
            }
        }
    }
}

/// Compares shares of the output channels with the CPU, also of a stage of which some products have none.
pub(crate) fn check_shares(npu: impl Fn(&Tiny) -> NpuDevice, tolerance: f32) {
    for name in ["qwen2", "format-q4_0"] {
        let tiny = Tiny::open(name);
        let mut devices = NpuAndCpu::new(&tiny, npu(&tiny));
        let nodes = tiny.gated();
        // Query, key and value: of the last third, only the query has columns.
        let products = tiny.runs(&devices.npu)[0].clone();
        let products = products.start + 1..products.end.min(products.start + 4);
        assert!(tiny.graph.can_cut_features(products.clone()), "{products:?}");
        for nodes in [nodes.clone(), nodes.end..nodes.end + 1, products] {
            for share in SHARES {
                let mut task = Task::new(nodes.clone(), 5, &[8]);
                task.part.features = share;
                let what = format!("{name}, {task:?}");
                devices.check_near(&task, tolerance, &what);
            }
        }
    }
}

/// Checks that graphs are taken from a folder where they are the same, and only there. `make` opens the back end.
pub(crate) fn check_kept(make: impl Fn(&Tiny) -> Box<dyn NpuBackend>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("graphs");
    // Bits of the values, and how many graphs came from the folder or could not.
    let start = |tiny: &Tiny, rows: usize| {
        let mut npu = tiny.npu_over(make(tiny), 1 << 30).keep_graphs(path.clone(), &tiny.file);
        let task = Task::new(tiny.gated(), 5, &[rows]);
        npu.preparer().expect("a preparer").prepare(&task.keys(), &[], &mut ()).expect("a graph");
        let values = tiny.run(&mut npu, &task, &mut ()).expect("values");
        let written = tiny.graph.writes(task.nodes.clone());
        let bits = written.iter().flat_map(|id| {
            let values = values.get(*id).expect("a value").host().expect("on the host");
            values.iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        });
        let stats = npu.cache().stats();
        assert_eq!(stats.prepared, 1);
        (bits.collect::<Vec<u32>>(), stats.kept, stats.refused)
    };
    let tiny = Tiny::open("llama");
    let (bits, kept, refused) = start(&tiny, 8);
    assert_eq!((kept, refused), (0, 0), "nothing is there at first");
    assert_eq!(start(&tiny, 8), (bits.clone(), 1, 0), "the same graph again");
    assert_eq!(start(&tiny, 16).1, 0, "another graph");
    assert_eq!(start(&Tiny::open("qwen2"), 8).1, 0, "another model");
    let files =
        || std::fs::read_dir(&path).expect("a folder").map(|file| file.expect("a file").path());
    assert_eq!(files().count(), 3);
    for file in files() {
        let mut content = std::fs::read(&file).expect("a file");
        let at = content.len() / 2;
        content[at] ^= 1;
        std::fs::write(&file, content).expect("a file");
    }
    assert_eq!(start(&tiny, 8), (bits.clone(), 0, 1), "a flipped byte");
    assert_eq!(start(&tiny, 8), (bits.clone(), 1, 0), "it was written anew");
    for file in files() {
        let content = std::fs::read(&file).expect("a file");
        std::fs::write(&file, &content[..content.len() / 2]).expect("a file");
    }
    assert_eq!(start(&tiny, 8), (bits, 0, 1), "half of a file");
}
