//! Requests that arrive at their times, and a model that drafts for them: the same scenario for any devices.

use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId};
use lapwing_kernels::kv::{KvLayout, KvPool, KvSize};
use lapwing_traces::analysis::WorkSet;
use lapwing_traces::{Nanos, Recording};

use super::arrival::{Arrival, Drafting, Served};
use super::error::SocRunError;
use super::soc::SocModel;
use super::speculation::Acceptance;
use super::tokens::Tokens;
use super::virtual_engine::{Moment, Rules, VirtualEngine};
use crate::draft::DRAFT_MAX;
use crate::drive::simulated::DeviceUsage;
use crate::scheduler::KvPages;

/// Requests, and a model that drafts for them.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The requests. Their prompts consist of [`Tokens::of_request`].
    pub arrivals: Vec<Arrival>,
    /// Maximum number of requests that run at the same time.
    pub sequences_max: usize,
    /// What the scheduler is told.
    pub rules: Rules,
    /// The draft model of requests whose [`Drafting`] is by a model.
    pub draft: Option<DraftModel>,
    /// Other models that requests are for, numbered from [`Traffic::first_other`] on.
    pub others: Vec<OtherModel>,
}

/// A model beside the first one.
#[derive(Clone, Debug)]
pub struct OtherModel {
    /// Its ops and cache.
    pub model: SocModel,
    /// Name of the device that computes all of it; `None`: as the strategy of the first one chooses.
    pub device: Option<String>,
}

/// A draft model.
#[derive(Clone, Debug)]
pub struct DraftModel {
    /// Its ops and cache.
    pub model: SocModel,
    /// Name of its device; `None`: a CPU, or the first device that computes all ops.
    pub device: Option<String>,
    /// Where its tokens are those of the target.
    pub acceptance: Acceptance,
}

/// What became of traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficOutcome {
    /// Of each request. Times are those of the engine's clock.
    pub served: Vec<Served>,
    /// Moment to which arrivals are relative.
    pub begin: Moment,
    /// Moment of the last token of all.
    pub end: Moment,
    /// The recording, if one is made.
    pub recording: Option<Recording>,
}

impl Traffic {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`SocRunError::Option`] and [`SocRunError::Number`].
    pub fn check(&self) -> Result<(), SocRunError> {
        let within = |what, found, to| match (1..=to).contains(&found) {
            true => Ok(()),
            false => Err(SocRunError::Option { what, found, from: 1, to }),
        };
        within("the number of requests", self.arrivals.len(), 1 << 16)?;
        within("the number of requests at a time", self.sequences_max, 1 << 16)?;
        for arrival in &self.arrivals {
            within("the length of a prompt", arrival.ids.len(), 1 << 20)?;
            within("the number of tokens", arrival.tokens, 1 << 20)?;
        }
        self.check_order()?;
        let Some(draft) = &self.draft else { return Ok(()) };
        if draft.model.workload.graph.has_state() {
            let name = &draft.model.name;
            let reason = format!(
                "{name} keeps a state of the rows before, so it cannot draft; choose another draft model"
            );
            return Err(SocRunError::Number { reason });
        }
        draft.acceptance.check()
    }

    /// Checks that each request can arrive, and is for a model that is there.
    fn check_order(&self) -> Result<(), SocRunError> {
        let wrong = |reason: String| Err(SocRunError::Number { reason });
        let first = self.first_other();
        let is_known =
            |model: usize| model == 0 || (first..first + self.others.len()).contains(&model);
        if let Some(of) = self.arrivals.iter().position(|of| !is_known(of.model.0)) {
            return wrong(format!("request {of} is for a model that is not there"));
        }
        let mut arrives = vec![false; self.arrivals.len()];
        let ready = |arrives: &[bool], of: &Arrival| {
            of.after.iter().all(|before| arrives.get(*before) == Some(&true))
        };
        loop {
            let next = |at: &usize| !arrives[*at] && ready(&arrives, &self.arrivals[*at]);
            let found: Vec<usize> = (0..arrives.len()).filter(next).collect();
            if found.is_empty() {
                break;
            }
            found.into_iter().for_each(|at| arrives[at] = true);
        }
        match arrives.iter().position(|arrives| !arrives) {
            None => Ok(()),
            Some(at) => wrong(format!("request {at} waits for one that never ends before it")),
        }
    }

    /// Number of the first of the [other](Traffic::others) models.
    pub fn first_other(&self) -> usize {
        DRAFT_MODEL.0 + usize::from(self.drafts())
    }

    /// The other models with their numbers.
    pub fn others(&self) -> impl Iterator<Item = (ModelId, &OtherModel)> {
        (self.first_other()..).map(ModelId).zip(&self.others)
    }

    /// Maximum tokens of a request.
    pub fn context(&self) -> usize {
        let tokens = self.arrivals.iter().map(|arrival| arrival.ids.len() + arrival.tokens);
        tokens.max().unwrap_or(0) + 2
    }

    /// Maximum tokens of a draft model's text.
    pub fn draft_context(&self) -> usize {
        let drafting = self.arrivals.iter().filter_map(|arrival| arrival.drafting);
        let most = drafting.map(Drafting::tokens_max).max().unwrap_or(DRAFT_MAX);
        self.context() + most + 1
    }

    /// Pages for all requests to a model with their drafts, so that none is preempted.
    pub fn kv(&self, model: ModelId, layout: &KvLayout) -> KvSize {
        let of_model = || self.arrivals.iter().filter(|arrival| arrival.model == model);
        let most = |arrival: &Arrival| arrival.drafting.map_or(DRAFT_MAX, Drafting::tokens_max);
        let rows = |arrival: &Arrival| arrival.ids.len() + arrival.tokens + most(arrival) + 2;
        let pages = of_model().map(|arrival| layout.pages_for(rows(arrival)));
        let states = u32::try_from(of_model().count()).unwrap_or(u32::MAX);
        KvSize { pages: u32::try_from(pages.sum::<usize>()).unwrap_or(u32::MAX), states }
    }

    /// The tokens that the models yield.
    pub fn tokens(&self) -> Tokens {
        let tokens = |draft: &DraftModel| Tokens::of_texts(&draft.acceptance, self.draft_context());
        self.draft.as_ref().map(tokens).unwrap_or_default()
    }

    /// Whether a request drafts by a model.
    pub fn drafts(&self) -> bool {
        self.draft.is_some() && self.arrivals.iter().any(|arrival| arrival.drafting.is_some())
    }
}

/// The number of a draft model.
pub const DRAFT_MODEL: ModelId = ModelId(1);

impl OtherModel {
    /// The number of its device, if it has one.
    ///
    /// # Errors
    /// [`SocRunError::Number`] if there is none of that name that computes all ops.
    pub fn place(&self, devices: &[DeviceInfo]) -> Result<Option<usize>, SocRunError> {
        let Some(name) = &self.device else { return Ok(None) };
        let can = |info: &DeviceInfo| info.name == *name && !info.is_static();
        match devices.iter().position(can) {
            Some(device) => Ok(Some(device)),
            None => Err(no_device(&format!("the device of {}", self.model.name), name, devices)),
        }
    }
}

/// That a device is missing or cannot compute all ops.
fn no_device(of: &str, named: &str, devices: &[DeviceInfo]) -> SocRunError {
    let able = devices.iter().filter(|info| !info.is_static()).map(|info| &*info.name);
    let able = able.collect::<Vec<_>>().join(", ");
    let reason = format!("{of} is {named}, but must be one that computes attention: {able}");
    SocRunError::Number { reason }
}

impl DraftModel {
    /// The number of its device.
    ///
    /// # Errors
    /// [`SocRunError::Number`] if there is none that computes all ops.
    pub fn place(&self, devices: &[DeviceInfo]) -> Result<usize, SocRunError> {
        let can = |info: &DeviceInfo| !info.is_static();
        let is_cpu = |info: &DeviceInfo| can(info) && info.kind == DeviceKind::Cpu;
        let found = match &self.device {
            None => devices.iter().position(is_cpu).or_else(|| devices.iter().position(can)),
            Some(name) => devices.iter().position(|info| info.name == *name && can(info)),
        };
        found.ok_or_else(|| {
            let named = self.device.as_deref().unwrap_or("missing");
            no_device("the device of the draft model", named, devices)
        })
    }
}

/// Free pages of that size.
pub fn pages(layout: &KvLayout, size: KvSize) -> KvPages {
    let (pool, states) = (KvPool::new(size.pages), KvPool::new(size.states));
    KvPages { pool, states, layout: layout.clone() }
}

impl VirtualEngine {
    /// Serves traffic to the end; its requests arrive after the present time.
    ///
    /// # Errors
    /// As [`serve`](VirtualEngine::serve), and [`SocRunError::Failed`] if a request fails.
    pub fn serve_traffic(&mut self, traffic: &Traffic) -> Result<TrafficOutcome, SocRunError> {
        let begin = self.moment();
        let later =
            |arrival: &Arrival| Arrival { at: Nanos(begin.at.0 + arrival.at.0), ..arrival.clone() };
        let arrivals: Vec<Arrival> = traffic.arrivals.iter().map(later).collect();
        let served = self.serve(&arrivals, None)?;
        if let Some(failed) = served.iter().find_map(|served| served.failed.clone()) {
            return Err(SocRunError::Failed { at: failed.at, error: failed.error });
        }
        let lasts = served.iter().filter_map(|served| served.last.as_ref());
        let end = lasts.max_by_key(|moment| moment.at).cloned().unwrap_or_else(|| begin.clone());
        Ok(TrafficOutcome { served, begin, end, recording: None })
    }
}

impl TrafficOutcome {
    /// Time of all of it, in ns.
    pub fn makespan(&self) -> u64 {
        self.end.at.0 - self.begin.at.0
    }

    /// Time in which stages of all of these kinds ran, each on a device of its own, in ns, as [`Concurrent::time`] of a recording.
    ///
    /// [`Concurrent::time`]: lapwing_traces::analysis::Concurrent::time
    pub fn concurrent(&self, set: WorkSet) -> u64 {
        let time = |moment: &Moment| moment.usage.concurrent.time(set).unwrap_or_default();
        time(&self.end) - time(&self.begin)
    }

    /// Time in which each device computed, in ns, and its runs, in the order of registration.
    pub fn devices(&self) -> impl Iterator<Item = (u64, usize)> {
        let zero = DeviceUsage::default();
        let before = self.begin.usage.devices.iter().copied().chain(std::iter::repeat(zero));
        let after = self.end.usage.devices.iter().zip(before);
        after.map(|(after, before)| (after.busy.0 - before.busy.0, after.runs - before.runs))
    }
}
