//! An engine in virtual time with its callers: the set-up and the loop of every simulated run.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{ModelId, PerModel, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_plan::planner::Planner;
use lapwing_plan::time::TimePerModel;
use lapwing_traces::{Nanos, Recorder};

use super::arrival::{Arrival, Drafting, Served};
use super::error::SocRunError;
use crate::drive::simulated::{
    DeviceUsage, Environment, SimulatedDevice, Simulation, SimulationParts, Usage,
};
use crate::message::SchedulerMessage;
use crate::policy::QueuePolicy;
use crate::prefix::PrefixCache;
use crate::scheduler::{
    Batches, KvPages, Reserve, Scheduler, SchedulerConfig, SchedulerModel, SchedulerParts,
};
use crate::sequence::AdmissionLimit;
use crate::stats::EngineStats;

mod fed;
mod watch;

use watch::Watch;

/// A model of an engine in virtual time, with devices that run it.
pub struct VirtualModel {
    /// The model's ops.
    pub graph: Arc<Graph>,
    /// Its planner, cache and limits.
    pub scheduled: SchedulerModel,
    /// Devices that run it, by their number.
    pub devices: Vec<SimulatedDevice>,
}

impl VirtualModel {
    /// A model that is planned so, on these devices.
    pub fn new(
        planner: Planner,
        kv: KvPages,
        context: usize,
        devices: Vec<SimulatedDevice>,
    ) -> VirtualModel {
        let graph = Arc::clone(planner.graph());
        let vocab = graph.value(graph.output()).width;
        let scheduled = SchedulerModel { planner, kv, context, vocab };
        VirtualModel { graph, scheduled, devices }
    }
}

/// The components of an engine in virtual time.
pub struct VirtualParts {
    /// The model that requests are for.
    pub model: VirtualModel,
    /// The others, in the order of their numbers, on the same devices: first the one that drafts, if one does.
    pub others: Vec<VirtualModel>,
    /// Pool of the buffers that hold results.
    pub slots: SlotPool,
    /// Orders requests.
    pub policy: Box<dyn QueuePolicy>,
    /// Maximum number of requests that run at the same time.
    pub sequences_max: usize,
    /// Maximum number of chunks in flight.
    pub permits: usize,
    /// What its scheduler is told.
    pub rules: Rules,
    /// Rate at which parts are merged, in bytes per second.
    pub copy_rate: f64,
    /// The devices' environment; without one, a run is one event of its modelled time.
    pub env: Option<Environment>,
    /// Numbers of the devices in the order in which their actors are registered.
    pub order: Vec<usize>,
}

/// Settings of a scheduler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// As of [`Scheduler::set_token_gap`].
    pub token_gap: Option<Duration>,
    /// As of [`Scheduler::keep_chunks_whole`].
    pub keeps_whole: bool,
    /// As of [`Scheduler::keep_prompts_apart`].
    pub keeps_apart: bool,
    /// As of [`Scheduler::limit_bandwidth`].
    pub bandwidth_limit: Option<f64>,
    /// As of [`Scheduler::set_reserve`].
    pub reserve: Reserve,
    /// As of [`Scheduler::form_batches`].
    pub batches: Batches,
    /// As of [`Scheduler::all_graphs_are_ready`]; the devices must agree.
    pub has_graphs: bool,
    /// Tokens of a page of the prefix cache, if there is one.
    pub prefix_rows: Option<usize>,
}

/// An engine in virtual time. What it has prepared and learned stays for the next requests.
pub struct VirtualEngine {
    simulation: Simulation,
}

/// The caller of one generation.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Token ids of the prompt.
    pub ids: &'a [u32],
    /// Number of decode steps after the first token.
    pub decode: usize,
    /// Rows of each decode step: the latest token and a draft. Devices without values always yield token
    /// 0, so a draft of zeros is accepted completely.
    pub verify: usize,
    /// Virtual time at which it cancels.
    pub cancel: Option<Nanos>,
}

/// A time, and the devices' usage until then.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// The time.
    pub at: Nanos,
    /// Usage since the start.
    pub usage: Usage,
}

/// A caller's observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Moment of the request.
    pub begin: Moment,
    /// Moment of the first token.
    pub first: Moment,
    /// Moment of the last token.
    pub last: Moment,
    /// Number of tokens after the first.
    pub later: usize,
    /// Ids of all tokens.
    pub tokens: Vec<u32>,
}

impl Seen {
    /// Lower bound of the time for any order of the same work: the maximum of the busiest device's work
    /// and of the longest dependency chain, with times without contention.
    pub fn lower_bound(&self) -> Duration {
        let (before, after) = (&self.begin.usage.devices, &self.last.usage.devices);
        let zero = DeviceUsage::default();
        let before = before.iter().chain(std::iter::repeat(&zero));
        let alone = after.iter().zip(before).map(|(after, before)| after.alone.since(before.alone));
        alone.max().unwrap_or_default().max(self.last.usage.critical.since(Nanos(0)))
    }
}

/// A device that runs several models.
fn shared(first: SimulatedDevice, others: Vec<SimulatedDevice>) -> SimulatedDevice {
    let split = |other: SimulatedDevice| (other.device, other.time);
    let (devices, times): (Vec<_>, Vec<_>) = others.into_iter().map(split).unzip();
    SimulatedDevice {
        device: Box::new(PerModel::new(first.device, devices)),
        time: Arc::new(TimePerModel::new(first.time, times)),
    }
}

impl VirtualEngine {
    /// An engine at time 0, without requests.
    ///
    /// # Errors
    /// [`SocRunError::Plan`] when the strategy finds no route for a whole chunk or a decode step.
    pub fn new(parts: VirtualParts) -> Result<VirtualEngine, SocRunError> {
        let VirtualParts { model, others, slots, policy, sequences_max, permits, .. } = parts;
        let VirtualParts { rules, copy_rate, env, order, .. } = parts;
        let VirtualModel { graph, scheduled, mut devices } = model;
        let SchedulerModel { planner, kv, context, vocab } = scheduled;
        let config = SchedulerConfig { context, sequences_max, permits, vocab };
        let mut scheduler = Scheduler::new(SchedulerParts { config, planner, kv, policy })?;
        let mut graphs = vec![graph];
        let mut of_others: Vec<Vec<SimulatedDevice>> = devices.iter().map(|_| Vec::new()).collect();
        for other in others {
            scheduler.add_model(other.scheduled)?;
            graphs.push(other.graph);
            for (devices, device) in of_others.iter_mut().zip(other.devices) {
                devices.push(device);
            }
        }
        if graphs.len() > 1 {
            let each = devices.into_iter().zip(of_others);
            devices = each.map(|(device, others)| shared(device, others)).collect();
        }
        scheduler.set_token_gap(rules.token_gap);
        if rules.keeps_whole {
            scheduler.keep_chunks_whole();
        }
        if rules.keeps_apart {
            scheduler.keep_prompts_apart();
        }
        scheduler.limit_bandwidth(rules.bandwidth_limit);
        scheduler.set_reserve(rules.reserve);
        scheduler.form_batches(rules.batches);
        if rules.has_graphs {
            scheduler.all_graphs_are_ready();
        }
        if let Some(rows) = rules.prefix_rows {
            scheduler.cache_prefixes(ModelId::default(), PrefixCache::new(rows, None));
        }
        let parts = SimulationParts { scheduler, devices, graphs, slots, copy_rate };
        let simulation = match env {
            Some(env) => Simulation::registered(parts, env, &order),
            None => Simulation::unrecorded(parts),
        };
        Ok(VirtualEngine { simulation })
    }

    /// The recorder; off at first. It has room for events only if there is an environment.
    pub fn recorder(&self) -> &Recorder {
        self.simulation.recorder()
    }

    /// What it has done in all.
    pub fn stats(&self) -> EngineStats {
        self.simulation.scheduler().stats()
    }

    /// The present moment.
    pub fn moment(&self) -> Moment {
        let usage = self.simulation.usage().unwrap_or_default();
        Moment { at: self.simulation.now(), usage }
    }

    /// Serves a caller to the end.
    ///
    /// # Errors
    /// [`SocRunError`] when the request fails, the caller cancels before the first token, or
    /// resources are left in the engine.
    pub fn run(&mut self, caller: &Caller<'_>) -> Result<Seen, SocRunError> {
        self.simulation.forget_chains();
        let begin = self.moment();
        let Caller { ids, decode, verify, cancel } = *caller;
        let arrival = Arrival {
            drafting: (verify > 1).then(|| Drafting::Zeros(verify - 1)),
            cancel,
            ..Arrival::new(begin.at, ids.to_vec(), decode * verify + 1)
        };
        let served = self.serve(&[arrival], None)?.pop().unwrap_or_default();
        if let Some(failed) = served.failed {
            return Err(SocRunError::Failed { at: failed.at, error: failed.error });
        }
        let (Some(first), Some(last)) = (served.first, served.last) else {
            return Err(SocRunError::Cancelled);
        };
        let later = served.tokens.len() - 1;
        Ok(Seen { begin, first, last, later, tokens: served.ids })
    }

    /// Serves requests until all have ended, or until a virtual time. The result has one entry for each.
    ///
    /// # Errors
    /// [`SocRunError`] when the run takes too long, or requests or resources are left in the engine at its end.
    pub fn serve(
        &mut self,
        arrivals: &[Arrival],
        until: Option<Nanos>,
    ) -> Result<Vec<Served>, SocRunError> {
        let limit = AdmissionLimit::new(arrivals.len());
        let mut watch = Watch::new(arrivals);
        for (number, arrival) in arrivals.iter().enumerate() {
            let Some(admission) = limit.try_take() else { break };
            watch.send(&mut self.simulation, number, arrival, admission);
        }
        for at in arrivals.iter().filter_map(|arrival| arrival.cancel) {
            self.simulation.send_at(at, SchedulerMessage::Wake);
        }
        watch.run(&mut self.simulation, until)?;
        if until.is_none() {
            self.check(&limit)?;
        }
        Ok(watch.served())
    }

    /// Checks that all resources were released.
    fn check(&self, limit: &AdmissionLimit) -> Result<(), SocRunError> {
        let scheduler = self.simulation.scheduler();
        let (sequences, chunks) = (scheduler.sequences(), scheduler.chunks_in_flight());
        if sequences > 0 {
            return Err(SocRunError::Stuck { sequences, chunks });
        }
        let (pages, admissions) = (scheduler.kv_pages_in_use(), limit.in_use());
        let (slots, left) = (self.simulation.slots_in_use(), self.simulation.left());
        if pages + admissions + chunks + slots + left > 0 {
            return Err(SocRunError::Leak { pages, admissions, chunks, slots, left });
        }
        Ok(())
    }
}
