//! Several verification passes of one request in flight: they change no token, they overlap, and after a rejection
//! nothing stale is computed beyond the stage that runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lapwing_actors::draft::{DraftStats, Schedule};
use lapwing_plan::DeviceId;
use lapwing_plan::strategy::{LayersOn, RowCut};
use lapwing_traces::analysis::IdleCause;
use lapwing_traces::event::{Activity, DraftRole, EventKind, RowOutcome};
use lapwing_traces::timeline::Span;
use lapwing_traces::{Analysis, Nanos, Recording, Report, Scope, Timeline};

use crate::cases::cases;
use crate::drafts_by_model::{Request, drafts, placements, play, random, submit};
use crate::oracle::foretell;
use crate::support::prompt;
use crate::two_models::{Engine, Setup};

/// A recorded text of 60 tokens: the target's layers on two devices, the draft model on a third.
fn recorded(wrong: Option<u64>, tokens_per_pass: usize) -> (Recording, u64) {
    let (_, strategies) = placements().into_iter().last().expect("a placement");
    let setup = Setup { strategies, wrong, rates: [(90, 1), (90, 1), (12, 1)], ..Setup::default() };
    let mut engine = Engine::new(&setup);
    engine.sim.recorder().set_scope(Scope::All);
    let ids = (0..).map(|i| prompt(i, 20)).find(|ids| foretell(ids, 60).0.len() == 60);
    let drafts = Some(drafts(Schedule::Asynchronous).always(tokens_per_pass));
    let mut requests = [submit(&mut engine, Nanos(0), ids.expect("a long text"), 60, drafts)];
    play(&mut engine, &mut requests, "passes ahead");
    requests[0].check("passes ahead");
    let recording = engine.sim.recorder().recording();
    assert_rows_add_up(&recording, requests[0].stats(), 20 + 59);
    (recording, engine.sim.now().0)
}

/// Submits requests for texts of 60 tokens, with asynchronous drafts of three tokens.
fn texts(engine: &mut Engine, requests: usize) -> Vec<Request> {
    let long = (0..).map(|i| prompt(i, 20)).filter(|ids| foretell(ids, 60).0.len() == 60);
    long.take(requests)
        .map(|ids| {
            let drafts = drafts(Schedule::Asynchronous).always(3);
            submit(engine, Nanos(0), ids, 60, Some(drafts))
        })
        .collect()
}

/// Each of the `kept` rows of the target counts once, and all others are wasted.
fn assert_rows_add_up(recording: &Recording, stats: &DraftStats, kept: usize) {
    let timeline = Timeline::new(recording);
    let report = Report::new(&timeline, &Analysis::new(&timeline));
    // A pass that is dropped before its second device is not seen there.
    let wasted: BTreeMap<u64, u32> = timeline
        .spans
        .iter()
        .filter(|span| span.tags.role == Some(DraftRole::Verify))
        .filter_map(|span| span.tags.chunk)
        .filter_map(|chunk| Some((chunk, timeline.outcomes.get(&chunk)?.wasted)))
        .collect();
    assert_eq!(wasted.values().sum::<u32>() as usize, stats.wasted, "{stats:?}");
    let drafted: u64 =
        report.drafts.iter().filter(|row| row.role == "draft").map(|row| row.wasted_rows).sum();
    assert_eq!(drafted as usize, stats.draft_rows_wasted, "{stats:?}");
    let of_target = timeline
        .spans
        .iter()
        .filter(|span| span.tags.role != Some(DraftRole::Draft) && span.tags.rows > 0);
    let rows: BTreeMap<u64, u32> =
        of_target.filter_map(|span| Some((span.tags.chunk?, span.tags.rows))).collect();
    assert_eq!(rows.values().sum::<u32>() as usize, kept + stats.wasted, "{stats:?}");
}

/// Texts of two requests at the same time, whose drafts are rejected at different places. The target's layers are on
/// four devices, so that each request may have two passes in flight.
#[test]
fn a_rejection_leaves_the_rows_of_other_requests_in_the_same_pass() {
    let mut placements = placements().into_iter();
    let (_, strategies) = placements.find(|(name, _)| name.contains("four")).expect("a placement");
    let rates = [(50, 1), (50, 1), (8, 1)];
    let setup = Setup { strategies, wrong: Some(8), rates, permits: 8, ..Setup::default() };
    let mut engine = Engine::new(&setup);
    engine.sim.recorder().set_scope(Scope::All);
    let mut requests = texts(&mut engine, 2);
    play(&mut engine, &mut requests, "two requests");
    let mut stats = DraftStats::default();
    for request in &requests {
        request.check("two requests");
        stats.add(request.stats());
    }
    let recording = engine.sim.recorder().recording();
    assert_rows_add_up(&recording, &stats, 2 * (20 + 59));
    assert!(stats.wasted > stats.drafted - stats.accepted, "no pass ahead was stale: {stats:?}");
    let timeline = Timeline::new(&recording);
    let passes = passes(&timeline);
    let crossing = |at: u64| passes.iter().filter(move |(start, end)| (*start..*end).contains(&at));
    let most = passes.iter().map(|(start, _)| crossing(*start).count()).max();
    assert!(most > Some(2), "at most {most:?} passes are in flight");
    // A chunk that holds rows of both has no request of its own.
    let shared: BTreeMap<u64, u32> = timeline
        .spans
        .iter()
        .filter(|span| span.tags.role == Some(DraftRole::Verify) && span.tags.request.is_none())
        .filter_map(|span| Some((span.tags.chunk?, span.tags.rows)))
        .collect();
    let is_partly_stale = |chunk: &u64| {
        // Each request has four rows in it.
        let RowOutcome { drafted, wasted, .. } = timeline.outcomes[chunk];
        drafted == 3 && wasted >= 4
    };
    assert!(shared.keys().any(is_partly_stale), "no pass of both was stale for one: {shared:?}");
}

/// The times between which a chunk is on its devices, of all verification passes.
fn passes(timeline: &Timeline) -> Vec<(u64, u64)> {
    let mut passes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for span in &timeline.spans {
        if let (Some(DraftRole::Verify), Some(chunk)) = (span.tags.role, span.tags.chunk) {
            let (start, end) = passes.entry(chunk).or_insert((u64::MAX, 0));
            (*start, *end) = ((*start).min(span.start.0), (*end).max(span.end.0));
        }
    }
    passes.into_values().collect()
}

#[test]
fn passes_of_one_request_overlap_on_the_devices_of_the_target() {
    let (recording, _) = recorded(None, 3);
    let timeline = Timeline::new(&recording);
    let passes = passes(&timeline);
    let overlaps = passes.windows(2).filter(|pair| pair[1].0 < pair[0].1).count();
    assert!(
        overlaps * 2 > passes.len(),
        "{overlaps} of {} passes overlap: {passes:?}",
        passes.len()
    );
}

/// Two passes could not overlap there, and two small ones read the weights twice.
#[test]
fn devices_that_share_each_stage_compute_one_pass_at_a_time() {
    let draft = LayersOn { devices: vec![DeviceId(2)] };
    let setup =
        Setup { strategies: [Arc::new(RowCut::default()), Arc::new(draft)], ..Setup::default() };
    let mut engine = Engine::new(&setup);
    engine.sim.recorder().set_scope(Scope::All);
    let mut requests = texts(&mut engine, 3);
    play(&mut engine, &mut requests, "shared stages");
    requests.iter().for_each(|request| request.check("shared stages"));
    let recording = engine.sim.recorder().recording();
    let timeline = Timeline::new(&recording);
    let mut lanes: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    for span in timeline.spans.iter().filter(|span| span.tags.role == Some(DraftRole::Verify)) {
        lanes.entry(span.tags.chunk.expect("a chunk")).or_default().insert(span.lane);
    }
    assert!(lanes.values().any(|lanes| lanes.len() > 1), "no pass is cut: {lanes:?}");
    let mut passes = passes(&timeline);
    passes.sort_unstable();
    assert!(passes.windows(2).all(|pair| pair[0].1 <= pair[1].0), "passes overlap: {passes:?}");
}

/// After all rows of a chunk are discarded, no further stage of it is submitted. A stage that its device has, ends.
fn assert_cancelled_early(recording: &Recording, what: &str) -> usize {
    let timeline = Timeline::new(recording);
    let mut left: BTreeMap<u64, u32> = BTreeMap::new();
    let mut rejected: BTreeMap<u64, Nanos> = BTreeMap::new();
    for span in timeline.spans.iter().filter(|span| span.tags.role.is_some()) {
        let Some(chunk) = span.tags.chunk else { continue };
        left.insert(chunk, span.tags.rows);
    }
    for event in &recording.events {
        if let EventKind::Rows(chunk, rows) = event.kind
            && let Some(left) = left.get_mut(&chunk)
            && rows.wasted > 0
        {
            *left = left.checked_sub(rows.wasted).expect("a row is wasted once");
            if *left == 0 {
                rejected.insert(chunk, event.at);
            }
        }
    }
    // Only chunks that hold no other sequence's rows.
    let alone: BTreeSet<u64> = timeline
        .spans
        .iter()
        .filter(|span| span.tags.request.is_some())
        .filter_map(|span| span.tags.chunk)
        .collect();
    let mut cancelled = 0;
    for (chunk, at) in rejected.iter().filter(|(chunk, _)| alone.contains(chunk)) {
        let of_chunk = timeline.outer().map(|span| &timeline.spans[span]);
        let of_chunk = of_chunk.filter(|span| span.tags.chunk == Some(*chunk));
        let computes = of_chunk.filter(|span| span.activity == Activity::Compute);
        let after: Vec<_> = computes.filter(|span| span.end > *at).collect();
        assert!(after.len() <= 1, "{what}: chunk {chunk}, discarded at {at:?}: {after:?}");
        let is_submitted = |span: &&Span| span.submitted.unwrap_or(span.start) <= *at;
        assert!(after.iter().all(is_submitted), "{what}: {after:?} after {at:?}");
        cancelled += after.len();
    }
    cancelled
}

#[test]
fn after_a_rejection_at_most_the_running_stage_is_stale() {
    let (recording, _) = recorded(Some(4), 3);
    let cancelled = assert_cancelled_early(&recording, "one text");
    assert!(cancelled > 3, "only {cancelled} passes were stale while they ran");
    let timeline = Timeline::new(&recording);
    let analysis = Analysis::new(&timeline);
    let waits = analysis.gaps.iter().filter(|gap| gap.cause == IdleCause::Cancelled).count();
    assert!(waits > 0, "no device waited for the end of a stale stage");
    let seeds = cases(100, 2000);
    let total: usize = (0..seeds)
        .map(|seed| {
            let engine = random(seed, Scope::All);
            let recording = engine.sim.recorder().recording();
            assert_cancelled_early(&recording, &format!("seed {seed}"))
        })
        .sum();
    assert!(total as u64 * 4 > seeds, "only {total} stale passes in {seeds} random schedules");
}

#[test]
fn passes_ahead_are_faster_where_layers_are_divided() {
    // Without drafts, a token takes both stages; with right drafts of three tokens, both devices are busy.
    let (_, time) = recorded(None, 3);
    let stages = 60 * 2 * 90_000;
    assert!(
        time * 5 < stages,
        "{time} ns with passes ahead, {stages} ns for the stages without drafts"
    );
}
