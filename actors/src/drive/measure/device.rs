//! Measures ops on one device.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{
    DeviceInfo, GraphKey, MemoryDomain, ModelId, Payload, Prepare, Preparer, Runs, Step, Task, Work,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::ops::OpKind;
use lapwing_kernels::part::Part;
use lapwing_traces::Clock;
use lapwing_traces::event::WaitMode;

use super::caches::Between;
use super::grid::Measurement;
use super::log::Log;
use super::settled::is_settled;
use super::{Limits, MeasureError, inputs};
use crate::drive::live::LiveDevice;
use crate::drive::live::throttle::Throttle;
use crate::drive::modelled::{self, SegmentKind};
use crate::drive::wait::{Cores, Waiter};
use lapwing_plan::array::GraphSize;
use lapwing_plan::profile::{PrepareSample, Sample, Spread, nanos};
use lapwing_plan::time::Job;

/// A device under measurement.
pub(super) struct DeviceBench<'a> {
    device: LiveDevice,
    runs: Runs,
    preparer: Option<Box<dyn Preparer>>,
    throttle: Throttle,
    waiter: Waiter,
    pub(super) graph: &'a Arc<Graph>,
    pub(super) page_rows: usize,
    clock: Arc<dyn Clock>,
    pub(super) limits: Limits,
    /// `None` for a device whose times do not depend on caches: a model's, or those of prepared graphs.
    pub(super) between: Option<Between>,
    prepares: Vec<PrepareSample>,
    /// Total time of all conversions, and total bytes that they read and wrote.
    converted: (Duration, u64),
}

/// Times that do not depend on the op.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fixed {
    pub(super) submit_idle: Duration,
    pub(super) submit_queued: Duration,
    pub(super) crossing: Duration,
}

/// Under which conditions ops are measured.
pub(super) struct Conditions<'a> {
    pub(super) graph: &'a Arc<Graph>,
    pub(super) page_rows: usize,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limits: Limits,
}

/// A job to measure.
struct Timed<'a> {
    nodes: Range<usize>,
    part: &'a Part,
    payload: &'a Arc<Payload>,
    link: Link,
}

/// How a job follows the job before it.
#[derive(Clone, Copy)]
struct Link {
    /// Its inputs come from another device.
    crossed: bool,
    /// It was submitted while the device was busy.
    queued: bool,
}

impl Link {
    /// A job on an idle device that holds its inputs.
    const PLAIN: Link = Link { crossed: false, queued: false };
}

impl<'a> DeviceBench<'a> {
    pub(super) fn new(
        mut device: LiveDevice,
        info: &DeviceInfo,
        parts: Conditions<'a>,
    ) -> DeviceBench<'a> {
        let Conditions { graph, page_rows, clock, limits } = parts;
        let preparer = device.device.preparer();
        let has_caches = preparer.is_none() && device.time.is_none();
        let runs = Runs::start(&mut *device.device);
        let throttle = Throttle::new(Arc::clone(&clock), Arc::default(), Arc::default());
        let cores = Cores::of_machine();
        let waiter = Waiter::new(WaitMode::SleepThenSpin, Arc::clone(&clock), cores);
        DeviceBench {
            device,
            runs,
            preparer,
            throttle,
            waiter,
            graph,
            page_rows,
            clock,
            limits,
            between: has_caches.then(|| Between::new(graph, info)),
            prepares: Vec::new(),
            converted: (Duration::ZERO, 0),
        }
    }

    /// Time of a job of these nodes, without conversion.
    pub(super) fn time_of(
        &mut self,
        nodes: Range<usize>,
        payload: &Arc<Payload>,
    ) -> Result<Duration, lapwing_kernels::device::DeviceError> {
        self.time(&Timed { nodes, part: &Part::WHOLE, payload, link: Link::PLAIN })
    }

    /// Median and range of an op, without submission and conversion.
    pub(super) fn sample(
        &mut self,
        planned: &Measurement,
        submit: Duration,
    ) -> Result<Sample, MeasureError> {
        let batch = inputs::batch(planned.m, planned.context, planned.selected, self.page_rows);
        let mut times = Vec::with_capacity(self.limits.runs);
        let begin = self.clock.now();
        for run in 0..=self.limits.runs {
            let node = planned.nodes[run % planned.nodes.len()];
            let nodes = node..node + 1;
            let failed = |source| MeasureError::Device { what: planned.to_string(), source };
            self.prepare(&nodes, &planned.part).map_err(failed)?;
            self.run_others(node).map_err(failed)?;
            let values = inputs::values(self.graph, nodes.clone(), &batch);
            let payload = Arc::new(Payload { batch: batch.clone(), values });
            let part = &planned.part;
            let job = Timed { nodes, part, payload: &payload, link: Link::PLAIN };
            let time = self.time(&job).map_err(failed)?;
            // The first run warms up. It counts only if there is no time for another run.
            times.push(time.saturating_sub(submit).max(Duration::from_nanos(1)));
            let spent = Duration::from_nanos(self.clock.now().0 - begin.0);
            if run > 0 && (spent > self.limits.per_op || is_settled(&times[1..])) {
                break;
            }
        }
        if times.len() > 1 {
            times.remove(0);
        }
        let time =
            Spread::of(&times).unwrap_or(Spread { median_ns: 1, min_ns: 1, max_ns: 1, runs: 1 });
        Ok(Sample { shape: planned.shape.clone(), m: planned.m, context: planned.context, time })
    }

    /// Times that do not depend on the op. Two ops in separate jobs take one submission more than in
    /// one job.
    pub(super) fn fixed(&mut self, info: &DeviceInfo) -> Result<Fixed, MeasureError> {
        let nodes = self.graph.nodes();
        let is_small = |op: &Op| op.info().is_static && op.info().kind != OpKind::Product;
        let pair = (1..nodes.len()).find(|at| {
            let both = [&nodes[at - 1].op, &nodes[*at].op];
            both.iter().all(|op| is_small(op) && info.runs(op))
                && self.graph.can_cut_rows(at - 1..at + 1)
        });
        let Some(second) = pair else { return Ok(Fixed::default()) };
        let rows = info.sizes.first().copied().unwrap_or(1);
        let graphs = if info.is_static() { vec![rows] } else { Vec::new() };
        let part = Part { graphs, ..Part::WHOLE };
        let mut time = |nodes, link| self.median(nodes, &part, rows, link);
        let first = time(second - 1..second, Link::PLAIN)?;
        let last = time(second..second + 1, Link::PLAIN)?;
        let both = time(second - 1..second + 1, Link::PLAIN)?;
        let queued = time(second..second + 1, Link { queued: true, ..Link::PLAIN })?;
        let crossed = time(second..second + 1, Link { crossed: true, ..Link::PLAIN })?;
        let submit_idle = (first + last).saturating_sub(both);
        // Noise must not make a time negative.
        let submit_queued = submit_idle.saturating_sub(last.saturating_sub(queued));
        Ok(Fixed { submit_idle, submit_queued, crossing: crossed.saturating_sub(last) })
    }

    /// Median time of a job of `rows` rows.
    fn median(
        &mut self,
        nodes: Range<usize>,
        part: &Part,
        rows: usize,
        link: Link,
    ) -> Result<Duration, MeasureError> {
        let failed = |source| MeasureError::Device { what: "submission".to_owned(), source };
        let batch = inputs::batch(rows, 0, false, self.page_rows);
        self.prepare(&nodes, part).map_err(failed)?;
        let values = inputs::values(self.graph, nodes.clone(), &batch);
        let payload = &Arc::new(Payload { batch, values });
        let mut times = Vec::new();
        for _ in 0..9 {
            let nodes = nodes.clone();
            let job = Timed { nodes, part, payload, link };
            times.push(self.time(&job).map_err(failed)?);
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }

    /// Times of all preparations since the last call.
    pub(super) fn take_prepares(&mut self) -> Vec<PrepareSample> {
        std::mem::take(&mut self.prepares)
    }

    /// Conversion time of static graphs, in ns per byte read or written; 0 without graphs.
    pub(super) fn convert_ns_per_byte(&self) -> f64 {
        let (time, bytes) = self.converted;
        if bytes == 0 { 0.0 } else { time.as_secs_f64() * 1e9 / bytes as f64 }
    }

    /// Prepares the static graph of a part, unless the device needs none or has it already.
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
        // The modelled time is recorded but not waited for, to keep the measurement short.
        let modelled = self.device.time.as_ref().map(|time| time.prepare_time(&key));
        let GraphSize { rows, weights } = GraphSize::of(self.graph, &key);
        let ns = nanos(modelled.map_or(real, |modelled| modelled.max(real)));
        self.prepares.push(PrepareSample { rows, weights, ns });
        Ok(())
    }

    /// Time of one job without conversion, as the driver of a live engine runs it.
    fn time(&mut self, job: &Timed<'_>) -> Result<Duration, lapwing_kernels::device::DeviceError> {
        let work = self.work(job.nodes.clone(), job.part.clone(), Arc::clone(job.payload));
        let begin = self.clock.now();
        let mut log = Log::start(&*self.clock);
        self.throttle.begin(false);
        let LiveDevice { device, time, .. } = &mut self.device;
        let outputs = self.runs.run(&mut **device, work, &mut log)?;
        if let Some(time) = time {
            let modelled = Job {
                crossed: job.link.crossed,
                queued: job.link.queued,
                ..Job::alone(job.nodes.start..job.nodes.end, job.part, &job.payload.batch)
            };
            let segments = modelled::segments(&**time, &modelled, log.steps.0);
            self.throttle.wait(modelled::total(&segments), &mut self.waiter);
            let conversions = segments.iter().filter_map(|segment| match segment.kind {
                SegmentKind::Step(Step::Converted { .. }) => Some(segment.time),
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

    fn work(&self, nodes: Range<usize>, part: Part, payload: Arc<Payload>) -> Work {
        let writes = self.graph.writes(nodes.clone()).into();
        let task = Task::Nodes { nodes, prepare: Prepare::Ahead, writes, to: MemoryDomain::Host };
        Work { task, part, payload }
    }

    /// Runs other products of the model with one row, so that the weights of `node` leave the caches as they do between two steps.
    fn run_others(&mut self, node: usize) -> Result<(), lapwing_kernels::device::DeviceError> {
        let Some(between) = &mut self.between else { return Ok(()) };
        let nodes = between.nodes(node);
        let batch = inputs::batch(1, 0, true, self.page_rows);
        for node in nodes {
            let values = inputs::values(self.graph, node..node + 1, &batch);
            let payload = Arc::new(Payload { batch: batch.clone(), values });
            let work = self.work(node..node + 1, Part::WHOLE, payload);
            let mut log = Log::start(&*self.clock);
            drop(self.runs.run(&mut *self.device.device, work, &mut log)?);
        }
        Ok(())
    }
}
