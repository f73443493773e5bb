//! Which kinds of work ran at the same time on different devices.

use std::collections::BTreeMap;

use crate::clock::Nanos;
use crate::event::{Activity, ChunkPhase, DraftRole, LaneKind, Tags};
use crate::timeline::Timeline;

/// A kind of work, as chunks do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkKind {
    /// A pass of a draft model, its prompt included.
    Draft,
    /// A step that verifies drafted tokens.
    Verify,
    /// A step without drafted tokens.
    Decode,
    /// Rows of prompts.
    Prompt,
}

/// Joins the kinds of a set, as in `draft+verify+prompt`.
pub const JOINED: char = '+';

impl WorkKind {
    /// All kinds, in the order in which sets name them.
    pub const ALL: [WorkKind; 4] =
        [WorkKind::Draft, WorkKind::Verify, WorkKind::Decode, WorkKind::Prompt];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            WorkKind::Draft => "draft",
            WorkKind::Verify => "verify",
            WorkKind::Decode => "decode",
            WorkKind::Prompt => "prompt",
        }
    }
}

/// A set of kinds, one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkSet(u8);

/// Number of sets, the empty one included.
const SETS: usize = 1 << WorkKind::ALL.len();

impl WorkSet {
    /// A set of these kinds.
    pub fn of(kinds: impl IntoIterator<Item = WorkKind>) -> WorkSet {
        WorkSet(kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind as u8))
    }

    /// All sets with at least one kind.
    pub fn all() -> impl Iterator<Item = WorkSet> {
        (1..SETS as u8).map(WorkSet)
    }

    /// Number of kinds.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether it has no kind.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its kinds, in the order of [`WorkKind::ALL`].
    pub fn kinds(self) -> impl Iterator<Item = WorkKind> {
        WorkKind::ALL.into_iter().filter(move |kind| self.0 >> *kind as u8 & 1 == 1)
    }

    /// Its name, as in `draft+verify+prompt`.
    pub fn name(self) -> String {
        let names: Vec<&str> = self.kinds().map(WorkKind::name).collect();
        names.join(&JOINED.to_string())
    }

    /// The kinds of work that a chunk does; none if it is not said. A chunk with rows of prompts beside steps does both.
    pub fn of_chunk(role: Option<DraftRole>, phase: Option<ChunkPhase>) -> WorkSet {
        let step = match role {
            Some(DraftRole::Draft) => return WorkSet::of([WorkKind::Draft]),
            Some(DraftRole::Verify) => WorkKind::Verify,
            None => WorkKind::Decode,
        };
        match phase {
            Some(ChunkPhase::Prefill) => WorkSet::of([WorkKind::Prompt]),
            Some(ChunkPhase::Decode) => WorkSet::of([step]),
            Some(ChunkPhase::Mixed) => WorkSet::of([step, WorkKind::Prompt]),
            None => WorkSet::of(role.map(|_| step)),
        }
    }
}

/// For how long stages of each set of kinds ran at the same time, each on a device of its own. A stage runs from its start on the device
/// to its end there, with its submission and all conversions. Work whose results were discarded counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Concurrent {
    /// Time in ns, by the bits of the set.
    times: [u64; SETS],
    /// Number of periods of such time, by the same bits.
    periods: [usize; SETS],
    /// Whether any stage says what it does.
    is_known: bool,
}

impl Concurrent {
    /// Time in ns during which at least one stage of each kind of the set ran, on as many devices as the set has kinds; `None` if no stage
    /// of the run says what it does.
    pub fn time(&self, set: WorkSet) -> Option<u64> {
        self.is_known.then(|| self.times[usize::from(set.0)])
    }

    /// Number of periods of that [`time`](Concurrent::time), each as long as its kinds run without a break; a kind may change its device.
    pub fn periods(&self, set: WorkSet) -> usize {
        self.periods[usize::from(set.0)]
    }

    /// The times of a timeline.
    pub fn new(timeline: &Timeline) -> Concurrent {
        let mut changes: Vec<Change> = Vec::new();
        for span in timeline.outer().map(|span| &timeline.spans[span]) {
            let is_stage = span.activity == Activity::Compute
                && timeline.lanes[span.lane].kind == LaneKind::Device
                && span.tags.chunk.is_some();
            let Tags { role, phase, .. } = span.tags;
            let kinds = WorkSet::of_chunk(role, phase);
            if is_stage && !kinds.is_empty() {
                let change = |at, begins| Change { at, lane: span.lane, kinds, begins };
                changes.extend([change(span.start, true), change(span.end, false)]);
            }
        }
        changes.sort_unstable_by_key(|change| change.at);
        let mut counting = Counting::default();
        changes.iter().for_each(|change| counting.apply(change));
        counting.counted
    }
}

/// Counts [`Concurrent`] times while stages begin and end. It is told of them in the order of their times.
#[derive(Clone, Debug, Default)]
pub struct Counting {
    running: Running,
    latest: Nanos,
    /// The sets whose kinds ran until the latest change.
    before: [bool; SETS],
    counted: Concurrent,
}

impl Counting {
    /// A stage that does such work begins on a lane.
    pub fn begin(&mut self, at: Nanos, lane: usize, kinds: WorkSet) {
        self.apply(&Change { at, lane, kinds, begins: true });
    }

    /// A stage that has begun on a lane ends.
    pub fn end(&mut self, at: Nanos, lane: usize, kinds: WorkSet) {
        self.apply(&Change { at, lane, kinds, begins: false });
    }

    /// The times until then.
    pub fn until(&self, at: Nanos) -> Concurrent {
        self.advanced(at, &self.running.holds())
    }

    fn advanced(&self, at: Nanos, holds: &[bool; SETS]) -> Concurrent {
        let mut counted = self.counted;
        let nanos = at.0.saturating_sub(self.latest.0);
        for set in (0..SETS).filter(|set| holds[*set] && nanos > 0) {
            counted.times[set] += nanos;
            counted.periods[set] += usize::from(!self.before[set]);
        }
        counted
    }

    fn apply(&mut self, change: &Change) {
        if change.at > self.latest {
            let holds = self.running.holds();
            self.counted = self.advanced(change.at, &holds);
            (self.before, self.latest) = (holds, change.at);
        }
        self.counted.is_known |= !change.kinds.is_empty();
        self.running.apply(change);
    }
}

/// A stage begins or ends.
struct Change {
    at: Nanos,
    lane: usize,
    kinds: WorkSet,
    begins: bool,
}

/// The stages that are in progress at one time.
#[derive(Clone, Debug, Default)]
struct Running {
    /// By lane: how many stages of each kind.
    lanes: BTreeMap<usize, [i64; WorkKind::ALL.len()]>,
    /// By set: the number of lanes with a stage of one of its kinds.
    lanes_of: [usize; SETS],
}

impl Running {
    fn apply(&mut self, change: &Change) {
        let counts = self.lanes.entry(change.lane).or_default();
        let before = runs(counts);
        let step = if change.begins { 1 } else { -1 };
        change.kinds.kinds().for_each(|kind| counts[kind as usize] += step);
        let after = runs(counts);
        if before == after {
            return;
        }
        for set in WorkSet::all() {
            let lanes = &mut self.lanes_of[usize::from(set.0)];
            *lanes += usize::from(set.0 & after.0 > 0);
            *lanes -= usize::from(set.0 & before.0 > 0);
        }
    }

    /// Whether the kinds of each set run on different lanes, one lane for each kind. There is such a choice of lanes if each part
    /// of the set runs on as many lanes as it has kinds (Hall, 1935).
    fn holds(&self) -> [bool; SETS] {
        let mut holds = [true; SETS];
        for set in WorkSet::all() {
            let all_parts = set.kinds().all(|kind| holds[usize::from(set.0 & !(1 << kind as u8))]);
            holds[usize::from(set.0)] = all_parts && self.lanes_of[usize::from(set.0)] >= set.len();
        }
        holds
    }
}

/// The kinds that run on a lane.
fn runs(counts: &[i64; WorkKind::ALL.len()]) -> WorkSet {
    WorkSet::of(WorkKind::ALL.into_iter().filter(|kind| counts[*kind as usize] > 0))
}
