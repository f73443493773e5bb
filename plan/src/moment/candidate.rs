//! A route that a chunk may take.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{LaneWork, mix};
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::predict::alone;
use crate::route::Route;
use crate::strategy::interface::PlanInput;

/// A route that chunks of a shape may take, with predicted times.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The route.
    pub route: Arc<Route>,
    /// Names of its devices, by number.
    pub devices: Arc<str>,
    /// Time of a chunk alone.
    pub alone: Duration,
    /// Work of each device, by number.
    pub lanes: Arc<[LaneWork]>,
    /// Time of each part of its stages, in order.
    pub parts: Arc<[Duration]>,
    /// How often it goes from one device to another.
    pub crossings: u32,
}

/// Candidates of a shape at most.
pub const CANDIDATES_MAX: usize = 8;

impl Candidate {
    /// A candidate, with the times of a chunk of that shape.
    pub fn new(input: &PlanInput<'_>, shape: &ChunkShape, route: Arc<Route>) -> Candidate {
        let prediction = alone(input, shape, &route);
        let (alone, lanes) = (prediction.makespan, prediction.lanes.into());
        let computed = route.compute_stages().flat_map(|stage| &stage.parts);
        let used: BTreeSet<usize> = computed.map(|part| part.device.0).collect();
        let names = used.into_iter().filter_map(|device| input.devices.get(device));
        let names: Vec<&str> = names.map(|device| &*device.name).collect();
        let (devices, crossings) = (names.join("+").into(), crossings(&route));
        let parts = prediction.parts.into();
        Candidate { route, devices, alone, lanes, parts, crossings }
    }

    /// Those of the routes that a chunk may take ([`best`](Candidate::best)). With one device nothing is predicted.
    pub fn of_routes(
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        routes: Vec<Arc<Route>>,
    ) -> Vec<Candidate> {
        let candidate = |route| match input.devices.len() > 1 {
            true => Candidate::new(input, shape, route),
            false => Candidate::only(route),
        };
        Candidate::best(routes.into_iter().map(candidate).collect())
    }

    /// The same route with the times of a chunk of another shape.
    #[must_use]
    pub fn timed(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Candidate {
        match self.lanes.is_empty() {
            true => self.clone(),
            false => Candidate::new(input, shape, Arc::clone(&self.route)),
        }
    }

    /// The only route. Nothing is predicted.
    pub fn only(route: Arc<Route>) -> Candidate {
        let crossings = crossings(&route);
        let (devices, alone) = (Arc::default(), Duration::ZERO);
        let (lanes, parts) = Default::default();
        Candidate { route, devices, alone, lanes, parts, crossings }
    }

    /// Those of which no other one is as good on every device: at most [`CANDIDATES_MAX`], always the first, then those of the best mix for
    /// many chunks, then of each set of devices the fastest alone.
    pub fn best(candidates: Vec<Candidate>) -> Vec<Candidate> {
        let mut best: Vec<Candidate> = Vec::new();
        let mixed = mix::of(&candidates);
        let mut candidates = candidates.into_iter().enumerate();
        best.extend(candidates.next().map(|(_, first)| first));
        let (mixed, mut others): (Vec<_>, Vec<_>) =
            candidates.partition(|(at, _)| mixed.contains(at));
        others.sort_by_key(|(_, candidate)| candidate.alone);
        let mut sets = BTreeSet::new();
        let (fastest, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, candidate)| sets.insert(candidate.used()));
        for (_, candidate) in mixed.into_iter().chain(fastest).chain(rest) {
            let is_new = !best.iter().any(|other| candidate.is_dominated_by(other));
            if is_new && best.len() < CANDIDATES_MAX {
                best.push(candidate);
            }
        }
        best
    }

    fn is_dominated_by(&self, other: &Candidate) -> bool {
        let mut lanes = other.lanes.iter().zip(&*self.lanes);
        other.alone <= self.alone
            && other.crossings <= self.crossings
            && lanes.all(|(other, own)| other.time <= own.time && other.longest <= own.longest)
    }

    /// Whether it uses each device.
    fn used(&self) -> Vec<bool> {
        self.lanes.iter().map(|lane| !lane.time.is_zero()).collect()
    }

    /// The devices of its first stage.
    pub(super) fn first(&self) -> impl Iterator<Item = DeviceId> {
        self.route.stages.first().into_iter().flat_map(|stage| &stage.parts).map(|part| part.device)
    }
}

/// Borders of stages at which not all of the work stays on one device.
pub(super) fn crossings(route: &Route) -> u32 {
    let devices = |at: usize| route.stages[at].parts.iter().map(|part| part.device);
    let borders = 1..route.stages.len();
    let crosses =
        |at: &usize| devices(at - 1).chain(devices(*at)).collect::<BTreeSet<_>>().len() > 1;
    u32::try_from(borders.filter(crosses).count()).unwrap_or(u32::MAX)
}
