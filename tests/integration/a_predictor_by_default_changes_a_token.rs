//! A layer of the model's file drafts without being asked for, where it is there and a device can run it, and changes no bit of an answer.

use lapwing::Requant;
use lapwing::devices::DeviceSpec;
use lapwing::draft::DraftChoice;

use crate::a_predictor_changes_a_token::{MODELS, builder, prompts, together};
use crate::a_strategy_changes_a_token::NPU;

#[tokio::test]
async fn answers_are_those_without_drafts() {
    for name in MODELS {
        let plain = builder(name).draft(DraftChoice::none()).build().await.expect("an engine");
        assert_eq!(plain.draft(), "none");
        let (wanted, none) = together(&plain, &prompts()).await;
        assert!(none.is_empty(), "nothing drafts: {none:?}");
        let little = || builder(name).context(160).cache_tokens(192);
        for (what, builder) in [("alone", builder(name)), ("in little memory", little())] {
            let engine = builder.build().await.expect("an engine");
            assert_eq!(engine.draft(), "mtp");
            for turn in 0..3 {
                let (found, drafts) = together(&engine, &prompts()).await;
                assert_eq!(found, wanted, "{name} {what}, turn {turn}");
                assert_eq!(drafts.len(), wanted.len(), "each request says what was decided");
                for drafts in drafts.iter().filter(|drafts| drafts.stopped.is_some()) {
                    let did = (drafts.drafted, drafts.draft_rows);
                    assert_eq!(did, (0, 0), "{name} {what}: {drafts:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_layer_that_was_asked_for_drafts_whatever_it_costs() {
    let engine = builder("qwen35-mtp").draft(DraftChoice::predictor());
    let engine = engine.build().await.expect("an engine");
    let (_, drafts) = together(&engine, &prompts()).await;
    assert!(drafts.iter().all(|drafts| drafts.stopped.is_none()), "{drafts:?}");
}

#[tokio::test]
async fn what_has_no_such_layer_or_cannot_run_it_drafts_nothing() {
    for name in ["qwen35", "llama", "glm4-mtp"] {
        let engine = builder(name).build().await.expect("an engine");
        assert_eq!(engine.draft(), "none", "{name}");
    }
    let rows = [
        ("cpu", "mtp"),
        ("gpu=throttled:gflops=40,gbps=8", "mtp"),
        // It takes no room from the layers of the model.
        ("gpu=throttled:gflops=40,gbps=8,memory=64MiB", "none"),
        ("cpu+gpu=throttled:gflops=40,gbps=8,memory=64MiB", "mtp"),
    ];
    for (devices, expected) in rows {
        let list = DeviceSpec::list(devices).expect("devices");
        let engine = builder("qwen35-mtp").devices(list).build().await.expect("an engine");
        assert_eq!(engine.draft(), expected, "{devices}");
    }
}

#[tokio::test]
async fn a_model_whose_last_layer_is_on_an_npu_has_the_same_answers() {
    let devices = || DeviceSpec::list(&format!("cpu+{NPU}")).expect("devices");
    for name in MODELS {
        let plain = builder(name).devices(devices()).draft(DraftChoice::none());
        let (wanted, _) = together(&plain.build().await.expect("an engine"), &prompts()).await;
        for draft in [DraftChoice::default(), DraftChoice::predictor()] {
            let engine = builder(name).devices(devices()).draft(draft).build().await;
            let engine = engine.expect("an engine");
            assert_eq!(engine.draft(), "mtp");
            for turn in 0..2 {
                let (found, _) = together(&engine, &prompts()).await;
                assert_eq!(found, wanted, "{name}, turn {turn}");
            }
        }
    }
}

#[tokio::test]
async fn a_requantised_model_drafts_by_default_too() {
    let plain = builder("qwen35-mtp").requant(Requant::Q8_0).draft(DraftChoice::none());
    let (wanted, _) = together(&plain.build().await.expect("an engine"), &prompts()).await;
    let engine = builder("qwen35-mtp").requant(Requant::Q8_0).build().await.expect("an engine");
    assert_eq!(engine.draft(), "mtp");
    assert_eq!(together(&engine, &prompts()).await.0, wanted);
}
