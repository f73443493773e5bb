//! Embeddings of an encoder as BERT: against hidden states in double precision, for all chunks, batches and
//! strategies; what such a model refuses; and files that are incomplete.

use std::collections::BTreeSet;
use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::plan::strategies;
use lapwing::{
    Activations, Architecture, EmbedRequest, Engine, EngineBuilder, ErrorKind, KvDtype, Mask,
    Pooling, Request, RunError,
};

use lapwing_kernels::model::supported;
use serde_json::Value;

use crate::a_strategy_changes_a_token::{GPU, NPU};
use crate::encoder::{CONTEXT, Encoder, WIDTH};
use crate::support::{ids as stated, number, reference};

fn builder(folder: &Path) -> EngineBuilder {
    let path = Encoder::new().file(&folder.join("bert.gguf"), false);
    Engine::builder().model(path).threads(2)
}

/// Token ids of a text of that length, different for each seed.
fn ids(seed: usize, count: usize) -> Vec<u32> {
    (0..count).map(|at| 1 + ((at * at + 7 * at + seed * 5) % 15) as u32).collect()
}

#[tokio::test]
async fn hidden_states_are_those_of_the_formulas() {
    let folder = tempfile::tempdir().expect("a folder");
    let exact = builder(folder.path()).activations(Activations::F32).kv(KvDtype::F32);
    let engine = exact.build().await.expect("an engine");
    for count in [1, 2, 3, 15, 16, 17, 31, 33, CONTEXT] {
        let ids = ids(count, count);
        let wanted = Encoder::new().hidden(&ids);
        let request = EmbedRequest::ids(&ids[..]).pooling(Pooling::None);
        let found = engine.embed(request).await.expect("it embeds");
        assert_eq!((found.width, found.tokens), (WIDTH, count));
        for (at, (found, wanted)) in found.vectors().zip(&wanted).enumerate() {
            let pairs = found.iter().zip(wanted);
            let most = pairs.map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(most < 2e-5, "row {at} of {count}: {most}");
        }
        for (pooling, row) in [(Pooling::Cls, 0), (Pooling::Last, count - 1)] {
            let request = EmbedRequest::ids(&ids[..]).pooling(pooling);
            let found = engine.embed(request).await.expect("it embeds");
            let pairs = found.values.iter().zip(&wanted[row]);
            let most = pairs.map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(found.values.len() == WIDTH && most < 2e-5, "{pooling:?} of {count}: {most}");
        }
    }
}

/// Most of the distance of two rows.
fn distance(found: &[f32], wanted: &Value) -> f64 {
    let wanted = wanted.as_array().expect("a row");
    assert_eq!(found.len(), wanted.len());
    let pairs = found.iter().zip(wanted);
    pairs.map(|(a, b)| (f64::from(*a) - number(b)).abs()).fold(0.0, f64::max)
}

/// `encoder_exact.py` has the formulas in double precision, and llama.cpp agrees with it.
#[tokio::test]
async fn every_architecture_has_the_hidden_states_of_its_formulas() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/encoders");
    let mut architectures = BTreeSet::new();
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        if !name.ends_with(".json") {
            continue;
        }
        let reference = reference(&format!("encoders/{name}"));
        let path = folder.join(reference["file"].as_str().expect("a file"));
        let exact = Engine::builder().model(path).threads(2).activations(Activations::F32);
        let engine = exact.kv(KvDtype::F32).build().await.expect("an engine");
        architectures.insert(engine.model().arch.name());
        let ids = stated(&reference["ids"]);
        let text = |pooling, count: usize| EmbedRequest::ids(&ids[..count]).pooling(pooling);
        let found = engine.embed(text(Pooling::None, ids.len())).await.expect("it embeds");
        let wanted = reference["hidden"].as_array().expect("rows");
        assert_eq!(found.vectors().len(), wanted.len(), "{name}");
        for (at, (found, wanted)) in found.vectors().zip(wanted).enumerate() {
            let most = distance(found, wanted);
            assert!(most < 1e-4, "{name}, row {at}: {most}");
        }
        // Texts that are computed together do not see each other.
        let texts = [3, 40, 17].map(|count| text(Pooling::None, count));
        let together = engine.embed_batch(texts.clone()).await.expect("they embed");
        assert_eq!(together[1].values, found.values, "{name}");
        for (text, together) in texts.into_iter().zip(together) {
            assert_eq!(engine.embed(text).await.expect("it embeds").values, together.values);
        }
        if !reference["pooled"].is_null() {
            let found = engine.embed(text(Pooling::Mean, ids.len())).await.expect("it embeds");
            let most = distance(&found.values, &reference["pooled"]);
            assert!(most < 1e-4 && found.width == engine.embedding_width(), "{name}: {most}");
        }
    }
    let encoders = supported().into_iter().filter(|name| {
        Architecture::by_name(name).is_some_and(|architecture| architecture.is_encoder())
    });
    let missing: Vec<&str> = encoders.filter(|name| !architectures.contains(name)).collect();
    assert!(missing.is_empty(), "no model of {missing:?}");
}

#[tokio::test]
async fn chunks_batches_and_repetitions_change_no_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    // The same first tokens, so that a prefix would be found.
    let texts: Vec<Vec<u32>> = [40, 1, 7, 33, 2, 33, 40].map(|count| ids(3, count)).to_vec();
    let mut alone = Vec::new();
    let engine = builder(folder.path()).build().await.expect("an engine");
    for ids in texts.iter().chain(&texts) {
        let found = engine.embed(ids.clone()).await.expect("it embeds");
        assert_eq!(found.times.cached_tokens, 0, "no prefix is shared");
        alone.push(found.values);
    }
    let alone = alone.split_off(texts.len());
    for (chunk_rows, sequences) in [(1, 1), (7, 3), (64, 16), (512, 16)] {
        let builder = builder(folder.path()).chunk_rows(chunk_rows).sequences_max(sequences);
        let engine = builder.build().await.expect("an engine");
        let batch = engine.embed_batch(texts.clone()).await.expect("it embeds");
        let batch: Vec<Vec<f32>> = batch.into_iter().map(|found| found.values).collect();
        assert!(batch == alone, "chunks of {chunk_rows}, {sequences} sequences");
        assert_eq!((engine.requests(), engine.slots().in_use), (0, 0));
    }
}

#[tokio::test]
async fn every_strategy_gives_the_same_embedding_or_names_the_op_that_a_device_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts = || [ids(1, 40), ids(2, 3)];
    let engine = builder(folder.path()).build().await.expect("an engine");
    let wanted = engine.embed_batch(texts()).await.expect("it embeds");
    let mut computed = 0;
    for known in strategies() {
        let devices = DeviceSpec::list(&format!("cpu+{GPU}+{NPU}")).expect("devices");
        let builder = builder(folder.path()).devices(devices).wait_for_graphs(true);
        let engine = builder.strategy(known.name());
        let engine = match engine.build().await {
            Ok(engine) => engine,
            Err(error) => {
                let lacks = error.to_string().contains("it has no kernel for");
                assert!(error.plan_error().is_some() && lacks, "{}: {error}", known.name());
                continue;
            }
        };
        computed += 1;
        let found = engine.embed_batch(texts()).await;
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", known.name()));
        let same = found.iter().zip(&wanted).all(|(found, wanted)| found.values == wanted.values);
        assert!(same, "{}", known.name());
    }
    assert!(computed > 0, "no strategy has a route");
}

#[tokio::test]
async fn tokens_and_scores_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = builder(folder.path()).build().await.expect("an engine");
    let generated = engine.generate(Request::text("a boat")).await.expect_err("no tokens");
    let chat = engine.generate(Request::ask("a boat?")).await.expect_err("no tokens");
    let scored = engine.score(vec![2, 4, 3], 1).await.expect_err("no scores");
    for error in [generated, chat, scored] {
        assert_eq!(error.run_error(), Some(&RunError::Encoder));
        assert_eq!(error.kind(), ErrorKind::Request);
        assert!(error.to_string().contains("an encoder: it makes embeddings only"), "{error}");
    }
    let masked = builder(folder.path()).attention(Mask::Window(4)).build().await;
    let error = masked.expect_err("the mask is the model's").to_string();
    assert!(error.contains("for causal models only"), "{error}");
    let drafts = lapwing::draft::DraftChoice::model("other.gguf");
    let error = builder(folder.path()).draft(drafts).build().await.expect_err("nothing to draft");
    assert!(error.to_string().contains("none with an encoder"), "{error}");
    let kept = builder(folder.path()).keep_prefixes(folder.path().join("kept"));
    let kept = kept.build().await.expect("an engine");
    assert!(kept.notes().iter().any(|note| note.contains("encoder")), "{:?}", kept.notes());
}

#[tokio::test]
async fn a_text_has_its_ends_and_at_most_the_context() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = builder(folder.path()).build().await.expect("an engine");
    assert_eq!(engine.embed("").await.expect("its ends").tokens, 2);
    let text = engine.embed("A small boat").await.expect("it embeds");
    let same = engine.embed(vec![2, 4, 5, 7, 3]).await.expect("it embeds");
    assert_eq!((text.tokens, text.values), (5, same.values));
    assert_eq!(engine.embed("boat ".repeat(CONTEXT - 2)).await.expect("it fits").tokens, CONTEXT);
    for text in ["boat ".repeat(CONTEXT - 1), "boat ".repeat(100_000)] {
        let error = engine.embed(text).await.expect_err("it is too long");
        assert!(error.is_prompt_too_long() && error.kind() == ErrorKind::Request, "{error}");
    }
    let small = builder(folder.path()).cache_tokens(32).build().await.expect("an engine");
    let error = small.embed(ids(1, 40)).await.expect_err("no room for its keys");
    assert!(matches!(error.run_error(), Some(RunError::OutOfKvPages { .. })), "{error}");
}

#[tokio::test]
async fn an_incomplete_file_names_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged.gguf");
    let open = |path: &Path| {
        let built = Engine::builder().model(path).threads(1).build_blocking();
        built.expect_err("the file is damaged").to_string()
    };
    let names: Vec<String> = Encoder::new().tensors.into_keys().collect();
    for name in names.iter().filter(|name| *name != "token_types.weight") {
        let mut encoder = Encoder::new();
        encoder.tensors.remove(name);
        let error = open(&encoder.file(&path, false));
        assert!(error.contains(name) && error.contains("missing"), "{name}: {error}");
    }
    let mut short = Encoder::new();
    let (rows, _, values) = short.tensors.get_mut("position_embd.weight").expect("a table");
    *rows -= 1;
    values.truncate(*rows * WIDTH);
    let error = open(&short.file(&path, false));
    assert!(error.contains("position_embd.weight") && error.contains("[40, 24]"), "{error}");
    let error = open(&Encoder::new().file(&path, true));
    assert!(error.contains("bert.attention.causal"), "{error}");
}
