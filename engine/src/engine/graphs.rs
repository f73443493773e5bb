//! Prepared graphs at the start of an engine, and the strategy that computes until they are ready.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapwing_actors::scheduler::Scheduler;
use lapwing_kernels::device::{DeviceKind, GraphKey, Preparer};
use lapwing_plan::cost::CostModel;
use lapwing_plan::planner::Planner;
use lapwing_plan::strategy::{GpuOnly, Meanwhile, Strategy};
use lapwing_plan::time::{Crossing, Job};
use lapwing_plan::{DeviceId, PlanError, Route, device_of};
use lapwing_traces::{Clock, OsClock};

use super::memory;
use super::opened::Opened;
use crate::config::Settings;
use crate::devices::build::{Built, Shared};
use crate::error::Error;
use crate::placement::Explainer;

/// Longest time in which a start reads graphs. The others are read when the engine is idle.
const READ_MAX: Duration = Duration::from_secs(10);

/// The graphs that a start has read from disk.
#[derive(Default)]
pub(crate) struct ReadGraphs {
    /// Those that are ready.
    pub(crate) ready: HashSet<(DeviceId, GraphKey)>,
    /// Time that it took.
    pub(crate) time: Duration,
    /// Routes of prompts and decode steps that were prepared, of which graphs are left.
    left: Vec<Arc<Route>>,
}

impl ReadGraphs {
    /// Tells a scheduler which graphs are ready, and which to read when the engine is idle.
    pub(super) fn told_to(&self, mut scheduler: Scheduler) -> Scheduler {
        for (device, key) in &self.ready {
            scheduler.graphs_are_ready(*device, [key.clone()]);
        }
        // The latest comes first.
        self.left.iter().rev().for_each(|route| scheduler.want_graphs(route));
        scheduler
    }
}

/// Adds the parts that depend on the strategy: the draft model's plans, the ready graphs, and the strategy until others are ready.
pub(super) fn complete(
    explainer: &mut Explainer,
    shared: Shared<'_>,
    devices: &[Built],
) -> Result<(), Error> {
    let Opened { settings, chosen, .. } = shared.opened;
    let draft = shared.memory.draft.as_ref();
    explainer.draft = draft.map(|draft| draft.planned(&explainer.parts));
    explainer.meanwhile = meanwhile(explainer, shared, devices);
    explainer.read_graphs = read(settings, explainer, devices, chosen.context)?;
    Ok(())
}

/// Reads the graphs from disk that the settings' plans need, or without plans those of a full chunk and of a decode step.
/// Graphs that are not on disk are left out, and so is everything that does not fit into the budget of its device.
///
/// # Errors
/// [`PlanError`] when the strategy has no route.
fn read(
    settings: &Settings,
    explainer: &Explainer,
    devices: &[Built],
    context: usize,
) -> Result<ReadGraphs, PlanError> {
    let mut preparers: Vec<Option<Box<dyn Preparer>>> = Vec::new();
    for built in devices {
        preparers.push(built.device.device.preparer().filter(|preparer| preparer.keeps_graphs()));
    }
    if preparers.iter().all(Option::is_none) {
        return Ok(ReadGraphs::default());
    }
    let routes = match &settings.plans {
        Some(plans) => plans.all(&explainer.parts.input()),
        None => explainer.usual_routes(context)?.to_vec(),
    };
    let (clock, mut read) = (OsClock::start(), ReadGraphs::default());
    let mut seen = HashSet::new();
    for graph in routes.iter().flat_map(|route| &route.graphs) {
        let (device, key) = graph;
        let is_late = clock.now().since(Default::default()) > READ_MAX;
        let preparer = preparers.get_mut(device.0).and_then(Option::as_mut);
        let Some(preparer) = preparer.filter(|_| !is_late && seen.insert(graph)) else { continue };
        if !preparer.is_kept(key) {
            continue;
        }
        let of_device = read.ready.iter().filter(|(d, _)| d == device);
        let keep: Vec<GraphKey> = of_device.map(|(_, key)| key.clone()).collect();
        let begin = clock.now();
        match preparer.prepare(std::slice::from_ref(key), &keep, &mut ()) {
            Ok(prepared) => {
                preparer.took(&prepared, clock.now().since(begin));
                read.ready.insert(graph.clone());
            }
            // The budget is used up, or the graph is reported when a request needs it.
            Err(error) => {
                tracing::debug!(%error, "graphs of a device are not read");
                preparers[device.0] = None;
            }
        }
    }
    read.time = clock.now().since(Default::default());
    if settings.plans.is_some() {
        let is_left = |route: &Arc<Route>| !route.graphs.iter().all(|it| read.ready.contains(it));
        read.left = routes.into_iter().filter(is_left).collect();
    }
    let (graphs, time) = (read.ready.len(), read.time);
    tracing::info!(graphs, ?time, "read prepared graphs");
    Ok(read)
}

/// The strategy for chunks whose graphs are not ready; `None` if they wait, because the settings say so or no other
/// device can compute them.
fn meanwhile(
    explainer: &Explainer,
    shared: Shared<'_>,
    devices: &[Built],
) -> Option<Arc<dyn Strategy>> {
    let Opened { settings, chosen, .. } = shared.opened;
    let parts = &explainer.parts;
    let has_graphs = parts.devices.iter().any(|device| device.is_static());
    // Ops that are placed by hand stay where they are.
    if settings.wait_for_graphs || !settings.places.is_empty() || !has_graphs {
        return None;
    }
    let has = |kind| device_of(&parts.devices, kind).is_some();
    let with_gpu = has(DeviceKind::Gpu)
        && memory::fits(shared, devices, parts, Arc::new(GpuOnly)).unwrap_or(false);
    let can_serve = with_gpu || has(DeviceKind::Cpu);
    let meanwhile = Meanwhile::new(parts.strategy.name(), with_gpu, chosen.permits);
    can_serve.then(|| Arc::new(meanwhile) as Arc<dyn Strategy>)
}

/// The planner of an engine.
pub(super) fn planner(explainer: &Explainer) -> Planner {
    let planner = Planner::new(explainer.parts.clone());
    match &explainer.meanwhile {
        Some(strategy) => planner.with_meanwhile(Arc::clone(strategy)),
        None => planner,
    }
}

/// A cost model in which the devices themselves say how long graphs take that a library makes.
pub(super) struct MeasuredGraphs {
    inner: Arc<dyn CostModel>,
    /// By device; none for devices whose preparation is modelled.
    preparers: Vec<Option<Mutex<Box<dyn Preparer>>>>,
}

impl MeasuredGraphs {
    pub(super) fn new(inner: Arc<dyn CostModel>, devices: &[Built]) -> MeasuredGraphs {
        let preparer = |built: &Built| {
            let preparer = built.device.device.preparer().filter(|_| built.device.time.is_none());
            preparer.map(Mutex::new)
        };
        MeasuredGraphs { inner, preparers: devices.iter().map(preparer).collect() }
    }
}

impl CostModel for MeasuredGraphs {
    fn source(&self) -> String {
        self.inner.source()
    }

    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration {
        self.inner.job_time(device, job)
    }

    fn sync_time(&self, crossing: Crossing) -> Duration {
        self.inner.sync_time(crossing)
    }

    fn copy_time(&self, bytes: u64) -> Duration {
        self.inner.copy_time(bytes)
    }

    fn transfer_time(&self, device: DeviceId, bytes: u64) -> Duration {
        self.inner.transfer_time(device, bytes)
    }

    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration {
        let preparer = self.preparers.get(device.0).and_then(Option::as_ref);
        let preparer = preparer.map(|it| it.lock().unwrap_or_else(PoisonError::into_inner));
        let measured = preparer.and_then(|preparer| preparer.predict(key));
        measured.unwrap_or_else(|| self.inner.prepare_time(device, key))
    }
}
