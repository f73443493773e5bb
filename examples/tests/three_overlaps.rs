//! Drafts, verification and chunks of prompts run at one instant, each on a device of its own, and change no token: the load of the
//! example. Its devices are so slow that each mostly waits for the time of its rates. The overlap thus hardly depends on the
//! machine; it is counted, not timed.

#[path = "../three_overlaps/load.rs"]
mod load;

use lapwing::Requant;
use lapwing::draft::{DraftChoice, Schedule};
use lapwing::traces::analysis::WorkKind::{Draft, Prompt as Read, Verify};
use lapwing::traces::analysis::{Concurrent, WorkSet};
use load::{DEVICES, load, run, tiny};

/// Periods of each overlap that are asked for; there are some dozens.
const PERIODS: usize = 5;

#[tokio::test]
async fn three_kinds_of_work_at_one_instant_change_no_token() {
    let alone = run(tiny("cpu"), load()).await.expect("a run");
    assert_eq!(alone.report.together.bound_ns, None, "one device has no choice");
    let draft = DraftChoice::own(Requant::Q4_0).on_device("cpu").schedule(Schedule::Asynchronous);
    let three = tiny(DEVICES).strategy("layer-level").chunk_rows(32).draft(draft);
    let three = run(three, load()).await.expect("a run");
    assert_eq!(three.ids, alone.ids);
    assert_eq!(three.timeline.dropped, 0);
    let overlap = Concurrent::new(&three.timeline);
    for kinds in [[Draft, Verify], [Draft, Read], [Verify, Read]] {
        assert!(overlap.periods(WorkSet::of(kinds)) >= PERIODS, "{kinds:?}: {overlap:?}");
    }
    assert!(overlap.periods(WorkSet::of([Draft, Verify, Read])) >= PERIODS, "{overlap:?}");

    let together = &three.report.together;
    let share = |kinds: &str| together.concurrent[kinds].expect("a share");
    let all = share("draft+verify+prompt");
    assert!(all > 0.0 && all <= share("draft+verify") && share("draft+verify") <= share("draft"));
    assert!(together.makespan_by_bound >= Some(1.0), "{:?}", together.bound_ns);
    assert!(three.report.requests.gap_ms.max > Some(0.0) && three.analysis.gaps.len() > 1);
}
