//! A program that will hold conversations learns at its start that the model cannot, by the server's check.

use std::path::Path;

use lapwing::error::ChatFault;
use lapwing::{Engine, ErrorKind, Request};

use crate::encoder::Encoder;
use crate::with_template::with_template;

fn tiny() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf")
}

#[tokio::test]
async fn a_build_that_requires_conversations_names_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let encoder = Encoder::new().file(&folder.path().join("encoder.gguf"), false);
    let broken = with_template(&tiny(), "{% if %}", folder.path());
    type IsFault = fn(&ChatFault) -> bool;
    let rows: [(_, IsFault, &str); 3] = [
        (tiny(), |fault| matches!(fault, ChatFault::NoTemplate), "has no chat template"),
        (encoder, |fault| matches!(fault, ChatFault::Encoder), "makes embeddings only"),
        (broken, |fault| matches!(fault, ChatFault::Template { .. }), "does not compile"),
    ];
    for (model, is_expected, part) in rows {
        let builder = || Engine::builder().model(&model).threads(1);
        let error = builder().require_chat().build().await.expect_err("no conversation");
        assert_eq!(error.kind(), ErrorKind::Model, "{error}");
        assert!(error.chat_fault().is_some_and(is_expected), "{error}");
        let text = error.to_string();
        assert!(text.contains(part) && text.contains("require_chat"), "{text}");
        assert!(text.contains(&model.display().to_string()), "{text}");
        // A program that does not chat can have any model.
        let engine = builder().build().await.expect("an engine");
        let error = engine.generate(Request::ask("Hello?")).await.expect_err("no conversation");
        assert!(error.chat_fault().is_none() && error.kind() == ErrorKind::Request, "{error}");
    }
    let path = with_template(&tiny(), "{{ messages[0].content }}", folder.path());
    let engine = Engine::builder().model(path).threads(1).require_chat().build().await;
    let engine = engine.expect("an engine that chats");
    engine.generate(Request::ask("ab").max_tokens(1)).await.expect("a stream");
}

#[cfg(feature = "serve")]
#[tokio::test]
async fn the_server_says_the_same_of_a_model() {
    use lapwing::serve::{ServeConfig, ServeError, Server};

    let mut config = ServeConfig::default();
    config.listen = "127.0.0.1:0".to_owned();
    let engine = Engine::builder().model(tiny()).threads(1);
    let bind = |engine| Server::builder().model("tiny", engine).config(config.clone()).bind();
    let notes = bind(engine.clone()).await.expect("an address").notes();
    let required =
        bind(engine.clone().require_chat()).await.map(drop).expect_err("no conversation");
    let ServeError::Model { source, .. } = &required else { panic!("{required}") };
    assert!(source.chat_fault().is_some(), "{required}");
    let error = engine.require_chat().build().await.expect_err("no conversation");
    let fault = error.chat_fault().expect("a fault");
    assert_eq!(notes, [format!("model 'tiny' {fault}")]);
    assert!(error.to_string().contains(&fault.to_string()), "{error}");
}
