//! Which kinds of work ran at the same time on different devices.

use std::collections::BTreeMap;

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

    /// The kinds of work that a chunk does; none if its tags do not say. A chunk with rows of prompts beside steps does both.
    fn of_tags(tags: &Tags) -> WorkSet {
        let step = match tags.role {
            Some(DraftRole::Draft) => return WorkSet::of([WorkKind::Draft]),
            Some(DraftRole::Verify) => WorkKind::Verify,
            None => WorkKind::Decode,
        };
        match tags.phase {
            Some(ChunkPhase::Prefill) => WorkSet::of([WorkKind::Prompt]),
            Some(ChunkPhase::Decode) => WorkSet::of([step]),
            Some(ChunkPhase::Mixed) => WorkSet::of([step, WorkKind::Prompt]),
            None => WorkSet::of(tags.role.map(|_| step)),
        }
    }
}

/// For how long stages of each set of kinds ran at the same time, each on a device of its own. Work whose results were discarded counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
            let kinds = WorkSet::of_tags(&span.tags);
            if is_stage && !kinds.is_empty() {
                let change = |at, begins| Change { at, lane: span.lane, kinds, begins };
                changes.extend([change(span.start.0, true), change(span.end.0, false)]);
            }
        }
        let is_known = !changes.is_empty();
        changes.sort_unstable_by_key(|change| change.at);
        let (mut now, mut latest) = (Running::default(), 0);
        let (mut times, mut periods) = ([0; SETS], [0; SETS]);
        let mut before = [false; SETS];
        for change in changes {
            if change.at > latest {
                let holds = now.holds();
                for at in (0..SETS).filter(|at| holds[*at]) {
                    times[at] += change.at - latest;
                    periods[at] += usize::from(!before[at]);
                }
                (before, latest) = (holds, change.at);
            }
            now.apply(&change);
        }
        Concurrent { times, periods, is_known }
    }
}

/// A stage begins or ends.
struct Change {
    at: u64,
    lane: usize,
    kinds: WorkSet,
    begins: bool,
}

/// The stages that are in progress at one time.
#[derive(Default)]
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
