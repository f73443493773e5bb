//! An engine with plans that were solved ahead gives the same tokens, takes its routes from them, and refuses others.

use std::ops::ControlFlow;
use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::prepare::{Plans, Preparation, PrepareOptions, save};
use lapwing::{Engine, EngineBuilder, ErrorKind};

use crate::a_strategy_changes_a_token::{GPU, NPU, greedy, long_model};

fn with(model: &Path, devices: &str, strategy: &str) -> EngineBuilder {
    let specs = DeviceSpec::list(devices).expect("devices");
    Engine::builder().model(model).context(200).devices(specs).strategy(strategy)
}

fn options() -> PrepareOptions {
    PrepareOptions { prompts: vec![32, 100, 1000], decode_rows: 3 }
}

fn prepared(builder: &EngineBuilder) -> Preparation {
    let prepared = builder.clone().prepare_blocking(&options(), &mut |_| ControlFlow::Continue(()));
    prepared.expect("plans")
}

#[tokio::test]
async fn prepared_plans_are_used_and_change_no_token() {
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    for strategy in ["auto", "tensor-level", "online-prepare"] {
        let builder = with(&model, &format!("cpu+{GPU}+{NPU}"), strategy);
        let first = prepared(&builder);
        // A prompt that exceeds the context is left out.
        assert_eq!((&first.prompts[..], first.decode_rows), (&[32, 100][..], 3), "{strategy}");
        assert!(first.solved == first.plans.routes() && !first.was_there(), "{first:?}");
        let [npu] = &first.devices[..] else { panic!("{:?}", first.devices) };
        assert!(npu.device == "npu" && !npu.keeps && npu.prepared == 0, "{npu:?}");
        let file =
            folder.path().join("plans").join(builder.plans_subject().expect("a").file_name());
        save(&first.plans, &file).expect("a file");
        let plans = Plans::load(&file).expect("plans");
        let again = prepared(&builder.clone().plans(plans.clone()));
        assert!(again.was_there() && again.plans == plans, "{strategy}: {again:?}");
        let warm = builder.clone().plans(plans).build().await.expect("an engine");
        let cold = builder.build().await.expect("an engine");
        for length in [32, 33, 100] {
            let tokens = greedy(&warm, length).await;
            assert_eq!(tokens, greedy(&cold, length).await, "{strategy}, {length} tokens");
        }
        assert_eq!(warm.placement().strategy, strategy);
    }
}

#[tokio::test]
async fn plans_of_other_settings_are_an_error() {
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let devices = format!("cpu+{NPU}");
    let plans = prepared(&with(&model, &devices, "pipe")).plans;
    let error = with(&model, &devices, "chunk-graph").plans(plans).build().await;
    let error = error.expect_err("plans of another strategy");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("lapwing prepare"), "{error}");
}

#[tokio::test]
async fn who_waits_for_graphs_is_told_once_they_are_made() {
    let folder = tempfile::tempdir().expect("folder");
    let builder = with(&long_model(folder.path()), &format!("cpu+{NPU}"), "chunk-graph");
    let engine = builder.build().await.expect("an engine");
    assert!(!engine.graphs_made().await.expect("an answer"), "no chunk has lacked any");
    let tokens = greedy(&engine, 100).await;
    let graphs = engine.stats().await.expect("stats").graphs;
    assert!(graphs.chunks_elsewhere > 0 && graphs.is_pending, "{graphs:?}");
    assert!(engine.graphs_made().await.expect("an answer"));
    let graphs = engine.stats().await.expect("stats").graphs;
    assert!(graphs.ready > 0 && graphs.wanted == 0 && !graphs.is_pending, "{graphs:?}");
    assert_eq!(greedy(&engine, 100).await, tokens);
    assert!(!engine.graphs_made().await.expect("an answer"));
}

#[cfg(feature = "openvino")]
#[tokio::test]
async fn graphs_are_prepared_where_the_device_keeps_them() {
    crate::support::needs_driver!(has_openvino);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let builder = with(&model, "cpu+npu=openvino:device=CPU", "chunk-graph");
    let unkept = &prepared(&builder).devices[0];
    assert!(!unkept.keeps, "without a folder: {unkept:?}");
    let builder = builder.packed_cache(folder.path().join("packed"));
    let cancelled = builder.clone().prepare_blocking(&options(), &mut |_| ControlFlow::Break(()));
    assert!(cancelled.expect_err("cancelled").is_cancelled());
    let first = prepared(&builder);
    let npu = &first.devices[0];
    assert!(npu.keeps && npu.prepared == npu.graphs && npu.kept == npu.graphs, "{npu:?}");
    assert_eq!(prepared(&builder.clone().plans(first.plans.clone())).devices[0].prepared, 0);
    let noted =
        |engine: &Engine| engine.notes().iter().any(|note| note.contains("lapwing prepare"));
    let cold = builder.clone().build().await.expect("an engine");
    let warm = builder.plans(first.plans).build().await.expect("an engine");
    assert!(noted(&cold) && !noted(&warm), "{:?}", cold.notes());
    let needed = warm.graphs_of(100).expect("graphs");
    assert!(needed.ready == needed.needed && needed.needed > 0 && !needed.waits, "{needed:?}");
    assert_eq!(warm.predict_first(100).expect("a time"), warm.predict(100).expect("a time"));
    greedy(&warm, 100).await;
    let graphs = warm.stats().await.expect("stats").graphs;
    assert!(graphs.chunks_elsewhere == 0 && graphs.ready >= needed.needed, "{graphs:?}");
}

/// All devices compute alike, so that tokens do not tell which of them computed.
#[tokio::test]
async fn a_first_prompt_is_computed_elsewhere_unless_it_is_to_wait() {
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let builder = with(&model, &format!("cpu+{NPU}"), "chunk-graph");
    let engine = builder.clone().build().await.expect("an engine");
    let waiting = builder.clone().wait_for_graphs(true).build().await.expect("an engine");
    let needed = engine.graphs_of(100).expect("graphs");
    assert!(needed.ready == 0 && needed.needed > 0 && !needed.waits, "{needed:?}");
    let alone = with(&model, "cpu", "cpu-only").build().await.expect("an engine");
    let tokens = greedy(&alone, 100).await;
    assert_eq!(greedy(&engine, 100).await, tokens);
    assert_eq!(greedy(&waiting, 100).await, tokens);
    let graphs = engine.stats().await.expect("stats").graphs;
    assert!(graphs.chunks_elsewhere > 0 && graphs.ready + graphs.wanted > 0, "{graphs:?}");
    let graphs = waiting.stats().await.expect("stats").graphs;
    assert!(graphs.chunks_elsewhere == 0 && graphs.ready > 0, "{graphs:?}");
    // Ops that are placed by hand stay there.
    let placed = builder.place("layers.*.ffn=npu").build().await.expect("an engine");
    assert!(placed.graphs_of(100).expect("graphs").waits);
    assert_eq!(greedy(&placed, 100).await, tokens);
    assert_eq!(placed.stats().await.expect("stats").graphs.chunks_elsewhere, 0);
}
