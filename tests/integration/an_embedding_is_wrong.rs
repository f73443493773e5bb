//! Embeddings against hidden states that follow from logits in double precision, and against each other
//! for all chunks, batches, strategies and devices.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing::devices::DeviceSpec;
use lapwing::plan::strategies;
use lapwing::{
    Activations, EmbedRequest, Embedding, Engine, EngineBuilder, ErrorKind, KvDtype, ModelConfig,
    Pooling, Prompt, RunError, Shutdown,
};
use lapwing_kernels::reference::dequantize;
use lapwing_kernels::weights::WeightFile;

use crate::a_strategy_changes_a_token::{CONTEXT, GPU, NPU, long_model, prompt};
use crate::support::{collect_ids, greedy, ids, number, reference};

fn tiny(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny").join(name)
}

fn builder() -> EngineBuilder {
    Engine::builder().model(tiny("llama.gguf")).threads(2)
}

fn each_token(ids: &[u32]) -> EmbedRequest {
    EmbedRequest::ids(ids).pooling(Pooling::None)
}

/// Logits of one row of hidden states, in double precision.
fn logits(hidden: &[f32], head: &[f32], model: &ModelConfig) -> Vec<f64> {
    let dot = |row: &[f32]| -> f64 {
        let products = row.iter().zip(hidden).map(|(w, x)| f64::from(*w) * f64::from(*x));
        f64::from(model.logit_scale) * products.sum::<f64>()
    };
    let capped = |logit: f64| match model.logit_cap {
        Some(cap) => f64::from(cap) * (logit / f64::from(cap)).tanh(),
        None => logit,
    };
    head.chunks_exact(hidden.len()).map(|row| capped(dot(row))).collect()
}

/// A model's logits are its output matrix times the hidden states, and the matrix has full rank: equal
/// logits mean equal hidden states. The logits of `tiny_exact.py` come from the formulas alone.
#[tokio::test]
async fn every_architecture_and_format_gives_the_hidden_states_of_the_exact_logits() {
    let mut models = 0;
    for entry in std::fs::read_dir(tiny("")).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        if !name.ends_with(".json") {
            continue;
        }
        let reference = reference(&format!("tiny/{name}"));
        // Other models have llama.cpp's numbers only, which are rounded elsewhere.
        let Some(exact_rows) = reference["exact"].as_array() else { continue };
        let path = tiny(reference["file"].as_str().expect("a file"));
        let file = WeightFile::open(&path).expect("a file");
        let head = file.tensor("output.weight").or_else(|| file.tensor("token_embd.weight"));
        let head = head.expect("an output matrix");
        let head = dequantize(head.dtype(), &head.read().expect("its data"));
        let exact = Engine::builder().model(path).threads(2).chunk_rows(7);
        let exact = exact.activations(Activations::F32).kv(KvDtype::F32);
        let engine = exact.build().await.expect("an engine");
        let embedding = engine.embed(each_token(&ids(&reference["ids"]))).await.expect("it embeds");
        let rows: Vec<&[f32]> = embedding.vectors().collect();
        assert_eq!(rows.len(), 40, "{name}");
        let positions = reference["positions"].as_array().expect("positions").iter();
        for (at, wanted) in positions.zip(exact_rows) {
            let row = rows[number(at) as usize];
            let found = logits(row, &head, engine.model());
            let wanted = wanted.as_array().expect("a row").iter().map(number);
            let pairs = found.iter().zip(wanted);
            let most = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(most < 2e-3, "{name} at {at}: {most}");
        }
        models += 1;
    }
    assert!(models >= 21, "only {models} models");
}

#[tokio::test]
async fn each_pooling_is_that_of_the_tokens_vectors() {
    let engine = builder().chunk_rows(8).build().await.expect("an engine");
    let ids = prompt(40);
    let all = engine.embed(each_token(&ids)).await.expect("it embeds");
    let rows: Vec<&[f32]> = all.vectors().collect();
    assert_eq!((rows.len(), all.width, all.tokens), (40, engine.model().width, 40));
    let mean = |column: usize| {
        let sum: f64 = rows.iter().map(|row| f64::from(row[column])).sum();
        (sum / 40.0) as f32
    };
    for (pooling, wanted) in [
        (Pooling::Mean, (0..all.width).map(mean).collect()),
        (Pooling::Cls, rows[0].to_vec()),
        (Pooling::Last, rows[39].to_vec()),
    ] {
        let request = EmbedRequest::ids(&ids[..]).pooling(pooling);
        let found = engine.embed(request.clone()).await.expect("it embeds");
        assert_eq!((&found.values, found.pooling), (&wanted, pooling));
        assert_eq!(found.vectors().len(), 1);
        let unit = engine.embed(request.normalized()).await.expect("it embeds");
        let length: f64 = unit.values.iter().map(|x| f64::from(*x).powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-6, "{pooling:?}: {length}");
        let same = unit.cosine(&found).expect("as many values");
        assert!((same - 1.0).abs() < 1e-6, "{pooling:?}: {same}");
        assert_eq!(unit.cosine(&all), None, "40 vectors have no angle with one");
    }
}

#[tokio::test]
async fn chunks_batches_and_other_requests_change_no_bit() {
    let engine = builder().build().await.expect("an engine");
    let texts: Vec<Vec<u32>> = [40, 1, 7, 90, 33, 2, 64].map(prompt).to_vec();
    let mut alone = Vec::new();
    for ids in &texts {
        alone.push(engine.embed(ids.clone()).await.expect("it embeds").values);
    }
    let tokens = collect_ids(engine.generate(greedy("ab", 8)).await.expect("a stream")).await;
    for (chunk_rows, sequences_max) in [(1, 1), (7, 3), (64, 16)] {
        let builder = builder().chunk_rows(chunk_rows).sequences_max(sequences_max);
        let engine = builder.build().await.expect("an engine");
        let generated = engine.generate(greedy("ab", 8)).await.expect("a stream");
        let scored = engine.score(prompt(20), 1);
        let batch = engine.embed_batch(texts.clone());
        let (batch, scored, generated) = tokio::join!(batch, scored, collect_ids(generated));
        let batch: Vec<Vec<f32>> =
            batch.expect("it embeds").into_iter().map(|e| e.values).collect();
        assert!(batch == alone, "chunks of {chunk_rows}, {sequences_max} sequences");
        assert_eq!((scored.expect("scores").len(), &generated), (19, &tokens));
        assert_eq!((engine.requests(), engine.slots().in_use), (0, 0));
    }
}

#[tokio::test]
async fn every_strategy_gives_the_same_embedding_on_all_devices() {
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let with = |devices: &str| {
        let devices = DeviceSpec::list(devices).expect("devices");
        Engine::builder().model(&model).context(CONTEXT).devices(devices).wait_for_graphs(true)
    };
    let lengths = [1, 31, 135, 600];
    let all = |engine: Engine| async move {
        // Routes of the same chunk shapes, with logits.
        for length in lengths {
            engine.score(prompt(length), length - 1).await.expect("scores");
        }
        let mut found = Vec::new();
        for pooling in [Pooling::None, Pooling::Last] {
            let requests = lengths.map(|n| EmbedRequest::ids(prompt(n)).pooling(pooling));
            found.extend(engine.embed_batch(requests).await.expect("they embed"));
        }
        assert_eq!(engine.slots().in_use, 0, "slots are kept");
        engine.shutdown(Shutdown::Drain).await.expect("an end");
        found.into_iter().map(|e: Embedding| e.values).collect::<Vec<_>>()
    };
    let wanted = all(with("cpu").build().await.expect("an engine")).await;
    for known in strategies() {
        let devices = format!("cpu+{GPU}+{NPU}");
        let engine = with(&devices).strategy(known.name()).build().await.expect("an engine");
        assert!(all(engine).await == wanted, "{}", known.name());
    }
}

#[tokio::test]
async fn a_dropped_embedding_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    // The cache holds one text of the whole context.
    let engine = Engine::builder().model(model).threads(1).context(CONTEXT).chunk_rows(16);
    let engine = engine.cache_tokens(CONTEXT).build().await.expect("an engine");
    for micros in 0..40 {
        let all = engine.embed_batch([prompt(CONTEXT), prompt(50), prompt(300)]);
        let cut = tokio::time::timeout(Duration::from_micros(micros * 50), all).await;
        drop(cut);
    }
    let whole = engine.embed(prompt(CONTEXT)).await.expect("the whole cache is free");
    assert_eq!(whole.tokens, CONTEXT);
    while engine.requests() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(engine.slots().in_use, 0);
}

#[tokio::test]
async fn an_empty_or_too_long_text_is_refused() {
    let engine = builder().context(64).build().await.expect("an engine");
    let empty = engine.embed(Vec::new()).await.expect_err("no tokens");
    assert_eq!(empty.run_error(), Some(&RunError::EmptyPrompt));
    assert_eq!(engine.embed(prompt(64)).await.expect("it fits").tokens, 64);
    for request in [EmbedRequest::ids(prompt(65)), EmbedRequest::text("ab ".repeat(100_000))] {
        let error = engine.embed(request).await.expect_err("too long");
        assert!(error.is_prompt_too_long() && error.kind() == ErrorKind::Request, "{error}");
        assert!(error.to_string().contains("the context holds 64"), "{error}");
    }
    let batch = engine.embed_batch([prompt(3), Vec::new(), prompt(4)]).await;
    assert_eq!(batch.expect_err("one is empty").run_error(), Some(&RunError::EmptyPrompt));
    let outside = engine.embed(vec![1, 1 << 20]).await.expect_err("no such token");
    assert!(matches!(outside.run_error(), Some(RunError::TokenId { .. })), "{outside}");
    assert!(engine.embed_batch(Vec::<String>::new()).await.expect("nothing to do").is_empty());
}

/// The tiny llama model with this pooling type in its metadata.
fn pooled(folder: &Path, number: u32) -> PathBuf {
    let mut bytes = std::fs::read(tiny("llama.gguf")).expect("the tiny model");
    let keys = u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"));
    bytes[16..24].copy_from_slice(&(keys + 2).to_le_bytes());
    let key = |key: &str, kind: u32| {
        let length = (key.len() as u64).to_le_bytes();
        [&length[..], key.as_bytes(), &kind.to_le_bytes()].concat()
    };
    // A number, and a text that keeps the alignment of the data.
    let mut added = [key("llama.pooling_type", 4), number.to_le_bytes().to_vec()].concat();
    added.extend([key("filler", 8), 4_u64.to_le_bytes().to_vec(), b"text".to_vec()].concat());
    assert_eq!(added.len() % 32, 0, "{}", added.len());
    bytes.splice(24..24, added);
    let path = folder.join(format!("pooled-{number}.gguf"));
    std::fs::write(&path, bytes).expect("write");
    path
}

#[tokio::test]
async fn the_file_says_how_texts_are_pooled() {
    let folder = tempfile::tempdir().expect("folder");
    let engine = builder().build().await.expect("an engine");
    assert_eq!(engine.pooling().expect("a default"), Pooling::Mean);
    for (number, pooling) in Pooling::ALL.into_iter().enumerate() {
        let path = pooled(folder.path(), number as u32);
        let of_file = Engine::builder().model(path).build().await.expect("an engine");
        let found = of_file.embed(prompt(9)).await.expect("it embeds");
        assert_eq!(found.pooling, pooling);
        let wanted = engine.embed(EmbedRequest::ids(prompt(9)).pooling(pooling)).await;
        assert_eq!(found.values, wanted.expect("it embeds").values);
    }
    let ranked = Engine::builder().model(pooled(folder.path(), 4)).build().await.expect("it loads");
    let error = ranked.embed("ab").await.expect_err("no such pooling");
    assert!(error.to_string().contains("pooling type 4"), "{error}");
    let chosen = ranked.embed(EmbedRequest::text("ab").pooling(Pooling::Last)).await;
    assert_eq!(chosen.expect("it embeds").pooling, Pooling::Last);
}

#[tokio::test]
async fn control_tokens_in_a_text_are_text() {
    let engine = builder().build().await.expect("an engine");
    let embedding = engine.embed("a</s>b").await.expect("it embeds");
    let read = engine.prompt_ids(&Prompt::Text("a</s>b".to_owned())).expect("ids");
    assert!(embedding.tokens > read.len(), "{} of {}", embedding.tokens, read.len());
}
