//! Scores of documents: against the formulas, for texts of both kinds of rerankers, for all batches; and what is no reranker.

use std::path::{Path, PathBuf};

use lapwing::error::RerankError;
use lapwing::tokenizer::Special;
use lapwing::{
    Activations, EmbedRequest, Engine, EngineBuilder, ErrorKind, KvDtype, Pooling, RerankRequest,
};
use lapwing_kernels::cpu::HeadWeights;
use lapwing_kernels::formats::DType;
use lapwing_kernels::model::{HeadInput, Model};
use lapwing_kernels::reference::dequantize;
use lapwing_kernels::weights::{GgufWriter, MetaValue, WeightFile};

use crate::encoder::{CONTEXT, Encoder};
use crate::support::{ids, number, reference};

const TEMPLATE: &str = "tokenizer.chat_template.rerank";

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/encoders").join(name)
}

fn exact(path: PathBuf) -> EngineBuilder {
    let engine = Engine::builder().model(path).threads(2);
    engine.activations(Activations::F32).kv(KvDtype::F32)
}

/// A file with more keys, or other values of its keys.
fn with_keys(path: &Path, folder: &Path, keys: &[(&str, MetaValue)]) -> PathBuf {
    let file = WeightFile::open(path).expect("a file");
    let mut writer = GgufWriter::new();
    for (key, value) in file.metadata().iter().filter(|(key, _)| keys.iter().all(|k| k.0 != *key)) {
        writer.meta_of(key, value);
    }
    for (key, value) in keys {
        writer.meta(key, value.clone());
    }
    for info in file.tensors() {
        let tensor = file.tensor(&info.name).expect("a tensor");
        let shape = match tensor.shape().rows() {
            1 => vec![tensor.shape().cols()],
            rows => vec![tensor.shape().cols(), rows],
        };
        writer.tensor(&info.name, &shape, DType::F32, tensor.read().expect("its data"));
    }
    let mut bytes = Vec::new();
    writer.write_to(&mut bytes).expect("a file");
    let changed = folder.join("changed.gguf");
    std::fs::write(&changed, bytes).expect("it is written");
    changed
}

/// Ids of a query, a document and the pair of both for the tiny encoder.
const PAIRS: [(&str, &str, &[u32]); 3] = [
    ("a boat", "A small ship", &[2, 4, 7, 3, 4, 5, 8, 3]),
    ("a boat", "rice", &[2, 4, 7, 3, 10, 3]),
    ("a boat", "a bowl of red rice", &[2, 4, 7, 3, 4, 12, 11, 14, 10, 3]),
];

#[tokio::test]
async fn scores_of_an_encoder_are_those_of_the_formulas() {
    let folder = tempfile::tempdir().expect("a folder");
    let encoder = Encoder::ranking();
    let path = encoder.file(&folder.path().join("bert.gguf"), false);
    let engine = exact(path).build().await.expect("an engine");
    assert!(engine.is_reranker());
    let request = RerankRequest::new(PAIRS[0].0, PAIRS.map(|pair| pair.1));
    let ranking = engine.rerank(request).await.expect("a ranking");
    let mut seen: Vec<usize> = ranking.documents.iter().map(|found| found.index).collect();
    for found in &ranking.documents {
        let ids = PAIRS[found.index].2;
        let wanted = encoder.score(ids);
        assert!((f64::from(found.score) - wanted).abs() < 2e-5, "{found:?}: {wanted}");
        assert_eq!((&found.outputs[..], found.tokens), (&[found.score][..], ids.len()));
    }
    let scores: Vec<f32> = ranking.documents.iter().map(|found| found.score).collect();
    assert!(scores.is_sorted_by(|a, b| a > b), "{scores:?}");
    assert_eq!(ranking.tokens, PAIRS.iter().map(|pair| pair.2.len()).sum::<usize>());
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2]);
}

/// The types of tokens tell the parts apart, so the same tokens score otherwise without the first separator's effect.
#[tokio::test]
async fn tokens_of_the_document_have_another_type() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut encoder = Encoder::ranking();
    let path = encoder.file(&folder.path().join("bert.gguf"), false);
    let score = |path: PathBuf| async move {
        let engine = exact(path).build().await.expect("an engine");
        let ranking = engine.rerank(RerankRequest::new("a boat", ["rice"])).await;
        ranking.expect("a ranking").documents[0].score
    };
    let typed = score(path).await;
    let types = encoder.tensors.get_mut("token_types.weight").expect("types");
    let width = types.1;
    types.2.copy_within(0..width, width);
    let untyped = score(encoder.file(&folder.path().join("other.gguf"), false)).await;
    assert!((typed - untyped).abs() > 1e-3, "{typed} {untyped}");
}

#[tokio::test]
async fn scores_of_a_decoder_are_probabilities_of_its_composed_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = (TEMPLATE, MetaValue::from("<s>find {query} in {document}: {document}</s>"));
    let path = with_keys(&stored("qwen3-rank.gguf"), folder.path(), &[key]);
    let file = WeightFile::open(&path).expect("a file");
    let head = file.tensor("cls.output.weight").expect("a head").read().expect("its data");
    let head = dequantize(DType::F32, &head);
    let engine = exact(path).build().await.expect("an engine");
    let documents = ["the", "a {query}", "b"];
    let ranking = engine.rerank(RerankRequest::new("abc", documents)).await.expect("a ranking");
    for found in &ranking.documents {
        let document = documents[found.index];
        let text = format!("<s>find abc in {document}: {document}</s>");
        let ids = engine.tokenizer().encode(&text, Special::Parse, false);
        assert_eq!((ids[0], ids.last(), ids.len()), (1, Some(&2), found.tokens));
        let hidden = EmbedRequest::ids(ids).pooling(Pooling::Last);
        let hidden = engine.embed(hidden).await.expect("hidden states").values;
        let logit = |row: &[f32]| -> f64 {
            row.iter().zip(&hidden).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum()
        };
        let logits: Vec<f64> = head.chunks(hidden.len()).map(logit).collect();
        let wanted = 1.0 / (1.0 + (logits[1] - logits[0]).exp());
        assert!((f64::from(found.score) - wanted).abs() < 1e-5, "{found:?}: {wanted}");
        assert!((found.outputs[0] + found.outputs[1] - 1.0).abs() < 1e-6, "{found:?}");
    }
    // What looks like a control token in a text is text.
    let told = engine.rerank(RerankRequest::new("abc", ["</s>", "x"])).await.expect("a ranking");
    let tokens = |index| told.documents.iter().find(|found| found.index == index).map(|f| f.tokens);
    assert!(tokens(0) > tokens(1), "{told:?}");
}

#[tokio::test]
async fn a_pair_without_a_template_has_the_ends_of_the_file() {
    let engine = exact(stored("qwen3-rank.gguf")).build().await.expect("an engine");
    let encode = |text: &str| engine.tokenizer().encode(text, Special::Plain, false);
    let ids = [&[1][..], &encode("ab"), &[2], &encode("the"), &[2]].concat();
    assert_eq!(engine.tokenizer().encode_pair("ab", "the"), Some(ids.clone()));
    let ranking = engine.rerank(RerankRequest::new("ab", ["the"])).await.expect("a ranking");
    assert_eq!(ranking.tokens, ids.len());
    let folder = tempfile::tempdir().expect("a folder");
    let without = ("tokenizer.ggml.add_eos_token", MetaValue::from(false));
    let path = with_keys(&stored("qwen3-rank.gguf"), folder.path(), &[without]);
    let engine = exact(path).build().await.expect("an engine");
    let error = engine.rerank(RerankRequest::new("ab", ["the"])).await.expect_err("no separator");
    assert!(matches!(error.rerank_error(), Some(RerankError::NoPairs { .. })), "{error}");
}

/// `encoder_exact.py` has the formulas, and llama.cpp agrees with it.
#[tokio::test]
async fn scores_of_token_ids_are_those_of_the_reference() {
    for name in ["bert-rank", "qwen3-rank", "modern-bert-rank", "jina-bert-v2-joined"] {
        let reference = reference(&format!("encoders/{name}.json"));
        let file = WeightFile::open(&stored(&format!("{name}.gguf"))).expect("a file");
        let model = Model::from_weights(&file).expect("a model");
        let head = model.rank.expect("a head");
        let pooling = match head.input {
            HeadInput::First => Pooling::Cls,
            HeadInput::Mean => Pooling::Mean,
            HeadInput::Last => Pooling::Last,
        };
        let head = HeadWeights::read(&head, &file).expect("its weights");
        let engine = exact(stored(&format!("{name}.gguf"))).build().await.expect("an engine");
        let request = EmbedRequest::ids(ids(&reference["ids"])).pooling(pooling);
        let found = head.apply(&engine.embed(request).await.expect("hidden states").values);
        let wanted = reference["scores"].as_array().expect("scores");
        assert_eq!(found.len(), wanted.len(), "{name}");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((f64::from(*found) - number(wanted)).abs() < 1e-4, "{name}: {found} {wanted}");
        }
    }
}

#[tokio::test]
async fn batches_change_no_bit_of_a_score() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = Encoder::ranking().file(&folder.path().join("bert.gguf"), false);
    let words = ["a", "small", "boat", "rice", "of", "red", "ships", "bowl"];
    let document = |at: usize| words.iter().cycle().skip(at).step_by(3).take(1 + at % 11);
    let documents = (0..40).map(|at| document(at).copied().collect::<Vec<_>>().join(" "));
    let mut documents: Vec<String> = documents.collect();
    documents[39] = documents[5].clone();
    let request = || RerankRequest::new("a blue ship", documents.clone());
    let mut rankings = Vec::new();
    for (chunk_rows, sequences) in [(1, 1), (64, 3), (512, 16)] {
        let engine = Engine::builder().model(&path).threads(2);
        let engine = engine.chunk_rows(chunk_rows).sequences_max(sequences);
        let engine = engine.build().await.expect("an engine");
        rankings.push(engine.rerank(request()).await.expect("a ranking"));
        assert_eq!((engine.requests(), engine.slots().in_use), (0, 0));
    }
    assert!(rankings.iter().all(|ranking| *ranking == rankings[0]));
    // Equal documents keep the order of the request.
    let equal = rankings[0].documents.windows(2).filter(|two| two[0].score == two[1].score);
    assert!(equal.clone().count() > 0 && equal.clone().all(|two| two[0].index < two[1].index));
}

#[tokio::test]
async fn what_cannot_be_ranked_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = Encoder::new().file(&folder.path().join("plain.gguf"), false);
    let engine = exact(plain).build().await.expect("an engine");
    assert!(!engine.is_reranker());
    let error = engine.rerank(RerankRequest::new("a", ["b"])).await.expect_err("no head");
    assert!(matches!(error.rerank_error(), Some(RerankError::NoHead { .. })), "{error}");
    assert_eq!(error.kind(), ErrorKind::Request);
    let path = Encoder::ranking().file(&folder.path().join("bert.gguf"), false);
    let engine = exact(path).build().await.expect("an engine");
    let none = engine.rerank(RerankRequest::new("a", Vec::<String>::new())).await;
    assert_eq!(none.expect("nothing to do").documents, []);
    for document in ["boat ".repeat(CONTEXT), "boat ".repeat(100_000)] {
        let error = engine.rerank(RerankRequest::new("a", [document])).await.expect_err("too long");
        assert!(error.is_prompt_too_long(), "{error}");
    }
    let error = exact(stored("bert-rank.gguf")).build().await.expect("an engine").embed("a").await;
    let error = error.expect_err("a reranker makes scores").to_string();
    assert!(error.contains("pooling type 4") && error.contains("Engine::rerank"), "{error}");
}

#[tokio::test]
async fn a_head_that_does_not_fit_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged.gguf");
    let refused = |path: PathBuf| {
        let built = Engine::builder().model(path).threads(1).build_blocking();
        let error = built.expect_err("the file is damaged");
        assert_eq!(error.kind(), ErrorKind::Model, "{error}");
        error.to_string()
    };
    let mut narrow = Encoder::ranking();
    let head = narrow.tensors.get_mut("cls.output.weight").expect("a head");
    head.1 -= 1;
    head.2.pop();
    let error = refused(narrow.file(&path, false));
    assert!(error.contains("cls.output.weight") && error.contains("[1, 24]"), "{error}");
    let labels = MetaValue::from(vec!["yes".to_owned(), "no".to_owned(), "perhaps".to_owned()]);
    let labels = ("qwen3.classifier.output_labels", labels);
    let error = refused(with_keys(&stored("qwen3-rank.gguf"), folder.path(), &[labels]));
    assert!(error.contains("output_labels") && error.contains("2 outputs"), "{error}");
    let template = (TEMPLATE, MetaValue::from("only {query}"));
    let error = refused(with_keys(&stored("qwen3-rank.gguf"), folder.path(), &[template]));
    assert!(error.contains(TEMPLATE) && error.contains("{document}"), "{error}");
}
