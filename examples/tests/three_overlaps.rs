//! The load of the example overlaps three kinds of work and changes no token, on a tiny model and slow devices.

#[path = "../three_overlaps/load.rs"]
mod load;

use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, Schedule};
use lapwing::{Activations, Engine, EngineBuilder, Prompt, Requant, Request};
use load::{Load, run};

const DEVICES: &str = "cpu=throttled:kind=cpu,gflops=0.2,gbps=0.025,submit=0,idle-submit=0,sync=0\
    +gpu=throttled:gflops=0.5,gbps=0.04,submit=0,idle-submit=0,sync=0\
    +npu=systolic:gflops=0.03,gbps=0.02,submit=0,idle-submit=0,sync=0,prepare=0,prepare-gweight=0";

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
async fn the_load_overlaps_three_kinds_of_work() {
    let alone = run(tiny("cpu"), load()).await.expect("a run");
    assert_eq!(alone.report.together.bound_ns, None, "one device has no choice");
    let draft = DraftChoice::own(Requant::Q4_0).on_device("cpu").schedule(Schedule::Asynchronous);
    let three = tiny(DEVICES).strategy("layer-level").chunk_rows(32).draft(draft);
    let three = run(three, load()).await.expect("a run");
    assert_eq!(three.ids, alone.ids);
    assert_eq!(three.timeline.dropped, 0);
    let together = &three.report.together;
    let share = |kinds: &str| together.concurrent[kinds].expect("a share");
    let all = share("draft+verify+prompt");
    assert!(all > 0.0 && all <= share("draft+verify") && share("draft+verify") <= share("draft"));
    assert!(together.makespan_by_bound >= Some(1.0), "{:?}", together.bound_ns);
    assert!(three.report.requests.gap_ms.max > Some(0.0) && three.analysis.gaps.len() > 1);
}
