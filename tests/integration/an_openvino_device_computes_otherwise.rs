//! An NPU whose graphs OpenVINO compiles gives the tokens of the CPU, with every strategy, beside other
//! devices, and for prompts that fill a graph or miss it by a row. OpenVINO's CPU plug-in stands in for the
//! processor.
//!
//! All devices compute with activations in f32, so that only the order of sums differs.

use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::plan::strategies;
use lapwing::{Activations, Engine, EngineBuilder, ErrorKind, Shutdown};

use crate::a_strategy_changes_a_token::{CONTEXT, greedy, long_model};
use crate::support::{SMOLLM2, model, needs, needs_driver};

const NPU: &str = "npu=openvino:device=CPU";

fn with(model: &Path, devices: &str) -> EngineBuilder {
    let specs = DeviceSpec::list(devices).expect("devices");
    let builder = Engine::builder().model(model).context(CONTEXT).activations(Activations::F32);
    builder.devices(specs).wait_for_graphs(true)
}

/// Checks that an engine gives the same tokens as the CPU alone for prompts of these lengths.
async fn check(builder: EngineBuilder, wanted: &[(usize, Vec<u32>)], what: &str) -> Engine {
    let engine = builder.build().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    for (length, ids) in wanted {
        assert_eq!(&greedy(&engine, *length).await, ids, "{what}, {length} tokens");
    }
    assert_eq!(engine.slots().in_use, 0, "{what} keeps slots");
    engine
}

async fn wanted(model: &Path, lengths: &[usize]) -> Vec<(usize, Vec<u32>)> {
    let engine = with(model, "cpu").build().await.expect("an engine");
    let mut wanted = Vec::new();
    for length in lengths {
        wanted.push((*length, greedy(&engine, *length).await));
    }
    wanted
}

#[tokio::test]
async fn every_strategy_gives_the_same_tokens_with_graphs_of_openvino() {
    needs_driver!(has_openvino);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let wanted = wanted(&model, &[1, 31, 32, 33, 300, 525]).await;
    // With a third device, one prompt that fills no graph.
    let sets = [(format!("cpu+{NPU}"), &wanted[..]), (format!("cpu+gpu+{NPU}"), &wanted[3..4])];
    for (devices, wanted) in sets {
        let mut ran = 0;
        for known in strategies() {
            let builder = with(&model, &devices).strategy(known.name());
            let what = format!("{} on {devices}", known.name());
            match builder.clone().build().await {
                Ok(_) => {
                    ran += 1;
                    let engine = check(builder, wanted, &what).await;
                    engine.shutdown(Shutdown::Drain).await.expect("an end");
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Config, "{what}: {error}"),
            }
        }
        assert!(ran > 1, "no strategy runs on {devices}");
    }
}

#[tokio::test]
async fn the_cpu_an_opencl_device_and_openvino_together_give_the_same_tokens() {
    needs_driver!(has_openvino);
    needs_driver!(has_opencl);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let wanted = wanted(&model, &[33, 300]).await;
    let devices = format!("cpu+gpu=opencl:0+{NPU}");
    for strategy in ["auto", "tensor-level", "chunk-graph"] {
        let engine = check(with(&model, &devices).strategy(strategy), &wanted, strategy).await;
        engine.shutdown(Shutdown::Drain).await.expect("an end");
    }
}

#[tokio::test]
async fn a_real_model_gives_the_same_tokens_with_its_products_on_openvino() {
    needs_driver!(has_openvino);
    needs!(SMOLLM2);
    let model = model(SMOLLM2);
    let wanted = wanted(&model, &[33]).await;
    for strategy in ["chunk-graph", "tensor-level"] {
        let builder = with(&model, &format!("cpu+{NPU}")).strategy(strategy);
        let engine = check(builder, &wanted, strategy).await;
        let parts = engine.placement().stages.iter().flat_map(|stage| &stage.parts);
        assert!(parts.clone().any(|part| part.device == "npu"), "{strategy}: nothing on the NPU");
        engine.shutdown(Shutdown::Drain).await.expect("an end");
    }
}

#[tokio::test]
async fn a_device_that_openvino_lacks_is_an_error_that_lists_the_others() {
    needs_driver!(has_openvino);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let error = with(&model, "cpu+npu=openvino:device=NPU.9").build().await;
    let error = error.expect_err("no such device");
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = error.to_string();
    assert!(text.contains("'NPU.9'") && text.contains("found: CPU"), "{text}");
}

#[test]
fn openvino_devices_are_read_and_written_as_text() {
    for text in ["npu=openvino", "npu=openvino:threads=2,device=CPU", "n=openvino:budget=1GiB"] {
        let spec: DeviceSpec = text.parse().expect(text);
        let again: DeviceSpec = spec.to_string().parse().expect("its own text");
        assert_eq!((spec.is_static(), &again), (true, &spec), "{text}");
    }
    for (text, named) in [
        ("npu=openvino:device=a b", "OpenVINO's name"),
        ("npu=openvino:gflops=3", "unknown key 'gflops'"),
        ("npu=openvino:kind=gpu", "npu for the form openvino"),
    ] {
        let error = text.parse::<DeviceSpec>().expect_err(text).to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}
