//! Timing ops on one device.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{
    Batch, DeviceInfo, DeviceKind, GraphKey, MemoryDomain, ModelId, Observer, Payload, Prepare,
    Preparer, Runs, Step, Task, Tensor, TensorSet, Work,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;
use lapwing_traces::event::WaitMode;
use lapwing_traces::{Clock, Nanos};

use super::grid::Ask;
use super::{Limits, MeasureError};
use crate::drive::live::LiveDevice;
use crate::drive::live::throttle::Throttle;
use crate::drive::modelled::{self, Did, StepLog};
use crate::drive::wait::{Cores, Waiter};
use lapwing_plan::array::GraphSize;
use lapwing_plan::profile::{PrepareSample, Sample, Spread, nanos};
use lapwing_plan::time::Job;

/// A device under measurement.
pub(super) struct Bench<'a> {
    device: LiveDevice,
    runs: Runs,
    preparer: Option<Box<dyn Preparer>>,
    throttle: Throttle,
    waiter: Waiter,
    graph: &'a Arc<Graph>,
    page_rows: usize,
    clock: Arc<dyn Clock>,
    limits: Limits,
    prepares: Vec<PrepareSample>,
    /// Time of all conversions, and bytes that they read and wrote.
    converted: (Duration, u64),
}

/// Times that do not depend on the op.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fixed {
    pub(super) submit_idle: Duration,
    pub(super) submit_queued: Duration,
    pub(super) crossing: Duration,
}

/// What a device did beside computing nodes, with the time that its conversions took.
struct Log<'a> {
    steps: StepLog,
    clock: &'a dyn Clock,
    /// When the step before ended.
    last: Nanos,
    converted: Duration,
    bytes: u64,
}

impl Observer for Log<'_> {
    fn node_done(&mut self, _node: usize) {
        self.last = self.clock.now();
    }

    fn step_done(&mut self, step: Step) {
        let now = self.clock.now();
        if let Step::Converted { bytes } = step {
            self.converted += Duration::from_nanos(now.0.saturating_sub(self.last.0));
            self.bytes += bytes;
        }
        self.last = now;
        self.steps.step_done(step);
    }
}

/// A job to time.
struct Timed<'a> {
    nodes: Range<usize>,
    part: &'a Part,
    payload: &'a Arc<Payload>,
    crossed: bool,
    queued: bool,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        mut device: LiveDevice,
        (graph, page_rows): (&'a Arc<Graph>, usize),
        (clock, limits): (Arc<dyn Clock>, Limits),
    ) -> Bench<'a> {
        let preparer = device.device.preparer();
        let runs = Runs::start(&mut *device.device);
        let throttle = Throttle::new(Arc::clone(&clock), Arc::default(), Arc::default());
        let cores = Cores::of_machine();
        let waiter = Waiter::new(WaitMode::SleepThenSpin, Arc::clone(&clock), cores);
        Bench {
            device,
            runs,
            preparer,
            throttle,
            waiter,
            graph,
            page_rows,
            clock,
            limits,
            prepares: Vec::new(),
            converted: (Duration::ZERO, 0),
        }
    }

    /// Median and spread of an op, without submission and conversion.
    pub(super) fn sample(&mut self, ask: &Ask, submit: Duration) -> Result<Sample, MeasureError> {
        let batch = self.batch(ask.m, ask.context, ask.selected);
        let mut times = Vec::with_capacity(self.limits.runs);
        let begin = self.clock.now();
        for run in 0..=self.limits.runs {
            let node = ask.nodes[run % ask.nodes.len()];
            let nodes = node..node + 1;
            let failed = |source| MeasureError::Device { what: ask.to_string(), source };
            self.prepare(&nodes, &ask.part).map_err(failed)?;
            let values = self.inputs(nodes.clone(), &batch);
            let payload = Arc::new(Payload { batch: batch.clone(), values });
            let job =
                Timed { nodes, part: &ask.part, payload: &payload, crossed: false, queued: false };
            let time = self.time(&job).map_err(failed)?;
            // The first run warms up; it counts where there is no time for another.
            times.push(time.saturating_sub(submit).max(Duration::from_nanos(1)));
            let spent = Duration::from_nanos(self.clock.now().0 - begin.0);
            if run > 0 && spent > self.limits.per_op {
                break;
            }
        }
        if times.len() > 1 {
            times.remove(0);
        }
        let time =
            Spread::of(&times).unwrap_or(Spread { median_ns: 1, min_ns: 1, max_ns: 1, runs: 1 });
        Ok(Sample { shape: ask.shape.clone(), m: ask.m, context: ask.context, time })
    }

    /// What a job takes beside its nodes: two ops apart take one submission more than both
    /// together.
    pub(super) fn fixed(&mut self, info: &DeviceInfo) -> Result<Fixed, MeasureError> {
        let nodes = self.graph.nodes();
        let is_small = |op: &Op| {
            matches!(op, Op::Add | Op::Gated(_) | Op::RmsNorm { .. } | Op::SoftCap { .. })
        };
        let pair = (1..nodes.len()).find(|at| {
            let both = [&nodes[at - 1].op, &nodes[*at].op];
            both.iter().all(|op| is_small(op) && info.runs(op))
                && self.graph.can_cut_rows(at - 1..at + 1)
        });
        let Some(second) = pair else { return Ok(Fixed::default()) };
        let rows = info.sizes.first().copied().unwrap_or(1);
        let graphs = if info.kind == DeviceKind::Npu { vec![rows] } else { Vec::new() };
        let part = Part { graphs, ..Part::WHOLE };
        let mut alone = |nodes: Range<usize>, (crossed, queued): (bool, bool)| {
            self.median((nodes, &part, rows), (crossed, queued))
        };
        let plain = (false, false);
        let first = alone(second - 1..second, plain)?;
        let last = alone(second..second + 1, plain)?;
        let both = alone(second - 1..second + 1, plain)?;
        let queued = alone(second..second + 1, (false, true))?;
        let crossed = alone(second..second + 1, (true, false))?;
        let submit_idle = (first + last).saturating_sub(both);
        // What only noise makes smaller is not negative.
        let submit_queued = submit_idle.saturating_sub(last.saturating_sub(queued));
        Ok(Fixed { submit_idle, submit_queued, crossing: crossed.saturating_sub(last) })
    }

    fn median(
        &mut self,
        (nodes, part, rows): (Range<usize>, &Part, usize),
        (crossed, queued): (bool, bool),
    ) -> Result<Duration, MeasureError> {
        let failed = |source| MeasureError::Device { what: "submission".to_owned(), source };
        let batch = self.batch(rows, 0, false);
        self.prepare(&nodes, part).map_err(failed)?;
        let values = self.inputs(nodes.clone(), &batch);
        let payload = &Arc::new(Payload { batch, values });
        let mut times = Vec::new();
        for _ in 0..9 {
            let nodes = nodes.clone();
            let job = Timed { nodes, part, payload, crossed, queued };
            times.push(self.time(&job).map_err(failed)?);
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }

    /// Times of all preparations so far.
    pub(super) fn take_prepares(&mut self) -> Vec<PrepareSample> {
        std::mem::take(&mut self.prepares)
    }

    /// Nanoseconds to load and store values of static graphs, per byte; 0 where there are none.
    pub(super) fn convert_ns_per_byte(&self) -> f64 {
        let (time, bytes) = self.converted;
        if bytes == 0 { 0.0 } else { time.as_secs_f64() * 1e9 / bytes as f64 }
    }

    /// Has a static graph made, unless the device needs none or has it.
    fn prepare(
        &mut self,
        nodes: &Range<usize>,
        part: &Part,
    ) -> Result<(), lapwing_kernels::device::DeviceError> {
        let (Some(preparer), [rows]) = (&mut self.preparer, &part.graphs[..]) else {
            return Ok(());
        };
        let (nodes, features, order) = (nodes.clone(), part.features, part.order);
        let key = GraphKey { model: ModelId::default(), nodes, features, rows: *rows, order };
        let begin = self.clock.now();
        let prepared = preparer.prepare(std::slice::from_ref(&key), &[], &mut ())?;
        if prepared.made.is_empty() {
            return Ok(());
        }
        let real = Duration::from_nanos(self.clock.now().0 - begin.0);
        // Not waited for: the profile would take as long as all preparations together.
        let modelled = self.device.time.as_ref().map(|time| time.prepare_time(&key));
        let GraphSize { rows, weights } = GraphSize::of(self.graph, &key);
        let ns = nanos(modelled.map_or(real, |modelled| modelled.max(real)));
        self.prepares.push(PrepareSample { rows, weights, ns });
        Ok(())
    }

    /// Time of one job, as the driver of a live engine would take for it, without conversion.
    fn time(&mut self, job: &Timed<'_>) -> Result<Duration, lapwing_kernels::device::DeviceError> {
        let writes = self.graph.writes(job.nodes.clone());
        let work = Work {
            task: Task::Nodes {
                nodes: job.nodes.clone(),
                prepare: Prepare::Ahead,
                writes: writes.into(),
                to: MemoryDomain::Host,
            },
            part: job.part.clone(),
            payload: Arc::clone(job.payload),
        };
        let begin = self.clock.now();
        let mut log = Log {
            steps: StepLog::default(),
            clock: &*self.clock,
            last: begin,
            converted: Duration::ZERO,
            bytes: 0,
        };
        self.throttle.begin(false);
        let LiveDevice { device, time } = &mut self.device;
        let outputs = self.runs.run(&mut **device, work, &mut log)?;
        if let Some(time) = time {
            let modelled = Job {
                first: job.nodes.start,
                end: job.nodes.end,
                part: job.part,
                batch: &job.payload.batch,
                crossed: job.crossed,
                queued: job.queued,
            };
            let segments = modelled::segments(&**time, &modelled, log.steps.0);
            self.throttle.wait(modelled::total(&segments), &mut self.waiter);
            let conversions = segments.iter().filter_map(|segment| match segment.did {
                Did::Step(Step::Converted { .. }) => Some(segment.time),
                _ => None,
            });
            log.converted = conversions.sum();
        }
        drop(outputs);
        self.converted.0 += log.converted;
        self.converted.1 += log.bytes;
        let whole = Duration::from_nanos(self.clock.now().0 - begin.0);
        Ok(whole.saturating_sub(log.converted))
    }

    /// A batch of one sequence. Where only selected rows count, as many are selected.
    fn batch(&self, m: usize, context: usize, selected: bool) -> Batch {
        let mut batch = Batch::default();
        let pages = (0..(context + m).div_ceil(self.page_rows)).map(|page| page as u32).collect();
        let selected = if selected { 0..m } else { m - 1..m };
        // Ids do not matter to time, but lie in every vocabulary.
        batch.push(&vec![0; m], context, pages, selected);
        batch
    }

    /// Values that the nodes read: small numbers of both signs, none of them subnormal.
    fn inputs(&self, nodes: Range<usize>, batch: &Batch) -> TensorSet {
        let mut inputs = TensorSet::default();
        for id in self.graph.live_in(nodes) {
            let value = self.graph.value(id);
            let rows = Part::WHOLE.rows_of(value, batch).len();
            let data = (0..rows * value.width).map(|i| (i * 37 % 101) as f32 / 64.0 - 0.75);
            inputs.put(id, Tensor::new(value.width, data.collect::<Vec<f32>>()));
        }
        inputs
    }
}
