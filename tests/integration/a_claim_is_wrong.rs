//! A strategy that prepares graphs on the spot is timed with their preparation. Claims about speed are kept by
//! the benches (`benches/all.sh`), since a busy machine would break them here.

use std::path::PathBuf;

use lapwing::compare::Compare;
use lapwing::devices::DeviceSpec;
use lapwing::traces::event::Activity;
use lapwing::{Engine, EngineBuilder};

fn tiny(devices: &str) -> EngineBuilder {
    let model =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/tiny/llama.gguf"));
    let devices = DeviceSpec::list(devices).expect("devices");
    devices.into_iter().fold(Engine::builder().model(model), EngineBuilder::device)
}

#[tokio::test]
async fn a_strategy_that_prepares_on_the_spot_is_timed_with_its_preparation() {
    let devices = "cpu+npu=systolic:gflops=50,gbps=50,prepare=30ms";
    let compare = Compare::new(tiny(devices)).strategy("online-prepare").strategy("npu-padding");
    let compare = compare.lengths([70, 20]).tokens(2).repetitions(3);
    let compared = compare.run(|progress| assert!(progress.done < progress.all)).await;
    for length in compared.expect("a comparison").lengths {
        assert!(length.same_tokens, "{} tokens", length.tokens);
        for run in &length.runs {
            let on_the_spot = run.strategy == "online-prepare";
            assert_eq!(run.figures().prepares_on_the_spot, on_the_spot, "{}", run.strategy);
            let prepares = run.timeline.spans.iter().filter(|s| s.activity == Activity::Prepare);
            let prepared = prepares.count();
            let what = format!("{}, {} tokens: {prepared}", run.strategy, length.tokens);
            assert_eq!(prepared > 0, on_the_spot, "{what} graphs prepared in the recorded run");
            assert!(!on_the_spot || run.ttft_ms.min >= 30.0, "{what}, {:?}", run.ttft_ms);
        }
    }
}
