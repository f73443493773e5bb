//! Each graph of a part runs exactly once, in the order of the plan, with its own rows.

use std::sync::{Arc, Mutex};

use lapwing_kernels::device::{BlockingDevice, DeviceError, Observer};
use lapwing_kernels::npu::{GraphSpec, NpuBackend, PreparedGraph, Systolic};

use crate::npu::{Task, Tiny, properties_of_inner};

/// A run: rows of the graph, and the first value of each of its rows.
type Log = Arc<Mutex<Vec<(usize, Vec<f32>)>>>;

/// Logs every run of a graph.
struct Spy {
    inner: Systolic,
    log: Log,
}

struct SpyGraph {
    inner: Box<dyn PreparedGraph>,
    rows: usize,
    log: Log,
}

impl NpuBackend for Spy {
    properties_of_inner!();

    fn prepare(&mut self, spec: &GraphSpec) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        let (inner, rows) = (self.inner.prepare(spec)?, spec.key.rows);
        Ok(Box::new(SpyGraph { inner, rows, log: Arc::clone(&self.log) }))
    }
}

impl PreparedGraph for SpyGraph {
    fn input(&mut self, port: usize) -> &mut [f32] {
        self.inner.input(port)
    }

    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError> {
        let input = self.inner.input(0);
        let width = input.len() / self.rows;
        let firsts = input.chunks_exact(width).map(|row| row[0]).collect();
        self.log.lock().expect("a log").push((self.rows, firsts));
        self.inner.run(observer)
    }

    fn output(&self, port: usize) -> &[f32] {
        self.inner.output(port)
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

#[test]
fn every_row_is_computed_once_and_in_order() {
    let tiny = Tiny::open("llama");
    let log = Log::default();
    let spy = Spy { inner: tiny.systolic(), log: Arc::clone(&log) };
    let mut npu = tiny.npu_over(Box::new(spy), 1 << 30);
    let mut preparer = npu.preparer().expect("a preparer");
    for (rows, cut, graphs, run) in [
        (300, None, vec![256, 64], vec![256, 64]),
        (300, None, vec![32, 256, 32], vec![32, 256, 32]),
        (600, Some(0..544), vec![512, 32], vec![512, 32]),
        (600, Some(544..600), vec![64], vec![64]),
        // A graph without rows does not run.
        (60, None, vec![32, 32, 64], vec![32, 32]),
    ] {
        let mut task = Task::new(tiny.gated(), rows, &graphs);
        task.part.rows = cut.clone();
        preparer.prepare(&task.keys(), &[], &mut ()).expect("graphs");
        log.lock().expect("a log").clear();
        tiny.run(&mut npu, &task, &mut ()).expect("a run");
        let log = log.lock().expect("a log").clone();
        assert_eq!(log.iter().map(|(rows, _)| *rows).collect::<Vec<_>>(), run);
        let inputs = tiny.inputs(&task);
        let input = inputs.get(tiny.graph.live_in(tiny.gated())[0]).expect("an input");
        let wanted = cut.unwrap_or(0..rows).map(|row| input.row(row)[0]);
        let seen: Vec<f32> = log.into_iter().flat_map(|(_, firsts)| firsts).collect();
        let (real, padding) = seen.split_at(wanted.len());
        assert_eq!(real, wanted.collect::<Vec<_>>());
        assert!(padding.iter().all(|v| *v == 0.0), "padding is zeros");
    }
}
