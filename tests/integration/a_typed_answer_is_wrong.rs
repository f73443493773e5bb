//! Answers of Rust types, of random models at temperature 1.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use lapwing::structured::Grammar;
use lapwing::{EndReason, Engine, ErrorKind, Request, Thoughts, TypedError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::a_server_fails_a_client::with_long_context;
use crate::an_answer_breaks_its_grammar::engine;
use crate::cases::cases;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Order {
    /// What is ordered.
    #[schemars(length(max = 4))]
    item: String,
    count: u8,
    offset: i16,
    express: Option<bool>,
    #[schemars(length(max = 2))]
    steps: Vec<Step>,
    size: (i8, u32),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Step {
    Wait { hours: u32 },
    Send { to: Place },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum Place {
    Home,
    Shop,
}

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf")
}

fn hot(seed: u64) -> Request {
    Request::text("ab").temperature(1.0).top_k(0).min_p(0.0).top_p(1.0).seed(seed).max_tokens(1500)
}

/// An engine with room for long answers.
async fn roomy() -> Engine {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("long.gguf");
    let bytes = std::fs::read(tiny()).expect("a model");
    std::fs::write(&model, with_long_context(bytes)).expect("write");
    Engine::builder().model(model).threads(1).build().await.expect("an engine")
}

#[tokio::test]
async fn every_answer_is_a_value_of_its_type() {
    let engine = roomy().await;
    for seed in 0..cases(8, 60) as u64 {
        let answer = engine.generate_as::<Order>(hot(seed)).await.expect("an order");
        assert!(answer.value.item.chars().count() <= 4 && answer.value.steps.len() <= 2);
        assert!(answer.ignored_keywords.is_empty(), "{:?}", answer.ignored_keywords);
        assert_eq!(answer.summary.reason, EndReason::EndToken);
        let text = &answer.summary.answer.as_ref().expect("a divided answer").text;
        assert_eq!(serde_json::from_str::<Order>(text).expect("JSON"), answer.value);
        let blocking = engine.generate_as_blocking::<Order>(hot(seed)).expect("an order");
        assert_eq!(blocking.value, answer.value, "the same seed");
    }
    let yes = engine.generate_as::<bool>(hot(1)).await.expect("a truth value");
    assert!(["true", "false"].contains(&&*yes.value.to_string()));
}

/// A type that accepts no text that its schema allows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Digit")]
#[schemars(with = "Digit")]
struct Refused;

#[derive(Debug, Deserialize, JsonSchema)]
struct Digit(u8);

impl TryFrom<Digit> for Refused {
    type Error = String;

    fn try_from(digit: Digit) -> Result<Refused, String> {
        Err(format!("{} is too much", digit.0))
    }
}

/// A type whose schema leads nowhere.
#[derive(Debug, Deserialize)]
struct Nowhere;

impl JsonSchema for Nowhere {
    fn schema_name() -> Cow<'static, str> {
        "Nowhere".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "$ref": "#/nowhere" })
    }
}

#[tokio::test]
async fn an_answer_that_is_no_value_is_an_error_that_has_its_text() {
    let engine = engine().await;
    let error = engine.generate_as::<Refused>(hot(1).max_tokens(20)).await.expect_err("no value");
    let TypedError::NoValue { type_name, text, source } = &error else { panic!("{error:?}") };
    assert!(type_name.ends_with("Refused") && text.parse::<u8>().is_ok(), "{error}");
    assert!(source.to_string().contains("is too much") && error.to_string().contains(text));

    let error = engine.generate_as::<Order>(hot(1).max_tokens(3)).await.expect_err("too short");
    let TypedError::Cut { text, reason, tokens } = &error else { panic!("{error:?}") };
    assert!(text.starts_with('{'), "{text}");
    assert_eq!((reason, *tokens), (&EndReason::Length, 3));
    assert!(error.to_string().contains("max_tokens"), "{error}");
    let stopped = hot(1).stop("item");
    let error = engine.generate_as::<Order>(stopped).await.expect_err("stopped");
    let TypedError::Cut { reason, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*reason, EndReason::StopText("item".to_owned()));

    let error = engine.generate_as::<Nowhere>(hot(1)).await.expect_err("no schema");
    let TypedError::Schema { type_name, source } = &error else { panic!("{error:?}") };
    assert!(type_name.ends_with("Nowhere") && source.to_string().contains("nowhere"), "{error}");

    let with_grammar = hot(1).grammar(Grammar::regex("a"));
    let error = engine.generate_as::<bool>(with_grammar).await.expect_err("two grammars");
    assert!(matches!(error, TypedError::HasGrammar), "{error}");
    let endless = engine.generate_as::<bool>(hot(1).ignore_eos()).await.expect_err("no end");
    let TypedError::Engine(error) = &endless else { panic!("{endless:?}") };
    assert_eq!(error.kind(), ErrorKind::Request, "{error}");
}

#[tokio::test]
async fn a_model_may_think_before_its_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let template = "{{ messages[0].content }}<think>\n{# </think> -#}";
    let model = crate::with_template::with_template(&tiny(), template, folder.path());
    let engine = Engine::builder().model(model).threads(1).build().await.expect("an engine");
    let asked = || Request::ask("ab").temperature(1.0).seed(1).max_tokens(90);
    let thinks = asked().thoughts(Thoughts::First { tokens_max: Some(9) });
    for request in [asked(), thinks] {
        let answer = engine.generate_as::<Place>(request).await.expect("a place");
        let divided = answer.summary.answer.expect("a divided answer");
        assert!(!divided.thoughts.is_empty(), "{divided:?}");
        assert!(divided.text.starts_with('"') && !divided.text.contains("think"), "{divided:?}");
    }
    let silent = engine.generate_as::<Place>(asked().thoughts(Thoughts::None)).await;
    let answer = silent.expect("a place").summary.answer.expect("a divided answer");
    assert!(answer.thoughts.is_empty(), "{answer:?}");
}
