//! A model without a tokenizer: a text is token ids.

use std::path::Path;

use lapwing::{Engine, EngineBuilder, ErrorKind, Prompt, Request};
use lapwing_kernels::weights::{GgufWriter, MetaValue, WeightFile};

use crate::support::collect_ids;

/// The tiny model of that name, without its vocabulary.
pub(crate) fn without_vocabulary(name: &str, model: &str) -> (EngineBuilder, tempfile::TempDir) {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny").join(name);
    let file = WeightFile::open(&tiny).expect("a weight file");
    let mut writer = GgufWriter::new();
    let is_kept = |key: &str| !key.starts_with("tokenizer.");
    for (key, value) in file.metadata().iter().filter(|(key, _)| is_kept(key)) {
        writer.meta_of(key, value);
    }
    writer.meta("tokenizer.ggml.model", MetaValue::from(model));
    writer.meta("llama.vocab_size", MetaValue::from(288_u32));
    for info in file.tensors() {
        let bytes = file.tensor(&info.name).expect("a tensor").read().expect("its data");
        writer.tensor(&info.name, info.shape.dims(), info.dtype, bytes);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ids.gguf");
    let mut bytes = Vec::new();
    writer.write_to(&mut bytes).expect("a GGUF file");
    std::fs::write(&path, bytes).expect("written");
    (Engine::builder().model(path).threads(1), folder)
}

#[tokio::test]
async fn its_prompts_and_answers_are_ids() {
    for model in ["none", "no_vocab", "test"] {
        let (builder, _folder) = without_vocabulary("llama.gguf", model);
        let engine = builder.build().await.expect("an engine");
        let request = |prompt: Prompt| Request::new(prompt).greedy().max_tokens(6).ignore_eos();
        let by_ids =
            engine.generate(request(Prompt::Ids(vec![1, 40, 287]))).await.expect("a stream");
        let ids = collect_ids(by_ids).await;
        let text = request(Prompt::Text("1 40\n287".to_owned()));
        let by_text = engine.generate(text.clone()).await.expect("a stream");
        assert_eq!(collect_ids(by_text).await, ids, "{model}");
        let answer =
            engine.generate(text).await.expect("a stream").into_text().await.expect("an answer");
        let words: Vec<String> = ids.iter().map(u32::to_string).collect();
        assert_eq!(answer.trim_start(), words.join(" "), "{model}");
        let other = request(Prompt::Text("1 288".to_owned()));
        let error = engine.generate(other).await.expect_err("a refusal");
        assert_eq!(error.kind(), ErrorKind::Request, "{error}");
        assert!(error.to_string().contains("ids from 0 to 287"), "{error}");
    }
}
