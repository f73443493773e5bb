//! Drafts, verification and chunks of prompts run at one instant, each on a device of its own, and change no token: the load of the
//! example on a tiny model. Its devices are so slow that each mostly waits for the time of its rates. The overlap thus hardly
//! depends on the machine; it is counted, not timed.

#[path = "../three_overlaps/load.rs"]
mod load;

use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, Schedule};
use lapwing::traces::analysis::WorkKind::{Draft, Prompt as Read, Verify};
use lapwing::traces::analysis::{Concurrent, WorkSet};
use lapwing::{Activations, Engine, EngineBuilder, Prompt, Requant, Request};
use load::{Load, run};

/// One drafts, one has the steps of streams and attention, and one the matmuls of prompts.
const DEVICES: &str = "cpu=throttled:kind=cpu,gflops=0.2,gbps=0.025,submit=0,idle-submit=0,sync=0\
    +gpu=throttled:gflops=0.5,gbps=0.04,submit=0,idle-submit=0,sync=0\
    +npu=systolic:gflops=0.03,gbps=0.02,submit=0,idle-submit=0,sync=0,prepare=0,prepare-gweight=0";

/// Periods of each overlap that are asked for; there are some dozens.
const PERIODS: usize = 5;

fn tiny(devices: &str) -> EngineBuilder {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
    let builder = Engine::builder().model(folder.join("llama.gguf")).context(256);
    builder.activations(Activations::F32).devices(DeviceSpec::list(devices).expect("devices"))
}

fn request(number: u32, length: u32, tokens: usize) -> Request {
    let ids = (0..length).map(|at| 3 + (at + number) * 7919 % 250).collect();
    Request::new(Prompt::Ids(ids)).greedy().max_tokens(tokens).ignore_eos().prefix_cache(false)
}

fn load() -> Load {
    let streams = (0..2).map(|number| request(number, 8, 120)).collect();
    Load { streams, prompts: (0..2).map(|number| request(100 + number, 240, 1)).collect() }
}

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
