//! One stage through the device's queue, and the same commands given to the driver directly: the
//! difference is this crate's own time.

mod flag;

use std::sync::Arc;

use super::device::OpenClDevice;
use super::error::OpenClError;
use super::model::{OpenClBindError, OpenClDeviceParts};
use super::ops::{KernelSpec, Kernels, RmsNorm, View};
use super::program::ProgramCache;
use super::session::{Buffer, EventState, Lane, Session};
pub use flag::FlagTrial;
use lapwing_model::completion::Flag;
use lapwing_model::device::{
    Batch, DeviceError, MemoryDomain, Payload, Prepare, Runs, Task, Tensor, TensorSet, Work,
};
use lapwing_model::op::Op;
use lapwing_model::part::Part;
use lapwing_model::weights::WeightFile;

/// Norms a row of values that is in host memory, and copies it back: a stage of one op.
#[derive(Debug)]
pub struct StageTrial {
    device: OpenClDevice,
    runs: Runs,
    work: Work,
    bare: Bare,
}

/// The driver's objects for the same commands.
#[derive(Debug)]
struct Bare {
    session: Arc<Session>,
    kernels: Kernels,
    numbers: Buffer,
    x: Buffer,
    weight: Buffer,
    out: Buffer,
    width: usize,
    completed: Arc<Flag>,
}

impl StageTrial {
    /// A stage of the first norm of a model.
    ///
    /// # Errors
    /// As [`OpenClDevice::new`].
    ///
    /// # Panics
    /// If the graph has no norm outside attention heads.
    pub fn new(parts: OpenClDeviceParts, file: &WeightFile) -> Result<StageTrial, OpenClBindError> {
        let graph = Arc::clone(&parts.graph);
        let at = graph.nodes().iter().position(|node| matches!(node.op, Op::RmsNorm { .. }));
        let at = at.expect("a graph with a norm");
        let id = graph.nodes()[at].inputs[0];
        let width = graph.value(id).width;
        let bare = Bare::new(&parts, width)?;
        let mut batch = Batch::default();
        batch.push(&[0], 0, [0], 0..1);
        let mut values = TensorSet::default();
        let mut x = parts.slots.take(width);
        x.fill(1.0);
        values.put(id, Tensor::new(width, x));
        let writes: Arc<[_]> = graph.writes(at..at + 1).into();
        let (nodes, prepare, to) = (at..at + 1, Prepare::Ahead, MemoryDomain::Host);
        let task = Task::Nodes { nodes, prepare, writes, to };
        let payload = Arc::new(Payload { batch, values });
        let work = Work { task, part: Part::WHOLE, payload };
        let mut device = OpenClDevice::new(parts, file)?;
        let runs = Runs::start(&mut device);
        Ok(StageTrial { device, runs, work, bare })
    }

    /// Runs the stage on the device, and waits for its end.
    ///
    /// # Errors
    /// If the device fails.
    pub fn through_the_device(&mut self) -> Result<(), DeviceError> {
        let Work { task, part, payload } = &self.work;
        let (task, part) = (task.clone(), part.clone());
        let work = Work { task, part, payload: Arc::clone(payload) };
        self.runs.run(&mut self.device, work, &mut ()).map(drop)
    }

    /// Gives the driver the same commands, and waits for their end in the same way.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn by_the_driver(&mut self) -> Result<(), OpenClError> {
        self.bare.run()
    }
}

impl Bare {
    fn new(parts: &OpenClDeviceParts, width: usize) -> Result<Bare, OpenClError> {
        let session = Session::open(&parts.device)?;
        let spec = KernelSpec { kv: parts.kv.layout().dtype, ..KernelSpec::default() };
        let kernels = Kernels::new(&session, &ProgramCache::default(), &spec)?;
        let values = vec![0; width * size_of::<f32>()];
        // Of a row: its id, position, start of pages, selected row and page.
        let numbers = session.filled(&[0; 5 * size_of::<u32>()], "a trial")?;
        let [x, weight, out] = [(); 3].map(|()| session.filled(&values, "a trial"));
        let (x, weight, out) = (x?, weight?, out?);
        let completed = Arc::new(Flag::default());
        Ok(Bare { session, kernels, numbers, x, weight, out, width, completed })
    }

    #[expect(unsafe_code, reason = "host memory is read and written until the run has ended")]
    fn run(&mut self) -> Result<(), OpenClError> {
        let Bare { session, kernels, numbers, x, weight, out, width, completed } = self;
        let begin = session.marker()?;
        let (ints, values) = ([0; 5 * size_of::<u32>()], vec![0; *width * size_of::<f32>()]);
        let mut results = vec![0; *width * size_of::<f32>()];
        // SAFETY: this function waits for the end of the commands before `ints`, `values` and
        // `results` go, also where one cannot be added.
        let added = unsafe {
            session.write_later(Lane::Compute, numbers, 0, &ints).and_then(|()| {
                session.write_later(Lane::Compute, x, 0, &values)?;
                let view = |buffer| View { buffer, at: 0, stride: *width };
                let (rows, groups, len, eps) = (1, 1, *width, 1.0);
                let (x, out_view) = (view(x), view(out));
                kernels.rms_norm(&RmsNorm { x, rows, groups, weight, len, eps, out: out_view })?;
                session.read_later(Lane::Compute, out, 0, &mut results)
            })
        };
        let ended = added.and_then(|()| {
            let end = session.marker()?;
            let flag = Arc::clone(completed);
            _ = end.on_end(Arc::new(move || _ = flag.set()));
            session.flush()?;
            Ok(end)
        });
        match ended {
            Ok(end) => {
                while end.state() == EventState::Pending {
                    completed.take();
                    if end.state() == EventState::Pending {
                        completed.park();
                    }
                }
                _ = (begin.queued_ns(), begin.end_ns(), end.end_ns());
                Ok(())
            }
            Err(error) => {
                session.finish()?;
                Err(error)
            }
        }
    }
}
