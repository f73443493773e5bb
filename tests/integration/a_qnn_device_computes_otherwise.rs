//! An NPU whose graphs QNN runs gives the probabilities of the CPU, as exactly as binary16 allows, with the
//! strategies that hand whole chunks or single products to it, and for prompts that fill a graph or miss it
//! by a row. On x86-64 QNN's emulator stands in for the processor.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lapwing::devices::{DeviceSpec, QnnSettings};
use lapwing::ranges::{ActivationRange, ActivationRanges, RangeOptions};
use lapwing::{Activations, Engine, EngineBuilder, ErrorKind, Prompt, Request, Shutdown, Token};

use crate::a_strategy_changes_a_token::prompt;
use crate::support::needs_driver;

/// Largest difference of a log-probability: each op rounds to 11 bits.
const TOLERANCE: f32 = 0.03;
/// Tokens that are generated. The emulator takes about 10 ms for a graph of one row.
const TOKENS: usize = 6;

fn tiny(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny").join(name)
}

fn with(model: &Path, devices: &str) -> EngineBuilder {
    let specs = DeviceSpec::list(devices).expect("devices");
    let builder = Engine::builder().model(model).activations(Activations::F32);
    builder.devices(specs).wait_for_graphs(true)
}

/// Log-probabilities of a prompt's tokens after the first.
async fn scores(engine: &Engine, length: usize) -> Vec<f32> {
    engine.score(prompt(length), 1).await.expect("scores")
}

/// The likeliest tokens after a prompt, each with its log-probability and that of the next one.
async fn greedy(engine: &Engine) -> Vec<Token> {
    let request = Request::new(Prompt::Ids(prompt(33))).greedy().ignore_eos();
    let request = request.max_tokens(TOKENS).top_logprobs(2);
    let mut stream = engine.generate(request).await.expect("a stream");
    let mut tokens = Vec::new();
    while let Some(token) = stream.next().await {
        tokens.push(token.expect("a token"));
    }
    tokens
}

/// Checks that tokens are the same, up to one that is as likely as another.
fn assert_same(got: &[Token], wanted: &[Token], what: &str) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        let margin = wanted.top_logprobs[0].logprob - wanted.top_logprobs[1].logprob;
        if got.id != wanted.id {
            assert!(margin <= 2.0 * TOLERANCE, "{what}: token {at} with a margin of {margin}");
            return;
        }
    }
}

#[tokio::test]
async fn probabilities_are_those_of_the_cpu_with_graphs_of_qnn() {
    needs_driver!(has_qnn);
    for name in ["llama.gguf", "qwen3.gguf", "gemma3.gguf"] {
        let model = tiny(name);
        let cpu = with(&model, "cpu").build().await.expect("an engine");
        let (tokens, mut wanted) = (greedy(&cpu).await, Vec::new());
        for length in [2, 31, 32, 33, 100] {
            wanted.push((length, scores(&cpu, length).await));
        }
        for strategy in ["chunk-graph", "tensor-level"] {
            let what = format!("{name}, {strategy}");
            let builder = with(&model, "cpu+npu=qnn").strategy(strategy);
            let engine = builder.build().await.unwrap_or_else(|error| panic!("{what}: {error}"));
            let mut parts = engine.placement().stages.iter().flat_map(|stage| &stage.parts);
            // The emulator is slow, so that a strategy that predicts times may leave it out.
            let is_used = parts.any(|part| part.device == "npu");
            assert!(is_used || strategy != "chunk-graph", "{what}: nothing on the NPU");
            for (length, wanted) in &wanted {
                let got = scores(&engine, *length).await;
                assert_eq!(got.len(), wanted.len(), "{what}");
                for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
                    let difference = (got - wanted).abs();
                    assert!(
                        difference <= TOLERANCE,
                        "{what}, {length}: {got} for {wanted} at {at}"
                    );
                }
            }
            assert_same(&greedy(&engine).await, &tokens, &what);
            assert_eq!(engine.slots().in_use, 0, "{what} keeps slots");
            engine.shutdown(Shutdown::Drain).await.expect("an end");
        }
    }
}

/// Every character of ASCII that is printed, in several orders.
fn text() -> String {
    let all: Vec<char> = (' '..='~').collect();
    (1..8).flat_map(|step| all.iter().cycle().step_by(step).take(95)).collect()
}

/// Ranges twice as wide as the measured ones, since a prompt has other tokens than the text.
fn wide(measured: &ActivationRanges) -> ActivationRanges {
    let twice = |(matrix, range): (&str, &ActivationRange)| {
        let most: Vec<f32> = range.channels().iter().map(|most| most * 2.0).collect();
        let mut wide = ActivationRange::new(most.len());
        assert!(wide.add(&most) && wide.add_output([range.largest_output() * 2.0]));
        (matrix.to_owned(), wide)
    };
    ActivationRanges::new(measured.products().map(twice).collect(), measured.rows())
}

/// The tolerances are the loss of activations in integers, and in blocks that of the weights.
#[tokio::test]
async fn probabilities_are_near_those_of_floats_with_products_of_integers() {
    needs_driver!(has_qnn);
    for (name, keys, floats, tolerance) in [
        ("llama.gguf", "activations=u16,weights=int8", "cpu+npu=qnn:weights=int8", 0.03),
        ("qwen2.gguf", "activations=u16,weights=int8", "cpu+npu=qnn:weights=int8", 0.03),
        ("gemma2.gguf", "activations=u16,weights=int4:16", "cpu", 1.5),
        ("llama.gguf", "activations=u8,weights=int8", "cpu+npu=qnn:weights=int8", 1.2),
    ] {
        let what = format!("{name}, {keys}");
        let model = tiny(name);
        let options = RangeOptions { window: 64, ..RangeOptions::of_text(text()) };
        let measured = with(&model, "cpu")
            .context(64)
            .measure_ranges_blocking(&options, &mut |_| ControlFlow::Continue(()));
        let ranges = wide(&measured.expect("ranges").ranges);
        let floats = if floats == "cpu" {
            with(&model, floats)
        } else {
            with(&model, floats).strategy("chunk-graph")
        };
        let floats = floats.build().await.expect("an engine");
        let builder = with(&model, &format!("cpu+npu=qnn:{keys}")).strategy("chunk-graph");
        let engine = builder.ranges(ranges).build().await.unwrap_or_else(|e| panic!("{what}: {e}"));
        let stated =
            keys.replace("activations=", "activations in ").replace("weights=", " weights in ");
        let mut parts = engine.placement().stages.iter().flat_map(|stage| &stage.parts);
        assert!(parts.any(|part| part.device == "npu" && part.kernels.contains(&stated)), "{what}");
        let (got, wanted) = (scores(&engine, 33).await, scores(&floats, 33).await);
        let differences = got.iter().zip(&wanted).map(|(got, wanted)| (got - wanted).abs());
        let most = differences.fold(0.0f32, f32::max);
        assert!(got.len() == wanted.len() && most <= tolerance, "{what}: {most}");
        engine.shutdown(Shutdown::Drain).await.expect("an end");
    }
}

#[tokio::test]
async fn integers_that_do_not_fit_or_have_no_ranges_are_errors_that_say_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    for (keys, says) in [
        ("weights=int4:32", "give activations=u16 or activations=u8, too"),
        ("activations=u16", "give weights=int8, int4 or int4:32, too"),
        ("activations=u8,weights=f16", "give weights=int8, int4 or int4:32, too"),
        ("activations=u16,weights=int8", "`lapwing ranges -m FILE.gguf TEXTFILE`"),
    ] {
        let builder = with(&tiny("llama.gguf"), &format!("cpu+npu=qnn:{keys}"));
        let error = builder.packed_cache(folder.path()).build().await.expect_err(keys);
        assert_eq!(error.kind(), ErrorKind::Config, "{keys}");
        assert!(error.to_string().contains(says), "{keys}: {error}");
    }
    let error = with(&tiny("llama.gguf"), "cpu+npu=qnn:activations=u8,weights=int8").build().await;
    let error = error.expect_err("no folder").to_string();
    assert!(error.contains("is u8,") && error.contains("EngineBuilder::ranges"), "{error}");
}

#[tokio::test]
async fn a_processor_that_qnn_refuses_is_an_error_that_says_what_to_do() {
    needs_driver!(has_qnn);
    let error = with(&tiny("llama.gguf"), "cpu+npu=qnn:soc=9999").build().await;
    let error = error.expect_err("no such processor");
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = error.to_string();
    assert!(text.contains("soc=9999, arch=75") && text.contains("code 14001"), "{text}");
}

#[tokio::test]
async fn a_library_that_is_not_there_is_an_error_and_no_other_device_computes() {
    let error = with(&tiny("llama.gguf"), "cpu+npu=qnn:library=/nowhere").build().await;
    let error = error.expect_err("no such library");
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = error.to_string();
    assert!(text.contains("/nowhere") && text.contains("onnxruntime-qnn"), "{text}");
}

#[test]
fn qnn_devices_are_read_and_written_as_text() {
    for text in [
        "npu=qnn",
        "npu=qnn:soc=43,arch=73,weights=int8",
        "n=qnn:library=/a b/c,budget=1GiB",
        "npu=qnn:activations=u16,weights=int4:64",
        "npu=qnn:weights=int8,activations=u8",
    ] {
        let spec: DeviceSpec = text.parse().expect(text);
        let again: DeviceSpec = spec.to_string().parse().expect("its own text");
        assert_eq!((spec.is_static(), &again), (true, &spec), "{text}");
    }
    let spec: DeviceSpec = "npu=qnn".parse().expect("a device");
    assert_eq!(spec, DeviceSpec::qnn("npu", QnnSettings::default()));
}
