//! Every graph is checked before its first use. A back end that silently computes wrong results for
//! some shapes is detected; a correct one passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapwing_kernels::device::{BlockingDevice, DeviceError, Observer, Prepare};
use lapwing_kernels::npu::{GraphSpec, NpuBackend, PreparedGraph, Systolic};
use lapwing_kernels::part::Part;

use crate::npu::{SHARES, Task, Tiny, properties_of_inner};

const ENOUGH: u64 = 1 << 30;

/// Defect of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// All values are too large by half.
    Scaled,
    /// One value of one row is zero.
    OneZero,
    /// One value is NaN.
    NotANumber,
    /// The upper and lower rows are swapped.
    Exchanged,
    /// The last column repeats the one before it.
    Shifted,
    /// The run reports an error.
    Fails,
    /// The output is a row short.
    Short,
}

const FAULTS: [Fault; 7] = [
    Fault::Scaled,
    Fault::OneZero,
    Fault::NotANumber,
    Fault::Exchanged,
    Fault::Shifted,
    Fault::Fails,
    Fault::Short,
];

/// A back end whose graphs of 64 rows are defective.
struct Trap {
    inner: Systolic,
    fault: Fault,
    prepared: Arc<AtomicUsize>,
}

struct TrapGraph {
    inner: Box<dyn PreparedGraph>,
    fault: Fault,
    outputs: Vec<Vec<f32>>,
    widths: Vec<usize>,
}

impl NpuBackend for Trap {
    properties_of_inner!();

    fn prepare(&mut self, spec: &GraphSpec) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        let inner = self.inner.prepare(spec)?;
        if spec.key.rows != 64 {
            return Ok(inner);
        }
        let widths = spec.outputs.iter().map(|port| port.width).collect();
        Ok(Box::new(TrapGraph { inner, fault: self.fault, outputs: Vec::new(), widths }))
    }
}

impl PreparedGraph for TrapGraph {
    fn input(&mut self, port: usize) -> &mut [f32] {
        self.inner.input(port)
    }

    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError> {
        if self.fault == Fault::Fails {
            let reason = "code 1002".to_owned();
            return Err(DeviceError::Failed { device: "npu".to_owned(), reason });
        }
        self.inner.run(observer)?;
        self.outputs.clear();
        for (port, width) in self.widths.iter().enumerate() {
            let mut out = self.inner.output(port).to_vec();
            match self.fault {
                Fault::Scaled => out.iter_mut().for_each(|v| *v *= 1.5),
                Fault::OneZero => {
                    // The value that is farthest from zero in row 37.
                    let row = &mut out[37 * width..38 * width];
                    let largest = row.iter_mut().max_by(|a, b| a.abs().total_cmp(&b.abs()));
                    *largest.expect("a value") = 0.0;
                }
                Fault::NotANumber => out[width * 50 + 3] = f32::NAN,
                Fault::Exchanged => {
                    let (top, bottom) = out.split_at_mut(32 * width);
                    top.swap_with_slice(bottom);
                }
                Fault::Shifted => {
                    for row in out.chunks_exact_mut(*width) {
                        row[width - 1] = row[width - 2];
                    }
                }
                Fault::Short => out.truncate(63 * width),
                Fault::Fails => {}
            }
            self.outputs.push(out);
        }
        Ok(())
    }

    fn output(&self, port: usize) -> &[f32] {
        &self.outputs[port]
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

#[test]
fn a_graph_with_wrong_results_is_never_used() {
    for name in ["llama", "format-q4_k"] {
        let tiny = Tiny::open(name);
        for fault in FAULTS {
            let prepared = Arc::new(AtomicUsize::new(0));
            let inner = tiny.systolic();
            let trap = Trap { inner, fault, prepared: Arc::clone(&prepared) };
            let mut npu = tiny.npu_over(Box::new(trap), ENOUGH);
            let mut preparer = npu.preparer().expect("a preparer");
            let good = Task::new(tiny.gated(), 32, &[32]);
            let bad = Task::new(tiny.gated(), 64, &[64]);
            let what = format!("{name}, {fault:?}");
            let mut failed = preparer.prepare(&bad.keys(), &[], &mut ()).expect_err(&what);
            match fault {
                Fault::Fails | Fault::Short => {
                    assert!(matches!(failed, DeviceError::Failed { .. }), "{what}: {failed}");
                }
                _ => {
                    let DeviceError::WrongResult { rows: 64, error, tolerance, .. } = failed else {
                        panic!("{what}: {failed}")
                    };
                    assert!(error > tolerance, "{what}: {error} of {tolerance}");
                    // A wrong graph is not prepared again.
                    let before = prepared.load(Ordering::Relaxed);
                    failed = preparer.prepare(&bad.keys(), &[], &mut ()).expect_err(&what);
                    assert!(matches!(failed, DeviceError::WrongResult { .. }), "{what}: {failed}");
                    assert_eq!(prepared.load(Ordering::Relaxed), before, "{what}");
                }
            }
            for prepare in [Prepare::Ahead, Prepare::OnTheSpot] {
                let task = Task { prepare, ..bad.clone() };
                tiny.run(&mut npu, &task, &mut ()).expect_err(&what);
            }
            let stats = npu.cache().stats();
            assert_eq!((stats.graphs, stats.bytes, stats.runs), (0, 0, 0), "{what}");
            // Graphs of other shapes still work.
            preparer.prepare(&good.keys(), &[], &mut ()).expect(&what);
            let got = tiny.run(&mut npu, &good, &mut ()).expect(&what);
            let whole = Task { part: Part::WHOLE, ..good.clone() };
            let want = tiny.run(&mut tiny.cpu(), &whole, &mut ()).expect(&what);
            tiny.assert_same(&good, &got, &want, &what);
        }
    }
}

#[test]
fn correct_graphs_of_every_model_pass_the_check() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
    let mut models = 0;
    for entry in std::fs::read_dir(folder).expect("tiny models") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let Some(name) = name.strip_suffix(".json") else { continue };
        let file = if name == "llama-split" { "llama-split-00001-of-00003" } else { name };
        let tiny = Tiny::open(file);
        let npu = tiny.npu(ENOUGH);
        let mut preparer = npu.preparer().expect("a preparer");
        for nodes in tiny.runs(&npu) {
            let task = Task::new(nodes.clone(), 64, &[32, 64]);
            preparer.prepare(&task.keys(), &[], &mut ()).expect(name);
        }
        // Blocks without a gate are not cut.
        let Some(gated) = tiny.gated_if_any() else { continue };
        for features in SHARES {
            let mut task = Task::new(gated.clone(), 32, &[32]);
            task.part.features = features;
            preparer.prepare(&task.keys(), &[], &mut ()).expect(name);
        }
        models += 1;
    }
    assert!(models >= 60, "only {models} models");
}
