//! A model with mixtures of experts has the tokens of the CPU on an OpenCL device, alone and with its experts, some of
//! them, or some of its layers there.
//!
//! All devices compute with activations in f32, so that only the order of sums differs.

use std::path::Path;

use lapwing::Activations;
use lapwing::devices::DeviceSpec;
use lapwing::plan::strategy::{Ratio, StrategyOptions};

use crate::experts_change_a_token::{answers, builder, ids, prompts};
use crate::support::needs_driver;

#[tokio::test]
async fn experts_on_an_opencl_device_change_no_token() {
    needs_driver!(has_opencl);
    // Programs are compiled once for all engines.
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl");
    let on = |name: &str, devices: &str| {
        let devices = DeviceSpec::list(devices).expect("devices");
        builder(name).activations(Activations::F32).packed_cache(&programs).devices(devices)
    };
    for name in ["qwen3moe", "gpt-oss", "llama4", "grovemoe"] {
        let engine = on(name, "cpu").build().await.expect("an engine");
        let wanted = ids(&answers(&engine, &prompts()).await);
        let both = "cpu+gpu=opencl";
        let ratio = |units: [usize; 2]| {
            let ratio = Some(Ratio::new(&units).expect("a ratio"));
            StrategyOptions { ratio, ..StrategyOptions::default() }
        };
        let cut = |units| on(name, both).strategy("expert-cut").strategy_options(ratio(units));
        let mut engines = vec![
            on(name, both).place("layers.*.experts=gpu"),
            cut([1, 2]),
            cut([3, 1]),
            on(name, both).strategy("expert-cut"),
        ];
        // The device lacks an op of Llama 4 beside its experts.
        if name != "llama4" {
            engines.push(on(name, "gpu=opencl"));
            engines.push(on(name, both).strategy("layer-split"));
        }
        for (at, engine) in engines.into_iter().enumerate() {
            let engine = engine.build().await.expect("an engine");
            let found = ids(&answers(&engine, &prompts()).await);
            assert_eq!(found, wanted, "{name}, engine {at}");
        }
    }
}
